//! The rate of a plain matrix product on this machine: the yardstick of training steps.

use std::time::Instant;

use rayon::prelude::*;

use crate::kernels::{Kernels, Output, View, ViewMut};

/// Side of the square blocks; one per thread.
const SIDE: usize = 1024;

/// Operands of a product on every thread of the pool.
pub struct Sgemm {
    kernels: Kernels,
    blocks: Vec<[Vec<f32>; 3]>,
}

impl Sgemm {
    /// Blocks for the threads of the current pool, multiplied once to warm up.
    #[allow(clippy::new_without_default)] // it works for a while
    pub fn new() -> Self {
        Sgemm::on(Kernels::detect())
    }

    /// The same with vectors of at most 256 bits: wider ones speed up the product far more than the rest of a training.
    pub fn narrow() -> Self {
        let mut all = Kernels::all().into_iter();
        let narrow = all.find(|kernels| kernels.name() != "AVX-512");
        Sgemm::on(narrow.unwrap_or(Kernels::Scalar))
    }

    fn on(kernels: Kernels) -> Self {
        let block = || {
            let values = |phase: usize| {
                let value = |at: usize| ((at * 7 + phase) % 13) as f32 / 13.0 - 0.5;
                (0..SIDE * SIDE).map(value).collect::<Vec<f32>>()
            };
            [values(0), values(5), vec![0.0; SIDE * SIDE]]
        };
        let blocks = (0..rayon::current_num_threads()).map(|_| block()).collect();
        let mut sgemm = Sgemm { kernels, blocks };
        sgemm.measure();
        sgemm
    }

    /// GFLOPS of one product on every thread.
    pub fn measure(&mut self) -> f64 {
        let n_flops = 2.0 * (SIDE as f64).powi(3) * self.blocks.len() as f64;
        let started = Instant::now();
        let kernels = self.kernels;
        self.blocks.par_iter_mut().for_each(|[a, b, out]| {
            let (a, b) = (View::rows(a, SIDE), View::rows(b, SIDE));
            let out = ViewMut::rows(out, SIDE);
            kernels.product_into([SIDE; 3], a, b, out, Output::Replace);
        });
        n_flops / started.elapsed().as_secs_f64() / 1e9
    }
}
