//! The kernels in 256-bit vectors with fused multiply-add.

use std::arch::x86_64::*;

use super::AdamWStep;

pub(super) const LANES: usize = 8;

/// A mask that loads the first `n` of eight floats.
#[target_feature(enable = "avx2,fma")]
pub(super) fn tail_mask(n: usize) -> __m256i {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lane)
}

/// Sum of the eight lanes, pairwise.
#[target_feature(enable = "avx2,fma")]
pub(super) fn sum_lanes(x: __m256) -> f32 {
    let quad = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
    _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (n, a, b) = (a.len(), a.as_ptr(), b.as_ptr());
    let mut sums = [_mm256_setzero_ps(); 4];
    let mut at = 0;
    // SAFETY: every access lies below `n`, the common length of both slices.
    unsafe {
        while at + 4 * LANES <= n {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let (x, y) = (
                    _mm256_loadu_ps(a.add(at + lane * LANES)),
                    _mm256_loadu_ps(b.add(at + lane * LANES)),
                );
                *sum = _mm256_fmadd_ps(x, y, *sum);
            }
            at += 4 * LANES;
        }
        while at < n {
            let mask = tail_mask((n - at).min(LANES));
            let (x, y) = (
                _mm256_maskload_ps(a.add(at), mask),
                _mm256_maskload_ps(b.add(at), mask),
            );
            sums[0] = _mm256_fmadd_ps(x, y, sums[0]);
            at += LANES;
        }
    }
    sum_lanes(_mm256_add_ps(
        _mm256_add_ps(sums[0], sums[1]),
        _mm256_add_ps(sums[2], sums[3]),
    ))
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn axpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    let (n, x, y) = (x.len(), x.as_ptr(), y.as_mut_ptr());
    let factor = _mm256_set1_ps(alpha);
    let mut at = 0;
    // SAFETY: every access lies below `n`, the common length of both slices.
    unsafe {
        while at + LANES <= n {
            let sum = _mm256_fmadd_ps(
                factor,
                _mm256_loadu_ps(x.add(at)),
                _mm256_loadu_ps(y.add(at)),
            );
            _mm256_storeu_ps(y.add(at), sum);
            at += LANES;
        }
        if at < n {
            let mask = tail_mask(n - at);
            let sum = _mm256_fmadd_ps(
                factor,
                _mm256_maskload_ps(x.add(at), mask),
                _mm256_maskload_ps(y.add(at), mask),
            );
            _mm256_maskstore_ps(y.add(at), mask, sum);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn sum_rows(coefficients: &[f32], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    // 64 columns at a time stay in registers while looping over the rows.
    const BLOCK: usize = 8;
    let width = out.len();
    let mut at = 0;
    while at + BLOCK * LANES <= width {
        let mut sums = [_mm256_setzero_ps(); BLOCK];
        for (&row_idx, &coefficient) in rows.iter().zip(coefficients) {
            let factor = _mm256_set1_ps(coefficient);
            // SAFETY: the caller has checked that every row lies inside `matrix`.
            unsafe {
                let row = matrix.as_ptr().add(row_idx as usize * width + at);
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_fmadd_ps(factor, _mm256_loadu_ps(row.add(lane * LANES)), *sum);
                }
            }
        }
        for (lane, sum) in sums.iter().enumerate() {
            // SAFETY: `at + BLOCK * LANES <= width`.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(at + lane * LANES), *sum) };
        }
        at += BLOCK * LANES;
    }
    while at < width {
        let mask = tail_mask((width - at).min(LANES));
        let mut sum = _mm256_setzero_ps();
        for (&row_idx, &coefficient) in rows.iter().zip(coefficients) {
            // SAFETY: the mask keeps the access inside the row.
            let row = unsafe {
                _mm256_maskload_ps(matrix.as_ptr().add(row_idx as usize * width + at), mask)
            };
            sum = _mm256_fmadd_ps(_mm256_set1_ps(coefficient), row, sum);
        }
        // SAFETY: the mask keeps the access inside `out`.
        unsafe { _mm256_maskstore_ps(out.as_mut_ptr().add(at), mask, sum) };
        at += LANES;
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn adamw(
    step: &AdamWStep,
    w: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
    v: &mut [f32],
) {
    let n = w.len();
    let (w, gradient, m, v) = (
        w.as_mut_ptr(),
        gradient.as_ptr(),
        m.as_mut_ptr(),
        v.as_mut_ptr(),
    );
    let beta1 = _mm256_set1_ps(step.beta1);
    let beta2 = _mm256_set1_ps(step.beta2);
    let rest1 = _mm256_set1_ps(1.0 - step.beta1);
    let rest2 = _mm256_set1_ps(1.0 - step.beta2);
    let epsilon = _mm256_set1_ps(step.epsilon);
    let rate = _mm256_set1_ps(step.learning_rate / step.bias_correction1);
    let keep = _mm256_set1_ps(1.0 - step.learning_rate * step.weight_decay);
    let inverse2 = _mm256_set1_ps(1.0 / step.bias_correction2);
    let update = |w_old, g, m_old, v_old| {
        let m_new = _mm256_fmadd_ps(beta1, m_old, _mm256_mul_ps(rest1, g));
        let v_new = _mm256_fmadd_ps(beta2, v_old, _mm256_mul_ps(rest2, _mm256_mul_ps(g, g)));
        let root = _mm256_add_ps(_mm256_sqrt_ps(_mm256_mul_ps(v_new, inverse2)), epsilon);
        let change = _mm256_div_ps(_mm256_mul_ps(rate, m_new), root);
        (_mm256_fmsub_ps(w_old, keep, change), m_new, v_new)
    };
    let mut at = 0;
    // SAFETY: every access lies below `n`, the common length of the four slices. Masked stores are slow on some
    // machines, so only the tail uses them.
    unsafe {
        while at + LANES <= n {
            let (w_new, m_new, v_new) = update(
                _mm256_loadu_ps(w.add(at)),
                _mm256_loadu_ps(gradient.add(at)),
                _mm256_loadu_ps(m.add(at)),
                _mm256_loadu_ps(v.add(at)),
            );
            _mm256_storeu_ps(m.add(at), m_new);
            _mm256_storeu_ps(v.add(at), v_new);
            _mm256_storeu_ps(w.add(at), w_new);
            at += LANES;
        }
        if at < n {
            let mask = tail_mask(n - at);
            let (w_new, m_new, v_new) = update(
                _mm256_maskload_ps(w.add(at), mask),
                _mm256_maskload_ps(gradient.add(at), mask),
                _mm256_maskload_ps(m.add(at), mask),
                _mm256_maskload_ps(v.add(at), mask),
            );
            _mm256_maskstore_ps(m.add(at), mask, m_new);
            _mm256_maskstore_ps(v.add(at), mask, v_new);
            _mm256_maskstore_ps(w.add(at), mask, w_new);
        }
    }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn adamw_scaled(
    step: &AdamWStep,
    denominator: f32,
    w: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
) {
    let n = w.len();
    let (w, gradient, m) = (w.as_mut_ptr(), gradient.as_ptr(), m.as_mut_ptr());
    let beta1 = _mm256_set1_ps(step.beta1);
    let rest1 = _mm256_set1_ps(1.0 - step.beta1);
    let rate = _mm256_set1_ps(step.learning_rate / (step.bias_correction1 * denominator));
    let keep = _mm256_set1_ps(1.0 - step.learning_rate * step.weight_decay);
    let update = |w_old, g, m_old| {
        let m_new = _mm256_fmadd_ps(beta1, m_old, _mm256_mul_ps(rest1, g));
        let change = _mm256_mul_ps(rate, m_new);
        (_mm256_fmsub_ps(w_old, keep, change), m_new)
    };
    let mut at = 0;
    // SAFETY: every access lies below `n`, the common length of the three slices.
    unsafe {
        while at + LANES <= n {
            let (w_new, m_new) = update(
                _mm256_loadu_ps(w.add(at)),
                _mm256_loadu_ps(gradient.add(at)),
                _mm256_loadu_ps(m.add(at)),
            );
            _mm256_storeu_ps(m.add(at), m_new);
            _mm256_storeu_ps(w.add(at), w_new);
            at += LANES;
        }
        if at < n {
            let mask = tail_mask(n - at);
            let (w_new, m_new) = update(
                _mm256_maskload_ps(w.add(at), mask),
                _mm256_maskload_ps(gradient.add(at), mask),
                _mm256_maskload_ps(m.add(at), mask),
            );
            _mm256_maskstore_ps(m.add(at), mask, m_new);
            _mm256_maskstore_ps(w.add(at), mask, w_new);
        }
    }
}

/// e^x by range reduction to 2^n·e^r, |r| ≤ ln2/2, and a degree-6 polynomial; 0 below −87.
#[target_feature(enable = "avx2,fma")]
pub(super) fn exp(x: __m256) -> __m256 {
    let underflows = _mm256_cmp_ps::<_CMP_LT_OQ>(x, _mm256_set1_ps(-87.0));
    let x = _mm256_min_ps(
        _mm256_max_ps(x, _mm256_set1_ps(-87.0)),
        _mm256_set1_ps(88.0),
    );
    let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_ps(
        x,
        _mm256_set1_ps(std::f32::consts::LOG2_E),
    ));
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693_359_4), x);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.121_944_4e-4), r);
    let mut polynomial = _mm256_set1_ps(1.0 / 720.0);
    for coefficient in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        polynomial = _mm256_fmadd_ps(polynomial, r, _mm256_set1_ps(coefficient));
    }
    let exponent = _mm256_slli_epi32::<23>(_mm256_add_epi32(
        _mm256_cvtps_epi32(n),
        _mm256_set1_epi32(127),
    ));
    let value = _mm256_mul_ps(polynomial, _mm256_castsi256_ps(exponent));
    _mm256_andnot_ps(underflows, value)
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn exp_sum(x: &mut [f32], shift: f32) -> f32 {
    let n = x.len();
    let x = x.as_mut_ptr();
    let shift = _mm256_set1_ps(shift);
    let mut sum = _mm256_setzero_ps();
    let mut at = 0;
    // SAFETY: every access lies below `n`; the tail's by its mask.
    unsafe {
        while at + LANES <= n {
            let value = exp(_mm256_sub_ps(_mm256_loadu_ps(x.add(at)), shift));
            _mm256_storeu_ps(x.add(at), value);
            sum = _mm256_add_ps(sum, value);
            at += LANES;
        }
        if at < n {
            let mask = tail_mask(n - at);
            let value = exp(_mm256_sub_ps(_mm256_maskload_ps(x.add(at), mask), shift));
            let value = _mm256_and_ps(value, _mm256_castsi256_ps(mask));
            _mm256_maskstore_ps(x.add(at), mask, value);
            sum = _mm256_add_ps(sum, value);
        }
    }
    sum_lanes(sum)
}
