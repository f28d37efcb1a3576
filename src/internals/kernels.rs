//! Rates of the vector kernels on one thread, over rows that stay in the cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::median;
use crate::kernels::{AdamWStep, Kernels, Output, TILE, View, ViewMut};

/// Row length.
const DIM: usize = 256;
/// Rows per call of the gathering kernels.
const N_ROWS: usize = 64;
/// Rows of the matrix they gather from: a batch.
const N_POINTS: usize = 256;
/// Side of the square matrices that are multiplied.
const SIDE: usize = 128;
/// Duration of one round.
const SPAN: Duration = Duration::from_millis(40);
/// Rounds per kernel; the median counts.
const N_ROUNDS: usize = 5;

/// The rate of one kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelFigures {
    /// The instruction set.
    pub instructions: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Floating-point operations.
    pub gflops: f64,
    /// Bytes read and written.
    pub gb_per_s: f64,
    /// Time of one call.
    pub ns_per_call: f64,
}

/// Measures every kernel with every instruction set that the machine has.
pub fn measure_kernels() -> Vec<KernelFigures> {
    Kernels::all().into_iter().flat_map(measure).collect()
}

fn measure(kernels: Kernels) -> Vec<KernelFigures> {
    let values = |n: usize| -> Vec<f32> {
        (0..n)
            .map(|at| ((at * 7) % 13) as f32 / 13.0 - 0.5)
            .collect()
    };
    let (x, mut y) = (values(DIM), values(DIM));
    let (mut m, mut v) = (vec![0.0; DIM], vec![1.0; DIM]);
    let mut matrix = values(N_POINTS * DIM);
    let rows: Vec<u32> = (0..N_ROWS as u32).map(|row| row * 37 % 256).collect();
    let coefficients = vec![1e-6; N_ROWS];
    let step = AdamWStep {
        learning_rate: 1e-6,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.01,
        bias_correction1: 0.1,
        bias_correction2: 0.001,
    };

    let (one, many) = (DIM as f64, (N_ROWS * DIM) as f64);
    let mut figures = Vec::new();
    // A call's flops and the bytes it reads and writes.
    let mut add = |name: &'static str, n_flops: f64, n_bytes: f64, call: &mut dyn FnMut()| {
        let seconds = seconds_per_call(call);
        figures.push(KernelFigures {
            instructions: kernels.name(),
            name,
            gflops: n_flops / seconds / 1e9,
            gb_per_s: n_bytes / seconds / 1e9,
            ns_per_call: 1e9 * seconds,
        });
    };
    add("dot", 2.0 * one, 8.0 * one, &mut || {
        black_box(kernels.dot(black_box(&x), &y));
    });
    add("axpy", 2.0 * one, 12.0 * one, &mut || {
        kernels.axpy(1e-9, black_box(&x), &mut y);
    });
    let mut sum = vec![0.0; DIM];
    add("sum_rows", 2.0 * many, 4.0 * many, &mut || {
        kernels.sum_rows(black_box(&coefficients), &matrix, &rows, &mut sum);
    });
    // A tile reads each row once for several labels.
    let tile = TILE as f64;
    let labels = values(TILE * DIM);
    let labels: [&[f32]; TILE] = std::array::from_fn(|label| &labels[label * DIM..][..DIM]);
    let coefficients = vec![1e-6; N_ROWS * TILE];
    let mut out = vec![0.0; N_ROWS * TILE];
    add("dot_tile", 2.0 * tile * many, 4.0 * many, &mut || {
        kernels.dot_tile(black_box(labels), &matrix, &rows, &mut out);
    });
    let mut sums = vec![0.0; TILE * DIM];
    add("sum_tile", 2.0 * tile * many, 4.0 * many, &mut || {
        kernels.sum_tile(black_box(&coefficients), &matrix, &rows, &mut sums);
    });
    add("add_tile", 2.0 * tile * many, 8.0 * many, &mut || {
        kernels.add_tile(black_box(&coefficients), labels, &mut matrix, &rows);
    });
    add("adamw", 14.0 * one, 28.0 * one, &mut || {
        kernels.adamw(black_box(&step), &mut y, &x, &mut m, &mut v);
    });
    let square = (SIDE * SIDE) as f64;
    let (a, b, mut product) = (
        values(SIDE * SIDE),
        values(SIDE * SIDE),
        values(SIDE * SIDE),
    );
    let n_flops = 2.0 * square * SIDE as f64;
    add("product", n_flops, 12.0 * square, &mut || {
        let (a, b) = (View::rows(black_box(&a), SIDE), View::rows(&b, SIDE));
        let out = ViewMut::rows(&mut product, SIDE);
        kernels.product_into([SIDE; 3], a, b, out, Output::Replace);
    });
    let mut exponents = values(DIM);
    add("exp_sum", 12.0 * one, 8.0 * one, &mut || {
        exponents.copy_from_slice(&x);
        black_box(kernels.exp_sum(&mut exponents, 0.5));
    });
    figures
}

/// Seconds of one call, the median of several rounds.
fn seconds_per_call(call: &mut dyn FnMut()) -> f64 {
    let round = |_| {
        let started = Instant::now();
        let mut n_calls = 0u32;
        while started.elapsed() < SPAN {
            for _ in 0..100 {
                call();
            }
            n_calls += 100;
        }
        started.elapsed().as_secs_f64() / f64::from(n_calls)
    };
    median(&(0..N_ROUNDS).map(round).collect::<Vec<f64>>())
}
