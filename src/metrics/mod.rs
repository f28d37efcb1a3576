//! How good a ranking is: P@k, nDCG@k, PSP@k, R@k, and recall by label frequency.
//!
//! Conventions, for a point with true labels y and a ranking r₁, r₂, …:
//!
//! - P@k is the share of true labels among the first k places, even if fewer than k labels were predicted.
//! - nDCG@k is Σ 1/log₂(i+1) over the hits at places i ≤ k, over the same sum for min(k, |y|) hits in a row.
//! - PSP@k weighs each hit with its inverse propensity; it is normalised by the best attainable value, and is
//!   the ratio of the two sums over the whole data set, not a mean of ratios.
//! - R@k is the share of y found among the first k places.
//!
//! All are in percent, accumulated in `f64`: a data set has millions of terms, which `f32` would lose.
//! Rankings are ordered by descending score, ties to the lower label id; a label ranked twice counts once, at
//! its better place. Points without true labels are skipped and counted. Relevance weights are ignored.
//! This module sees true and ranked labels, not models.

mod builder;
mod deciles;
mod propensity;
mod ranking;

pub use builder::{Metrics, MetricsBuilder, MetricsOptions};
pub use deciles::{Decile, DecilesBuilder, by_decile, decile_of_labels};
pub use propensity::{InversePropensities, Propensity, inverse_propensities, label_counts};
pub use ranking::FilterPairs;

use crate::ids::Scored;
use crate::matrix::CsrMatrix;

/// The metrics of one ranking per point; row `i` of `truth` belongs to `predictions[i]`.
///
/// To evaluate without keeping all predictions, push them into a [`MetricsBuilder`].
///
/// # Panics
/// If there are not as many predictions as points.
///
/// # Examples
/// ```
/// use elias::ids::{LabelId, Scored};
/// use elias::matrix::CsrMatrix;
/// use elias::metrics::{MetricsOptions, evaluate};
///
/// let truth = CsrMatrix::new(vec![0, 2], vec![0, 3], vec![1.0, 1.0], 4)?;
/// let ranking = [(3, 0.9), (1, 0.5), (0, 0.4)]
///     .map(|(label, score)| Scored { label: LabelId(label), score });
/// let metrics = evaluate(&truth, &[ranking.to_vec()], MetricsOptions::default());
/// assert_eq!(metrics.get("p@1"), Some(100.0));
/// assert_eq!(metrics.get("r@1"), Some(50.0));
/// # Ok::<(), elias::Error>(())
/// ```
pub fn evaluate(
    truth: &CsrMatrix,
    predictions: &[Vec<Scored>],
    options: MetricsOptions,
) -> Metrics {
    assert_eq!(
        truth.n_rows(),
        predictions.len(),
        "one prediction per point"
    );
    let mut builder = MetricsBuilder::new(options);
    for (point_idx, prediction) in predictions.iter().enumerate() {
        builder.push(truth.row(point_idx).0, prediction);
    }
    builder.finish()
}
