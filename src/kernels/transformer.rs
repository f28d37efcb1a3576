//! Row operations of a transformer: softmax, layer norm and GELU, forward and backward.
//!
//! SAFETY of every function: the caller has the instructions of `V` and has compared lengths; accesses lie below the
//! common length, those of a tail by their count.

use super::exponentials::{exp, highest, keep_first};
use super::vector::{LANES, Vector, load_up_to, store_up_to};
use super::{NormScale, Normed};

#[inline(always)]
pub(super) unsafe fn softmax<V: Vector>(row: &mut [f32], scale: f32) {
    let n = row.len();
    unsafe {
        let (shift, factor) = (V::splat(highest::<V>(row)), V::splat(scale));
        let x = row.as_mut_ptr();
        let mut sum = V::splat(0.0);
        for at in (0..n).step_by(LANES) {
            let shifted = load_up_to::<V>(x.add(at), n - at).sub(shift);
            let value = exp(factor.mul(shifted));
            store_up_to(value, x.add(at), n - at);
            sum = sum.add(keep_first(value, n - at));
        }
        let inverse = V::splat(1.0 / sum.sum());
        for at in (0..n).step_by(LANES) {
            let value = load_up_to::<V>(x.add(at), n - at).mul(inverse);
            store_up_to(value, x.add(at), n - at);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn softmax_backward<V: Vector>(p: &[f32], gradient: &mut [f32], scale: f32) {
    let n = p.len();
    let (p, d) = (p.as_ptr(), gradient.as_mut_ptr());
    unsafe {
        let mut sum = V::splat(0.0);
        for at in (0..n).step_by(LANES) {
            let p = load_up_to::<V>(p.add(at), n - at);
            sum = p.mul_add(load_up_to(d.add(at), n - at), sum);
        }
        let (mean, factor) = (V::splat(sum.sum()), V::splat(scale));
        for at in (0..n).step_by(LANES) {
            let difference = load_up_to::<V>(d.add(at), n - at).sub(mean);
            let weight = factor.mul(load_up_to(p.add(at), n - at));
            store_up_to(weight.mul(difference), d.add(at), n - at);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn layer_norm<V: Vector>(
    row: &mut [f32],
    scale: NormScale<'_>,
    out: &mut [f32],
) -> f32 {
    let n = row.len();
    let (x, y) = (row.as_mut_ptr(), out.as_mut_ptr());
    let (gamma, beta) = (scale.gamma.as_ptr(), scale.beta.as_ptr());
    unsafe {
        let mut sum = V::splat(0.0);
        for at in (0..n).step_by(LANES) {
            sum = sum.add(load_up_to(x.add(at), n - at));
        }
        let mean = V::splat(sum.sum() / n as f32);
        let mut sum = V::splat(0.0);
        for at in (0..n).step_by(LANES) {
            let difference = load_up_to::<V>(x.add(at), n - at).sub(mean);
            let difference = keep_first(difference, n - at);
            sum = difference.mul_add(difference, sum);
        }
        let inverse = 1.0 / (sum.sum() / n as f32 + scale.epsilon).sqrt();
        let factor = V::splat(inverse);
        for at in (0..n).step_by(LANES) {
            let difference = load_up_to::<V>(x.add(at), n - at).sub(mean);
            let normed = difference.mul(factor);
            store_up_to(normed, x.add(at), n - at);
            let gamma: V = load_up_to(gamma.add(at), n - at);
            let out = gamma.mul_add(normed, load_up_to(beta.add(at), n - at));
            store_up_to(out, y.add(at), n - at);
        }
        inverse
    }
}

#[inline(always)]
pub(super) unsafe fn layer_norm_backward<V: Vector>(
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
    unsafe {
        let (mut sum, mut sum_normed) = (V::splat(0.0), V::splat(0.0));
        for at in (0..n).step_by(LANES) {
            let n_left = n - at;
            let (dy, normed): (V, V) =
                (load_up_to(d.add(at), n_left), load_up_to(x.add(at), n_left));
            let new_gamma = dy.mul_add(normed, load_up_to(d_gamma.add(at), n_left));
            store_up_to(new_gamma, d_gamma.add(at), n_left);
            let new_beta = dy.add(load_up_to(d_beta.add(at), n_left));
            store_up_to(new_beta, d_beta.add(at), n_left);
            let scaled = dy.mul(load_up_to(gamma.add(at), n_left));
            store_up_to(scaled, d.add(at), n_left);
            sum = sum.add(scaled);
            sum_normed = scaled.mul_add(normed, sum_normed);
        }
        let mean = V::splat(sum.sum() / n as f32);
        let mean_normed = V::splat(-sum_normed.sum() / n as f32);
        let factor = V::splat(normed.inverse);
        for at in (0..n).step_by(LANES) {
            let centred = load_up_to::<V>(d.add(at), n - at).sub(mean);
            let rest = mean_normed.mul_add(load_up_to(x.add(at), n - at), centred);
            store_up_to(factor.mul(rest), d.add(at), n - at);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn gelu<V: Vector>(x: &mut [f32], bias: &[f32], out: &mut [f32]) {
    let n = x.len();
    let (x, bias, out) = (x.as_mut_ptr(), bias.as_ptr(), out.as_mut_ptr());
    let root = (1.0 / (2.0 * std::f32::consts::PI)).sqrt();
    unsafe {
        let (zero, one, half) = (V::splat(0.0), V::splat(1.0), V::splat(0.5));
        for at in (0..n).step_by(LANES) {
            let u = load_up_to::<V>(x.add(at), n - at).add(load_up_to(bias.add(at), n - at));
            let size = u.select_less(zero, zero.sub(u), u);
            let z = size.mul(V::splat(std::f32::consts::FRAC_1_SQRT_2));
            let bell = exp(zero.sub(z.mul(z)));
            // Φ by the error function of Abramowitz and Stegun 7.1.26.
            let t = one.div(V::splat(0.327_591_1).mul_add(z, one));
            let mut polynomial = V::splat(1.061_405_4);
            for coefficient in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6, 0.0] {
                polynomial = polynomial.mul_add(t, V::splat(coefficient));
            }
            let tail = half.mul(polynomial).mul(bell);
            let cdf = u.select_less(zero, tail, one.sub(tail));
            let slope = u.mul_add(bell.mul(V::splat(root)), cdf);
            store_up_to(u.mul(cdf), out.add(at), n - at);
            store_up_to(slope, x.add(at), n - at);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn multiply_and_sum<V: Vector>(x: &mut [f32], factors: &[f32], sums: &mut [f32]) {
    let n = x.len();
    let (x, factors, sums) = (x.as_mut_ptr(), factors.as_ptr(), sums.as_mut_ptr());
    unsafe {
        for at in (0..n).step_by(LANES) {
            let factor = load_up_to(factors.add(at), n - at);
            let product = load_up_to::<V>(x.add(at), n - at).mul(factor);
            store_up_to(product, x.add(at), n - at);
            let sum = product.add(load_up_to(sums.add(at), n - at));
            store_up_to(sum, sums.add(at), n - at);
        }
    }
}
