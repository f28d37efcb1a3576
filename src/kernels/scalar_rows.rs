//! The readable row operations of a transformer, and the reference for the fast ones.

use std::f32::consts::{FRAC_1_SQRT_2, PI};

use super::{NormScale, Normed};

pub(super) fn softmax(row: &mut [f32], scale: f32) {
    let highest = row
        .iter()
        .fold(f32::NEG_INFINITY, |highest, &x| highest.max(x));
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (scale * (*x - highest)).exp();
        sum += *x;
    }
    row.iter_mut().for_each(|x| *x /= sum);
}

pub(super) fn softmax_backward(p: &[f32], gradient: &mut [f32], scale: f32) {
    let mean: f32 = p.iter().zip(gradient.iter()).map(|(p, d)| p * d).sum();
    for (d, p) in gradient.iter_mut().zip(p) {
        *d = scale * p * (*d - mean);
    }
}

pub(super) fn layer_norm(row: &mut [f32], scale: NormScale<'_>, out: &mut [f32]) -> f32 {
    let n = row.len() as f32;
    let mean = row.iter().sum::<f32>() / n;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n;
    let inverse = 1.0 / (variance + scale.epsilon).sqrt();
    let scales = scale.gamma.iter().zip(scale.beta);
    for ((x, out), (gamma, beta)) in row.iter_mut().zip(out).zip(scales) {
        *x = (*x - mean) * inverse;
        *out = gamma * *x + beta;
    }
    inverse
}

pub(super) fn layer_norm_backward(
    gradient: &mut [f32],
    normed: Normed<'_>,
    gamma: &[f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let Normed { values, inverse } = normed;
    let n = gradient.len() as f32;
    let (mut mean, mut mean_normed) = (0.0, 0.0);
    for at in 0..gradient.len() {
        d_gamma[at] += gradient[at] * values[at];
        d_beta[at] += gradient[at];
        gradient[at] *= gamma[at];
        mean += gradient[at] / n;
        mean_normed += gradient[at] * values[at] / n;
    }
    for (d, x) in gradient.iter_mut().zip(values) {
        *d = inverse * (*d - mean - x * mean_normed);
    }
}

/// Φ(x), by the error function of Abramowitz and Stegun 7.1.26, and its derivative.
fn normal_cdf(x: f32) -> (f32, f32) {
    let z = x.abs() * FRAC_1_SQRT_2;
    let bell = (-z * z).exp();
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = ((((1.061_405_4 * t - 1.453_152_1) * t + 1.421_413_8) * t - 0.284_496_72) * t
        + 0.254_829_6)
        * t;
    let tail = 0.5 * polynomial * bell;
    let cdf = if x < 0.0 { tail } else { 1.0 - tail };
    (cdf, bell / (2.0 * PI).sqrt())
}

pub(super) fn gelu(x: &mut [f32], bias: &[f32], out: &mut [f32]) {
    for ((x, bias), out) in x.iter_mut().zip(bias).zip(out) {
        let (cdf, density) = normal_cdf(*x + bias);
        *out = (*x + bias) * cdf;
        *x = cdf + (*x + bias) * density;
    }
}

pub(super) fn multiply_and_sum(x: &mut [f32], factors: &[f32], sums: &mut [f32]) {
    for ((x, factor), sum) in x.iter_mut().zip(factors).zip(sums) {
        *x *= factor;
        *sum += *x;
    }
}
