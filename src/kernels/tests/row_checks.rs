//! Checks of the row operations of a transformer.

use super::super::{Kernels, NormScale, Normed};
use super::Check;
use super::inputs::{KernelInputs, unaligned};
use super::reference::{Expected, TINY, U, erf, sum};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "softmax",
        run: run_softmax,
        expect: expect_softmax,
    },
    Check {
        name: "softmax_backward",
        run: run_softmax_backward,
        expect: expect_softmax_backward,
    },
    Check {
        name: "layer_norm",
        run: run_layer_norm,
        expect: expect_layer_norm,
    },
    Check {
        name: "layer_norm_backward",
        run: run_layer_norm_backward,
        expect: expect_layer_norm_backward,
    },
    Check {
        name: "gelu",
        run: run_gelu,
        expect: expect_gelu,
    },
    Check {
        name: "multiply_and_sum",
        run: run_multiply_and_sum,
        expect: expect_multiply_and_sum,
    },
];

const SCALE: f32 = 0.7;
const EPSILON: f32 = 1e-5;

fn run_softmax(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let mut row = unaligned(inputs, &inputs.row("row"));
    kernels.softmax(row.get_mut(), SCALE);
    row.finish()
}

fn expect_softmax(inputs: &KernelInputs) -> Vec<Expected> {
    let row: Vec<f64> = inputs.row("row").into_iter().map(f64::from).collect();
    let highest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponents: Vec<f64> = row
        .iter()
        .map(|x| f64::from(SCALE) * (x - highest))
        .collect();
    let total: f64 = exponents.iter().map(|e| e.exp()).sum();
    // An error of the exponent is a relative error of its exponential, and of the sum by its share.
    let relative = |exponent: f64| 2e-6 + 3.0 * U * exponent.abs();
    let of_terms: f64 = exponents
        .iter()
        .map(|&e| e.exp() / total * relative(e))
        .sum();
    let of_total = of_terms + U * row.len() as f64;
    let one = |&exponent: &f64| {
        let value = exponent.exp() / total;
        Expected {
            value,
            tolerance: value * (relative(exponent) + of_total) + 2e-38,
        }
    };
    exponents.iter().map(one).collect()
}

/// Probabilities: a softmax, in `f32`.
fn probabilities(inputs: &KernelInputs) -> Vec<f32> {
    expect_softmax(inputs)
        .into_iter()
        .map(|p| p.value as f32)
        .collect()
}

fn run_softmax_backward(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let p = unaligned(inputs, &probabilities(inputs));
    let mut gradient = unaligned(inputs, &inputs.row("gradient"));
    kernels.softmax_backward(p.get(), gradient.get_mut(), SCALE);
    gradient.finish()
}

fn expect_softmax_backward(inputs: &KernelInputs) -> Vec<Expected> {
    let p: Vec<f64> = probabilities(inputs).into_iter().map(f64::from).collect();
    let gradient: Vec<f64> = inputs.row("gradient").into_iter().map(f64::from).collect();
    let mean = sum(p.iter().zip(&gradient).map(|(p, d)| p * d));
    let one = |(p, d): (&f64, &f64)| {
        let factor = f64::from(SCALE) * p;
        let magnitude = d.abs() + mean.value.abs();
        Expected {
            value: factor * (d - mean.value),
            tolerance: factor * (mean.tolerance + 4.0 * U * magnitude) + 4.0 * TINY,
        }
    };
    p.iter().zip(&gradient).map(one).collect()
}

/// A layer norm in `f64`: x̂, and 1/√(variance + ε).
struct ReferenceNorm {
    normed: Vec<Expected>,
    inverse: Expected,
}

fn norm(row: &[f32]) -> ReferenceNorm {
    let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
    let n = row.len() as f64;
    let total = sum(row.iter().copied());
    let mean = total.value / n;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let largest = row.iter().fold(0.0, |most, x| f64::max(most, x.abs()));
    // The error of x − mean, of the variance, and so of the root.
    let of_centred = total.tolerance / n + 2.0 * U * (largest + mean.abs());
    let of_variance =
        (n + 8.0) * U * variance + 2.0 * variance.sqrt() * of_centred + of_centred * of_centred;
    let denominator = variance + f64::from(EPSILON);
    let relative = of_variance / denominator + 4.0 * U;
    let inverse = 1.0 / denominator.sqrt();
    let normed = row.iter().map(|x| {
        let value = (x - mean) * inverse;
        Expected {
            value,
            tolerance: value.abs() * relative + (inverse * (1.0 + relative)) * of_centred + TINY,
        }
    });
    ReferenceNorm {
        normed: normed.collect(),
        inverse: Expected {
            value: inverse,
            tolerance: inverse * relative,
        },
    }
}

fn run_layer_norm(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    if inputs.len == 0 {
        return Vec::new();
    }
    let mut row = unaligned(inputs, &inputs.row("row"));
    let [gamma, beta, out] =
        ["gamma", "beta", "overwritten"].map(|name| unaligned(inputs, &inputs.row(name)));
    let scale = NormScale {
        gamma: gamma.get(),
        beta: beta.get(),
        epsilon: EPSILON,
    };
    let mut out = out;
    let inverse = kernels.layer_norm(row.get_mut(), scale, out.get_mut());
    [row.finish(), out.finish(), vec![inverse]].concat()
}

