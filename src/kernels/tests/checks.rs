//! Checks of the products, sums, updates and searches.

use super::super::{AdamWStep, Kernels, TILE};
use super::Check;
use super::inputs::{KernelInputs, N_ROWS, Unaligned, unaligned};
use super::reference::{Expected, TINY, U, dot, sum};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "dot",
        run: run_dot,
        expect: expect_dot,
    },
    Check {
        name: "dot_eight",
        run: run_dot_eight,
        expect: expect_dot_eight,
    },
    Check {
        name: "axpy_eight",
        run: run_axpy_eight,
        expect: expect_axpy_eight,
    },
    Check {
        name: "axpy",
        run: run_axpy,
        expect: expect_axpy,
    },
    Check {
        name: "integer_dots",
        run: run_integer_dots,
        expect: expect_integer_dots,
    },
    Check {
        name: "find_between",
        run: run_find_between,
        expect: expect_find_between,
    },
    Check {
        name: "sum_rows",
        run: run_sum_rows,
        expect: expect_sum_rows,
    },
    Check {
        name: "dot_tile",
        run: run_dot_tile,
        expect: expect_dot_tile,
    },
    Check {
        name: "dot_all",
        run: run_dot_all,
        expect: expect_dot_all,
    },
    Check {
        name: "sum_tile",
        run: run_sum_tile,
        expect: expect_sum_tile,
    },
    Check {
        name: "add_tile",
        run: run_add_tile,
        expect: expect_add_tile,
    },
    Check {
        name: "adamw",
        run: run_adamw,
        expect: expect_adamw,
    },
    Check {
        name: "adamw_scaled",
        run: run_adamw_scaled,
        expect: expect_adamw_scaled,
    },
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

fn run_dot(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let a = unaligned(inputs, &inputs.row("a"));
    let b = inputs.row("b");
    vec![kernels.dot(a.get(), &b)]
}

fn expect_dot(inputs: &KernelInputs) -> Vec<Expected> {
    vec![dot(&inputs.row("a"), &inputs.row("b"))]
}

fn run_dot_eight(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let a = Unaligned::new(&inputs.eight_row(), inputs.offset, 7);
    vec![kernels.dot_eight(a.get(), &inputs.row("b"))]
}

fn expect_dot_eight(inputs: &KernelInputs) -> Vec<Expected> {
    let a: Vec<f32> = inputs.eight_row().into_iter().map(f32::from).collect();
    vec![dot(&a, &inputs.row("b"))]
}

const ALPHA: f32 = -1.7;

fn run_axpy(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let mut y = unaligned(inputs, &inputs.row("y"));
    kernels.axpy(ALPHA, &inputs.row("x"), y.get_mut());
    y.finish()
}

fn run_axpy_eight(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let x = Unaligned::new(&inputs.eight_row(), inputs.offset, 7);
    let mut y = unaligned(inputs, &inputs.row("y"));
    kernels.axpy_eight(ALPHA, x.get(), y.get_mut());
    y.finish()
}

fn expect_axpy(inputs: &KernelInputs) -> Vec<Expected> {
    expect_sum(&inputs.row("x"), &inputs.row("y"))
}

fn expect_axpy_eight(inputs: &KernelInputs) -> Vec<Expected> {
    let x: Vec<f32> = inputs.eight_row().into_iter().map(f32::from).collect();
    expect_sum(&x, &inputs.row("y"))
}

fn expect_sum(x: &[f32], y: &[f32]) -> Vec<Expected> {
    (x.iter().zip(y))
        .map(|(&x, &y)| sum([f64::from(y), f64::from(ALPHA) * f64::from(x)]))
        .collect()
}

fn integers(inputs: &KernelInputs) -> (Vec<i16>, Vec<i8>) {
    (
        inputs.integers("x", inputs.len, |bits| bits as i16),
        inputs.integers("matrix", N_ROWS * inputs.len, |bits| bits as i8),
    )
}

