//! `elias bench kernels`: speed of the vector kernels on one thread, and of the matrix product on all threads.

use clap::Args;
use elias::internals::{Sgemm, measure_kernels, median};

use super::{Group, write_groups};

/// Measurements of the matrix product; the median is reported.
const N_ROUNDS: usize = 5;

/// Measure the vector kernels
///
/// Kernels run on one thread, on rows of 256 values that stay in the cache; sgemm runs on all threads.
#[derive(Args)]
pub(super) struct BenchKernels {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BenchKernels {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let figures = |gflops, gb_per_s, ns_per_call| {
            vec![
                ("gflops", gflops),
                ("gb_per_s", gb_per_s),
                ("ns_per_call", ns_per_call),
            ]
        };
        let kernels = measure_kernels().into_iter();
        let mut groups: Vec<Group> = kernels
            .map(|one| Group {
                name: format!("{} {}", one.instructions, one.name),
                figures: figures(one.gflops, one.gb_per_s, one.ns_per_call),
            })
            .collect();
        let mut sgemm = Sgemm::new();
        let rates: Vec<f64> = (0..N_ROUNDS).map(|_| sgemm.measure()).collect();
        groups.push(Group {
            name: "sgemm".to_string(),
            figures: figures(median(&rates), f64::NAN, f64::NAN),
        });
        write_groups(&groups, self.json)
    }
}
