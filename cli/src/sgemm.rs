//! The rate of a plain matrix product on this machine: the yardstick of training steps.

use std::time::Instant;

use elias::matrix::{Output, View, product};
use rayon::prelude::*;

/// Side of the square blocks; one a thread.
const SIDE: usize = 1024;

/// Operands of a product on every thread of the pool.
pub(crate) struct Sgemm {
    blocks: Vec<[Vec<f32>; 3]>,
}

impl Sgemm {
    /// Blocks for the threads of the current pool, multiplied once to warm up.
    pub(crate) fn new() -> Self {
        let block = || {
            let values = |phase: usize| {
                let value = |at: usize| ((at * 7 + phase) % 13) as f32 / 13.0 - 0.5;
                (0..SIDE * SIDE).map(value).collect::<Vec<f32>>()
            };
            [values(0), values(5), vec![0.0; SIDE * SIDE]]
        };
        let blocks = (0..rayon::current_num_threads()).map(|_| block()).collect();
        let mut sgemm = Sgemm { blocks };
        sgemm.measure();
        sgemm
    }

    /// GFLOPS of one product on every thread.
    pub(crate) fn measure(&mut self) -> f64 {
        let n_flops = 2.0 * (SIDE as f64).powi(3) * self.blocks.len() as f64;
        let started = Instant::now();
        self.blocks.par_iter_mut().for_each(|[a, b, out]| {
            let (a, b) = (View::rows(a, SIDE), View::rows(b, SIDE));
            product([SIDE; 3], a, b, out, Output::Replace);
        });
        n_flops / started.elapsed().as_secs_f64() / 1e9
    }
}

/// The middle of the values; NaN if there is none.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value below which this share of the values lies; NaN if there is none.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = [5.0, 1.0, 3.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(percentile(&values, 0.99), 5.0);
        assert!(median(&[]).is_nan());
    }
}