/// Integer results as floats, in two halves that are exact.
fn halves(value: i64) -> [i64; 2] {
    [value >> 16, value & 0xFFFF]
}

fn run_integer_dots(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let (x, matrix) = integers(inputs);
    let (x, matrix) = (
        Unaligned::new(&x, inputs.offset, 7),
        Unaligned::new(&matrix, inputs.offset, 7),
    );
    let rows = inputs.rows();
    let mut out = Unaligned::new(&vec![7; rows.len()], inputs.offset, 7);
    kernels.integer_dots(x.get(), matrix.get(), &rows, out.get_mut());
    out.finish()
        .into_iter()
        .flat_map(|dot| halves(dot.into()))
        .map(|half| half as f32)
        .collect()
}

fn expect_integer_dots(inputs: &KernelInputs) -> Vec<Expected> {
    let (x, matrix) = integers(inputs);
    let dots = inputs.rows().into_iter().map(|row| {
        let row = &matrix[row as usize * x.len()..][..x.len()];
        (x.iter().zip(row))
            .map(|(&x, &w)| i64::from(x) * i64::from(w))
            .sum()
    });
    dots.flat_map(halves)
        .map(|half| Expected::exact(half as f64))
        .collect()
}

/// Values of which many lie on the bounds.
fn searched(inputs: &KernelInputs) -> Vec<f32> {
    let choices = [0.0, -0.0, 0.25, 0.5, 1.0, 2.0, 1e-40, -1e30, 1e30];
    inputs.integers("searched", inputs.len, |bits| choices[bits as usize % 9])
}

const FACTORS: [f32; 2] = [0.5, 1.0];
const RANGES: [std::ops::Range<f32>; 4] = [0.0..0.5, 0.25..f32::INFINITY, 0.5..0.5, -1.0..1e-40];

/// The positions for every factor and range, each list after its length.
fn run_find_between(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let x = unaligned(inputs, &searched(inputs));
    let mut all = Vec::new();
    for factor in FACTORS {
        for range in RANGES {
            let mut found = vec![7];
            kernels.find_between(factor, x.get(), range, &mut found);
            all.push(found.len() as f32);
            all.extend(found.iter().map(|&position| position as f32));
        }
    }
    all
}

fn expect_find_between(inputs: &KernelInputs) -> Vec<Expected> {
    let mut all = Vec::new();
    for factor in FACTORS {
        for range in RANGES {
            let mut found = Vec::new();
            for (position, x) in searched(inputs).into_iter().enumerate() {
                let product = factor * x;
                if range.start <= product && product < range.end {
                    found.push(Expected::exact(position as f64));
                }
            }
            all.push(Expected::exact(found.len() as f64));
            all.extend(found);
        }
    }
    all
}

/// One coefficient per row, or one per row and label of a tile.
fn coefficients(inputs: &KernelInputs, per_row: usize) -> Vec<f32> {
    inputs.values("coefficients", per_row * inputs.rows().len())
}

/// Entry of the matrix.
fn entry(inputs: &KernelInputs, matrix: &[f32], row: u32, column: usize) -> f64 {
    f64::from(matrix[row as usize * inputs.len + column])
}

fn run_sum_rows(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let matrix = unaligned(inputs, &inputs.matrix());
    let mut out = unaligned(inputs, &inputs.row("overwritten"));
    let coefficients = coefficients(inputs, 1);
    kernels.sum_rows(&coefficients, matrix.get(), &inputs.rows(), out.get_mut());
    out.finish()
}

fn expect_sum_rows(inputs: &KernelInputs) -> Vec<Expected> {
    let (coefficients, matrix) = (coefficients(inputs, 1), inputs.matrix());
    let rows = inputs.rows();
    let column = |column: usize| {
        let terms = rows.iter().zip(&coefficients);
        sum(terms.map(|(&row, &c)| f64::from(c) * entry(inputs, &matrix, row, column)))
    };
    (0..inputs.len).map(column).collect()
}

