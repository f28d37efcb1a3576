//! Checks of the exponential function and of what is computed with it.

use super::super::Kernels;
use super::Check;
use super::inputs::{KernelInputs, unaligned};
use super::reference::{Expected, U, sum};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "score_negatives",
        run: run_score_negatives,
        expect: expect_score_negatives,
    },
    Check {
        name: "exp_sum",
        run: run_exp_sum,
        expect: expect_exp_sum,
    },
];

const SHIFT: f32 = 1.5;

/// Exponents from far below the underflow up to 60.
fn exponents(inputs: &KernelInputs) -> Vec<f32> {
    let spread = [1.0, 20.0, 60.0];
    let row = inputs.row("x").into_iter().zip(spread.into_iter().cycle());
    row.map(|(x, spread)| (spread * x).min(60.0)).collect()
}

fn run_exp_sum(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let mut x = unaligned(inputs, &exponents(inputs));
    let sum = kernels.exp_sum(x.get_mut(), SHIFT);
    [x.finish(), vec![sum]].concat()
}

fn expect_exp_sum(inputs: &KernelInputs) -> Vec<Expected> {
    let mut all: Vec<Expected> = exponents(inputs)
        .into_iter()
        .map(|x| {
            let exponent = f64::from(x) - f64::from(SHIFT);
            let value = exponent.exp();
            // The subtraction rounds, which the exponential turns into a relative error. Below e^−87 0 will do.
            let tolerance = (1e-6 + U * exponent.abs()) * value + 2e-38;
            Expected { value, tolerance }
        })
        .collect();
    let mut total = sum(all.iter().map(|x| x.value));
    total.tolerance += all.iter().map(|x| x.tolerance).sum::<f64>();
    all.push(total);
    all
}

/// Probabilities below it are faint.
const THRESHOLD: f32 = 1e-3;

/// Scores of paths: some 0, some infinite.
fn paths(inputs: &KernelInputs) -> Vec<f32> {
    let choices = [0.0, 1e-30, 2e-4, 0.5, 1.0, f32::INFINITY];
    inputs.integers("paths", inputs.len, |bits| choices[bits as usize % 6])
}

/// −z from where σ is 1 to where it underflows, and never where p is close to the threshold.
fn negated_logits(inputs: &KernelInputs) -> Vec<f32> {
    let choices = [-90.0, -7.25, -0.5, 0.0, 1.75, 20.5, 86.5];
    inputs.integers("negated logits", inputs.len, |bits| {
        choices[bits as usize % 7]
    })
}

/// The exponentials, the positions after their number, and the sum.
fn run_score_negatives(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let mut x = unaligned(inputs, &negated_logits(inputs));
    let paths = unaligned(inputs, &paths(inputs));
    let mut found = vec![7];
    let sum = kernels.score_negatives(x.get_mut(), paths.get(), THRESHOLD, &mut found);
    let mut all = x.finish();
    all.push(found.len() as f32);
    all.extend(found.iter().map(|&position| position as f32));
    all.push(sum);
    all
}

fn expect_score_negatives(inputs: &KernelInputs) -> Vec<Expected> {
    let exponentials: Vec<f64> = (negated_logits(inputs).into_iter())
        .map(|x| f64::from(x).exp())
        .collect();
    let mut all: Vec<Expected> = (exponentials.iter())
        .map(|&value| Expected {
            value,
            tolerance: 1e-6 * value + 2e-38,
        })
        .collect();
    let (mut found, mut losses) = (Vec::new(), Vec::new());
    for (at, (&e, path)) in exponentials.iter().zip(paths(inputs)).enumerate() {
        let p = f64::from(path) / (1.0 + e);
        if p < f64::from(THRESHOLD) {
            losses.push(-(-p).ln_1p())
        } else {
            found.push(Expected::exact(at as f64))
        }
    }
    all.push(Expected::exact(found.len() as f64));
    all.extend(found);
    let mut total = sum(losses);
    total.tolerance += 3e-6 * total.value;
    all.push(total);
    all
}