fn expect_layer_norm(inputs: &KernelInputs) -> Vec<Expected> {
    if inputs.len == 0 {
        return Vec::new();
    }
    let [row, gamma, beta] = ["row", "gamma", "beta"].map(|name| inputs.row(name));
    let ReferenceNorm { normed, inverse } = norm(&row);
    let terms = normed.iter().zip(gamma.iter().zip(&beta));
    let out = terms.map(|(normed, (&gamma, &beta))| {
        let gamma = f64::from(gamma);
        let mut out = sum([gamma * normed.value, f64::from(beta)]);
        out.tolerance += gamma.abs() * normed.tolerance;
        out
    });
    let out: Vec<Expected> = out.collect();
    [normed, out, vec![inverse]].concat()
}

/// x̂ and the inverse, in `f32`.
fn normed_row(inputs: &KernelInputs) -> (Vec<f32>, f32) {
    let ReferenceNorm { normed, inverse } = norm(&inputs.row("row"));
    let values = normed.into_iter().map(|x| x.value as f32).collect();
    (values, inverse.value as f32)
}

fn run_layer_norm_backward(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    if inputs.len == 0 {
        return Vec::new();
    }
    let (values, inverse) = normed_row(inputs);
    let values = unaligned(inputs, &values);
    let normed = Normed {
        values: values.get(),
        inverse,
    };
    let gamma = unaligned(inputs, &inputs.row("gamma"));
    let [mut gradient, mut d_gamma, mut d_beta] =
        ["gradient", "d_gamma", "d_beta"].map(|name| unaligned(inputs, &inputs.row(name)));
    kernels.layer_norm_backward(
        gradient.get_mut(),
        normed,
        gamma.get(),
        d_gamma.get_mut(),
        d_beta.get_mut(),
    );
    [gradient.finish(), d_gamma.finish(), d_beta.finish()].concat()
}

fn expect_layer_norm_backward(inputs: &KernelInputs) -> Vec<Expected> {
    if inputs.len == 0 {
        return Vec::new();
    }
    let (values, inverse) = normed_row(inputs);
    let inverse = f64::from(inverse);
    let x: Vec<f64> = values.into_iter().map(f64::from).collect();
    let [gradient, gamma, d_gamma, d_beta] =
        ["gradient", "gamma", "d_gamma", "d_beta"].map(|name| {
            inputs
                .row(name)
                .into_iter()
                .map(f64::from)
                .collect::<Vec<f64>>()
        });
    let n = x.len() as f64;
    let scaled: Vec<f64> = gradient.iter().zip(&gamma).map(|(d, g)| d * g).collect();
    let total = sum(scaled.iter().copied());
    let total_normed = sum(scaled.iter().zip(&x).map(|(g, x)| g * x));
    let (mean, mean_normed) = (total.value / n, total_normed.value / n);
    let d_x = scaled.iter().zip(&x).map(|(g, x)| {
        let magnitude = g.abs() + mean.abs() + (x * mean_normed).abs();
        let of_means = total.tolerance / n + x.abs() * total_normed.tolerance / n;
        Expected {
            value: inverse * (g - mean - x * mean_normed),
            tolerance: inverse * (of_means + 6.0 * (U * magnitude + TINY)) + TINY,
        }
    });
    let d_gamma = d_gamma
        .iter()
        .zip(gradient.iter().zip(&x))
        .map(|(old, (d, x))| sum([*old, d * x]));
    let d_beta = d_beta.iter().zip(&gradient).map(|(old, d)| sum([*old, *d]));
    d_x.chain(d_gamma).chain(d_beta).collect()
}

fn run_gelu(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let [mut x, bias, mut out] =
        ["x", "bias", "overwritten"].map(|name| unaligned(inputs, &inputs.row(name)));
    kernels.gelu(x.get_mut(), bias.get(), out.get_mut());
    [x.finish(), out.finish()].concat()
}

fn expect_gelu(inputs: &KernelInputs) -> Vec<Expected> {
    let (x, bias) = (inputs.row("x"), inputs.row("bias"));
    let (mut slopes, mut values) = (Vec::new(), Vec::new());
    for (&x, &bias) in x.iter().zip(&bias) {
        // The sum rounds; the slopes of both results are below 1.2.
        let input = sum([f64::from(x), f64::from(bias)]);
        let u = input.value;
        let cdf = 0.5 * (1.0 + erf(u / 2f64.sqrt()));
        let density = (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt();
        slopes.push(Expected {
            value: cdf + u * density,
            tolerance: 3e-6 + 1.2 * input.tolerance,
        });
        values.push(Expected {
            value: u * cdf,
            tolerance: 1e-6 * u.abs() + 1.2 * input.tolerance + TINY,
        });
    }
    [slopes, values].concat()
}

fn run_multiply_and_sum(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let [mut x, factors, mut sums] =
        ["x", "factors", "sums"].map(|name| unaligned(inputs, &inputs.row(name)));
    kernels.multiply_and_sum(x.get_mut(), factors.get(), sums.get_mut());
    [x.finish(), sums.finish()].concat()
}

fn expect_multiply_and_sum(inputs: &KernelInputs) -> Vec<Expected> {
    let [x, factors, sums] = ["x", "factors", "sums"].map(|name| inputs.row(name));
    let products: Vec<f64> = x
        .iter()
        .zip(&factors)
        .map(|(&x, &factor)| f64::from(x) * f64::from(factor))
        .collect();
    let new_sums = sums
        .iter()
        .zip(&products)
        .map(|(&old, &product)| sum([f64::from(old), product]));
    let products = products.iter().map(|&product| sum([product]));
    products.chain(new_sums).collect()
}