fn run_dot_tile(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let matrix = unaligned(inputs, &inputs.matrix());
    let tile = inputs.tile().map(|row| unaligned(inputs, &row));
    let w: [&[f32]; TILE] = std::array::from_fn(|label| tile[label].get());
    let rows = inputs.rows();
    let mut out = unaligned(inputs, &vec![7.0; TILE * rows.len()]);
    kernels.dot_tile(w, matrix.get(), &rows, out.get_mut());
    out.finish()
}

fn expect_dot_tile(inputs: &KernelInputs) -> Vec<Expected> {
    let (tile, matrix) = (inputs.tile(), inputs.matrix());
    let mut all = Vec::new();
    for row in inputs.rows() {
        let row = &matrix[row as usize * inputs.len..][..inputs.len];
        all.extend(tile.iter().map(|w| dot(w, row)));
    }
    all
}

/// Seven rows, so that no tile divides them.
fn left_rows(inputs: &KernelInputs) -> Vec<f32> {
    inputs.values("left", 7 * inputs.len)
}

fn run_dot_all(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let (left, right) = (
        unaligned(inputs, &left_rows(inputs)),
        unaligned(inputs, &inputs.matrix()),
    );
    let n_products = if inputs.len == 0 { 0 } else { 7 * N_ROWS };
    let mut out = unaligned(inputs, &vec![7.0; n_products]);
    kernels.dot_all(left.get(), right.get(), inputs.len, out.get_mut());
    out.finish()
}

fn expect_dot_all(inputs: &KernelInputs) -> Vec<Expected> {
    let (left, right, width) = (left_rows(inputs), inputs.matrix(), inputs.len.max(1));
    let products = left
        .chunks_exact(width)
        .flat_map(|left| right.chunks_exact(width).map(move |right| dot(left, right)));
    products.collect()
}

fn run_sum_tile(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let matrix = unaligned(inputs, &inputs.matrix());
    let mut out = unaligned(inputs, &inputs.values("overwritten", TILE * inputs.len));
    let coefficients = coefficients(inputs, TILE);
    kernels.sum_tile(&coefficients, matrix.get(), &inputs.rows(), out.get_mut());
    out.finish()
}

fn expect_sum_tile(inputs: &KernelInputs) -> Vec<Expected> {
    let (coefficients, matrix) = (coefficients(inputs, TILE), inputs.matrix());
    let rows = inputs.rows();
    let mut all = Vec::new();
    for label in 0..TILE {
        for column in 0..inputs.len {
            let terms = rows.iter().zip(coefficients.chunks_exact(TILE));
            all.push(sum(terms.map(|(&row, coefficients)| {
                f64::from(coefficients[label]) * entry(inputs, &matrix, row, column)
            })));
        }
    }
    all
}

fn run_add_tile(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let mut matrix = unaligned(inputs, &inputs.matrix());
    let tile = inputs.tile().map(|row| unaligned(inputs, &row));
    let w: [&[f32]; TILE] = std::array::from_fn(|label| tile[label].get());
    let coefficients = coefficients(inputs, TILE);
    kernels.add_tile(&coefficients, w, matrix.get_mut(), &inputs.rows());
    matrix.finish()
}

fn expect_add_tile(inputs: &KernelInputs) -> Vec<Expected> {
    let (coefficients, matrix, tile) = (coefficients(inputs, TILE), inputs.matrix(), inputs.tile());
    let rows = inputs.rows();
    let mut all = Vec::new();
    for row in 0..N_ROWS as u32 {
        for column in 0..inputs.len {
            let mut terms = vec![entry(inputs, &matrix, row, column)];
            for (&other, coefficients) in rows.iter().zip(coefficients.chunks_exact(TILE)) {
                if other == row {
                    let labels = tile.iter().zip(coefficients);
                    terms.extend(labels.map(|(w, &c)| f64::from(c) * f64::from(w[column])));
                }
            }
            all.push(sum(terms));
        }
    }
    all
}

