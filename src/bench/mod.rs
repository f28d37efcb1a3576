//! Measurements that need the inside of the library: kernels, the matrix product, encoders, single
//! parts of the method, and the work of a query.
//!
//! `elias bench` prints them. Rates are measured on the caller's thread pool; run them on an idle machine.

#[cfg(feature = "transformer")]
mod encoders;
mod kernels;
mod parts;
mod queries;
mod sgemm;

#[cfg(feature = "transformer")]
pub use encoders::{EncoderBench, EncoderFigures, KNOWN_SHAPES};
pub use kernels::{KernelFigures, measure_kernels};
pub use parts::{cluster_labels, clusters_per_rank, train_stages};
pub use queries::{QueryWork, query_work};
pub use sgemm::Sgemm;

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
