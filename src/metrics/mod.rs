//! How good a ranking is: P@k, nDCG@k, PSP@k, R@k, F1@k, R-precision, F1 at a threshold, recall by label frequency.
//!
//! Conventions, for a point with true labels y and a ranking r₁, r₂, …:
//!
//! - P@k is the share of true labels among the first k places, even if fewer than k labels were predicted.
//! - nDCG@k is Σ 1/log₂(i+1) over the hits at places i ≤ k, over the same sum for min(k, |y|) hits in a row.
//! - PSP@k weighs each hit with its inverse propensity; it is normalised by the best attainable value, and is
//!   the ratio of the two sums over the whole data set, not a mean of ratios.
//! - R@k is the share of y found among the first k places; average recall is the mean of R@5, R@10, …, R@50.
//! - F1@k is the harmonic mean of P@k and R@k of the data set; per point it is 2·hits/(k + |y|), and its mean is the
//!   other F1@k that is in use.
//! - R-precision is P@|y|, with the k of each point.
//!
//! All are in percent, accumulated in `f64`: a data set has millions of terms, which `f32` would lose.
//! Rankings are ordered by descending score, ties to the lower label id; a label ranked twice counts once, at
//! its better place. Points without true labels are skipped and counted. Relevance weights are ignored.
//! A metric that looks further than the answers go, such as R@100 of ten answers, is not measured.
//! This module sees true and ranked labels, not models.

mod builder;
mod cut_offs;
mod deciles;
mod propensity;
mod ranking;
mod reliability;
mod thresholds;

pub use builder::Metrics;
pub(crate) use builder::{MetricsBuilder, MetricsOptions};
pub use cut_offs::CutOffs;
pub use deciles::Decile;
pub use deciles::DecileOf;
pub(crate) use deciles::{DecilesBuilder, decile_of_labels};
pub use propensity::{LabelFrequencies, Propensity};
pub use ranking::FilterPairs;
pub use reliability::{Reliability, ReliabilityBin};
pub use thresholds::{AtThreshold, CountsByLabel, LabelFigures};
pub(crate) use thresholds::{ThresholdFigures, ThresholdsBuilder};

#[cfg(test)]
use crate::{ids::Scored, matrix::CsrMatrix};
#[cfg(test)]
mod golden_tests;

/// The metrics of one ranking per point; row `i` of `truth` belongs to `rankings[i]`.
#[cfg(test)]
fn measure(truth: &CsrMatrix, rankings: &[Vec<Scored>], options: MetricsOptions) -> Metrics {
    assert_eq!(truth.n_rows(), rankings.len(), "one ranking per point");
    let mut builder = MetricsBuilder::new(options);
    for (point_idx, ranking) in rankings.iter().enumerate() {
        builder.push(truth.row(point_idx).0, ranking);
    }
    builder.finish(usize::MAX)
}