const STEP: AdamWStep = AdamWStep {
    learning_rate: 0.01,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weight_decay: 0.01,
    bias_correction1: 0.19,
    bias_correction2: 0.002,
};

/// Second moments: never negative.
fn squares(inputs: &KernelInputs) -> Vec<f32> {
    inputs.row("v").iter().map(|v| v.abs()).collect()
}

fn run_adamw(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let [mut w, mut m] = ["w", "m"].map(|name| unaligned(inputs, &inputs.row(name)));
    let mut v = unaligned(inputs, &squares(inputs));
    let gradient = inputs.row("gradient");
    kernels.adamw(&STEP, w.get_mut(), &gradient, m.get_mut(), v.get_mut());
    [w.finish(), m.finish(), v.finish()].concat()
}

fn expect_adamw(inputs: &KernelInputs) -> Vec<Expected> {
    let (beta2, gradient, v) = (
        f64::from(STEP.beta2),
        inputs.row("gradient"),
        squares(inputs),
    );
    let new_v: Vec<Expected> = gradient
        .iter()
        .zip(&v)
        .map(|(&g, &v)| {
            sum([
                beta2 * f64::from(v),
                (1.0 - beta2) * f64::from(g) * f64::from(g),
            ])
        })
        .collect();
    let denominators = new_v.iter().map(|v| {
        let v_hat = v.value / f64::from(STEP.bias_correction2);
        v_hat.sqrt() + f64::from(STEP.epsilon)
    });
    [moved(inputs, denominators), new_v].concat()
}

/// The weights and first moments of an update with these denominators √v̂ + ε.
fn moved(inputs: &KernelInputs, denominators: impl Iterator<Item = f64>) -> Vec<Expected> {
    let [w, m, gradient] = ["w", "m", "gradient"].map(|name| inputs.row(name));
    let beta1 = f64::from(STEP.beta1);
    let rate = f64::from(STEP.learning_rate);
    let (mut new_w, mut new_m) = (Vec::new(), Vec::new());
    for (at, denominator) in denominators.enumerate() {
        let [w, m, g] = [w[at], m[at], gradient[at]].map(f64::from);
        let m = sum([beta1 * m, (1.0 - beta1) * g]);
        let per_m = rate / f64::from(STEP.bias_correction1) / denominator;
        let decay = rate * f64::from(STEP.weight_decay) * w;
        let value = w - per_m * m.value - decay;
        let magnitude = w.abs() + per_m * m.value.abs();
        new_w.push(Expected {
            value,
            tolerance: per_m * m.tolerance + 12.0 * (U * magnitude + TINY),
        });
        new_m.push(m);
    }
    [new_w, new_m].concat()
}

const DENOMINATOR: f32 = 0.3;

fn run_adamw_scaled(kernels: Kernels, inputs: &KernelInputs) -> Vec<f32> {
    let [mut w, mut m] = ["w", "m"].map(|name| unaligned(inputs, &inputs.row(name)));
    let gradient = inputs.row("gradient");
    kernels.adamw_scaled(&STEP, DENOMINATOR, w.get_mut(), &gradient, m.get_mut());
    [w.finish(), m.finish()].concat()
}

fn expect_adamw_scaled(inputs: &KernelInputs) -> Vec<Expected> {
    moved(
        inputs,
        std::iter::repeat_n(f64::from(DENOMINATOR), inputs.len),
    )
}

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
        match p < f64::from(THRESHOLD) {
            true => losses.push(-(-p).ln_1p()),
            false => found.push(Expected::exact(at as f64)),
        }
    }
    all.push(Expected::exact(found.len() as f64));
    all.extend(found);
    let mut total = sum(losses);
    total.tolerance += 3e-6 * total.value;
    all.push(total);
    all
}
