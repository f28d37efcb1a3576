//! Inner parts, for the programs that measure this library: kernels, the matrix product, encoders, single parts of the
//! method, and the work of a query.
//!
//! No part of the public interface: it changes without notice. Rates are measured on the caller's thread pool.

mod bundled;
#[cfg(feature = "transformer")]
mod encoders;
mod kernels;
mod parts;
mod queries;
mod sgemm;

pub use bundled::{BUNDLED_TEST, BUNDLED_TRAIN};
#[cfg(feature = "transformer")]
pub use encoders::{EncoderBench, EncoderFigures, KNOWN_SHAPES};
pub use kernels::{KernelFigures, measure_kernels};
pub use parts::{cluster_labels, clusters_per_process, train_cut, train_stages};
pub use queries::{QueryWork, points, predict_points, query_work};
pub use sgemm::Sgemm;

pub use crate::communicator::{Counted, MAX_PROCESSES};
pub use crate::config::default_n_clusters;
pub use crate::features::PointSet;
pub use crate::insight::svg;
pub use crate::insight::{CheckpointTimes, PhaseTime, TrainingTimes};
pub use crate::store::{
    CheckedFile, Description, FileRecord, FileState, FilesCheck, check_files, describe,
    is_unfinished,
};
pub use crate::training::size;

/// The median of the values; NaN if there is none.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value below which this share of the values lies; NaN if there is none.
pub fn percentile(values: &[f64], share: f64) -> f64 {
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
