//! The row operations of a transformer in 256-bit vectors with fused multiply-add.

use std::arch::x86_64::*;

use super::avx2::{LANES, exp, sum_lanes, tail_mask};
use super::{NormScale, Normed};

/// The next eight of `n_left` values, padded with zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn load(values: *const f32, n_left: usize) -> __m256 {
    // SAFETY: the caller has `n_left` values; the mask hides those beyond.
    unsafe {
        if n_left >= LANES {
            _mm256_loadu_ps(values)
        } else {
            _mm256_maskload_ps(values, tail_mask(n_left))
        }
    }
}

/// Stores the next eight of `n_left` values.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn store(values: *mut f32, x: __m256, n_left: usize) {
    // SAFETY: the caller has room for `n_left` values; the mask hides those beyond.
    unsafe {
        if n_left >= LANES {
            _mm256_storeu_ps(values, x);
        } else {
            _mm256_maskstore_ps(values, tail_mask(n_left), x);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn softmax(row: &mut [f32], scale: f32) {
    let n = row.len();
    let whole = row.chunks_exact(LANES);
    let rest = whole.remainder();
    let mut highest = _mm256_set1_ps(f32::NEG_INFINITY);
    for chunk in whole {
        // SAFETY: a chunk has eight values.
        highest = _mm256_max_ps(highest, unsafe { _mm256_loadu_ps(chunk.as_ptr()) });
    }
    let mut lanes = [0f32; LANES];
    // SAFETY: there are eight lanes.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), highest) };
    let highest = lanes
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    let (shift, factor) = (_mm256_set1_ps(highest), _mm256_set1_ps(scale));
    let x = row.as_mut_ptr();
    let mut sum = _mm256_setzero_ps();
    // SAFETY: `at` stays below `n`, the tail by its mask.
    unsafe {
        for at in (0..n).step_by(LANES) {
            let shifted = _mm256_sub_ps(load(x.add(at), n - at), shift);
            let mut value = exp(_mm256_mul_ps(factor, shifted));
            if at + LANES > n {
                value = _mm256_and_ps(value, _mm256_castsi256_ps(tail_mask(n - at)));
            }
            store(x.add(at), value, n - at);
            sum = _mm256_add_ps(sum, value);
        }
        let inverse = _mm256_set1_ps(1.0 / sum_lanes(sum));
        for at in (0..n).step_by(LANES) {
            let value = _mm256_mul_ps(load(x.add(at), n - at), inverse);
            store(x.add(at), value, n - at);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn softmax_backward(p: &[f32], gradient: &mut [f32], scale: f32) {
    let n = p.len();
    let (p, d) = (p.as_ptr(), gradient.as_mut_ptr());
    let mut sum = _mm256_setzero_ps();
    // SAFETY: `at` stays below `n`, the common length, the tail by its mask.
    unsafe {
        for at in (0..n).step_by(LANES) {
            sum = _mm256_fmadd_ps(load(p.add(at), n - at), load(d.add(at), n - at), sum);
        }
        let (mean, factor) = (_mm256_set1_ps(sum_lanes(sum)), _mm256_set1_ps(scale));
        for at in (0..n).step_by(LANES) {
            let difference = _mm256_sub_ps(load(d.add(at), n - at), mean);
            let weight = _mm256_mul_ps(factor, load(p.add(at), n - at));
            store(d.add(at), _mm256_mul_ps(weight, difference), n - at);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn layer_norm(row: &mut [f32], scale: NormScale<'_>, out: &mut [f32]) -> f32 {
    let n = row.len();
    let (x, y) = (row.as_mut_ptr(), out.as_mut_ptr());
    let (gamma, beta) = (scale.gamma.as_ptr(), scale.beta.as_ptr());
    let mut sum = _mm256_setzero_ps();
    // SAFETY: `at` stays below `n`, the common length, the tail by its mask.
    unsafe {
        for at in (0..n).step_by(LANES) {
            sum = _mm256_add_ps(sum, load(x.add(at), n - at));
        }
        let mean = _mm256_set1_ps(sum_lanes(sum) / n as f32);
        let mut sum = _mm256_setzero_ps();
        for at in (0..n).step_by(LANES) {
            let mut difference = _mm256_sub_ps(load(x.add(at), n - at), mean);
            if at + LANES > n {
                difference = _mm256_and_ps(difference, _mm256_castsi256_ps(tail_mask(n - at)));
            }
            sum = _mm256_fmadd_ps(difference, difference, sum);
        }
        let inverse = 1.0 / (sum_lanes(sum) / n as f32 + scale.epsilon).sqrt();
        let factor = _mm256_set1_ps(inverse);
        for at in (0..n).step_by(LANES) {
            let difference = _mm256_sub_ps(load(x.add(at), n - at), mean);
            let normed = _mm256_mul_ps(difference, factor);
            store(x.add(at), normed, n - at);
            let (gamma, beta) = (load(gamma.add(at), n - at), load(beta.add(at), n - at));
            store(y.add(at), _mm256_fmadd_ps(gamma, normed, beta), n - at);
        }
        inverse
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn layer_norm_backward(
    gradient: &mut [f32],
    normed: Normed<'_>,
    gamma: &[f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let n = gradient.len();
    let (d, x) = (gradient.as_mut_ptr(), normed.values.as_ptr());
    let gamma = gamma.as_ptr();
    let (d_gamma, d_beta) = (d_gamma.as_mut_ptr(), d_beta.as_mut_ptr());
    let (mut sum, mut sum_normed) = (_mm256_setzero_ps(), _mm256_setzero_ps());
    // SAFETY: `at` stays below `n`, the common length, the tail by its mask.
    unsafe {
        for at in (0..n).step_by(LANES) {
            let (dy, normed) = (load(d.add(at), n - at), load(x.add(at), n - at));
            let new_gamma = _mm256_fmadd_ps(dy, normed, load(d_gamma.add(at), n - at));
            store(d_gamma.add(at), new_gamma, n - at);
            let new_beta = _mm256_add_ps(dy, load(d_beta.add(at), n - at));
            store(d_beta.add(at), new_beta, n - at);
            let scaled = _mm256_mul_ps(dy, load(gamma.add(at), n - at));
            store(d.add(at), scaled, n - at);
            sum = _mm256_add_ps(sum, scaled);
            sum_normed = _mm256_fmadd_ps(scaled, normed, sum_normed);
        }
        let mean = _mm256_set1_ps(sum_lanes(sum) / n as f32);
        let mean_normed = _mm256_set1_ps(sum_lanes(sum_normed) / n as f32);
        let factor = _mm256_set1_ps(normed.inverse);
        for at in (0..n).step_by(LANES) {
            let centred = _mm256_sub_ps(load(d.add(at), n - at), mean);
            let rest = _mm256_fnmadd_ps(load(x.add(at), n - at), mean_normed, centred);
            store(d.add(at), _mm256_mul_ps(factor, rest), n - at);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn gelu(x: &mut [f32], bias: &[f32], out: &mut [f32]) {
    let n = x.len();
    let (x, bias, out) = (x.as_mut_ptr(), bias.as_ptr(), out.as_mut_ptr());
    let set = |value: f32| _mm256_set1_ps(value);
    let sign = set(-0.0);
    let root = (1.0 / (2.0 * std::f32::consts::PI)).sqrt();
    // SAFETY: `at` stays below `n`, the common length, the tail by its mask.
    unsafe {
        for at in (0..n).step_by(LANES) {
            let u = _mm256_add_ps(load(x.add(at), n - at), load(bias.add(at), n - at));
            let z = _mm256_mul_ps(
                _mm256_andnot_ps(sign, u),
                set(std::f32::consts::FRAC_1_SQRT_2),
            );
            let bell = exp(_mm256_xor_ps(sign, _mm256_mul_ps(z, z)));
            let t = _mm256_div_ps(set(1.0), _mm256_fmadd_ps(set(0.327_591_1), z, set(1.0)));
            let mut polynomial = set(1.061_405_4);
            for coefficient in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6, 0.0] {
                polynomial = _mm256_fmadd_ps(polynomial, t, set(coefficient));
            }
            let tail = _mm256_mul_ps(_mm256_mul_ps(set(0.5), polynomial), bell);
            let above = _mm256_sub_ps(set(1.0), tail);
            // The blend reads the sign bit of u.
            let cdf = _mm256_blendv_ps(above, tail, u);
            let slope = _mm256_fmadd_ps(u, _mm256_mul_ps(bell, set(root)), cdf);
            store(out.add(at), _mm256_mul_ps(u, cdf), n - at);
            store(x.add(at), slope, n - at);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn multiply_and_sum(x: &mut [f32], factors: &[f32], sums: &mut [f32]) {
    let n = x.len();
    let (x, factors, sums) = (x.as_mut_ptr(), factors.as_ptr(), sums.as_mut_ptr());
    // SAFETY: `at` stays below `n`, the common length, the tail by its mask.
    unsafe {
        for at in (0..n).step_by(LANES) {
            let product = _mm256_mul_ps(load(x.add(at), n - at), load(factors.add(at), n - at));
            store(x.add(at), product, n - at);
            let sum = _mm256_add_ps(load(sums.add(at), n - at), product);
            store(sums.add(at), sum, n - at);
        }
    }
}
