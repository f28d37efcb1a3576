//! The trained ranker: one row of weights per label.
//!
//! Word weights are sparse rows, sorted by word; embedding weights are a dense matrix, since few of them are small.
//! Scoring a label reads its whole row, so its words and weights are contiguous.

use super::ClusterTree;
use crate::config::RankerLoss;
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::{CsrMatrix, Matrix};

/// A linear classifier per label over [bow/‖bow‖, φ/‖φ‖].
///
/// Invariants: words, dense and intercepts have one row per label; every value is finite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranker {
    parts: RankerParts,
}

/// The parts of a ranker, for saving and loading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankerParts {
    /// The loss it was trained with, which determines how a margin becomes a probability.
    pub loss: RankerLoss,
    /// Word weights, L×V.
    pub words: CsrMatrix,
    /// Embedding weights, L×d; d is 0 for a ranker over words only.
    pub dense: Matrix,
    /// Intercepts, L.
    pub intercepts: Vec<f32>,
    /// The levels above the labels, if their negatives come from clusters.
    pub clusters: Option<ClusterTree>,
}

/// The classifier of one label.
pub(super) struct LabelRow<'a> {
    pub(super) words: &'a [u32],
    pub(super) word_weights: &'a [f32],
    pub(super) dense: &'a [f32],
    pub(super) intercept: f32,
}

impl Ranker {
    /// Bytes of so many word weights, and of embedding weights of this size.
    pub(crate) fn n_bytes(n_labels: usize, n_weights: usize, n_dense: usize) -> usize {
        8 * n_weights + 4 * n_labels * n_dense
    }

    /// Bytes of the points of each label and of each cluster while it is trained, with so many labels of points.
    pub(crate) fn n_point_bytes(n_label_entries: usize) -> usize {
        24 * n_label_entries
    }

    /// A ranker from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if the parts do not fit together or a value is not finite.
    pub(crate) fn from_parts(parts: RankerParts) -> Result<Self> {
        let n_labels = parts.words.n_rows();
        for (what, count) in [
            ("embedding rows", parts.dense.n_rows()),
            ("intercepts", parts.intercepts.len()),
        ] {
            if count != n_labels {
                return Err(Error::InvalidModel(format!(
                    "the ranker has {count} {what} for {n_labels} word rows"
                )));
            }
        }
        if let Some((of, _, weights, _)) = parts.clusters.as_ref().map(ClusterTree::parts)
            && (of.len(), weights.n_rows()) != (n_labels, parts.words.n_cols())
        {
            return Err(Error::InvalidModel(format!(
                "the ranker has clusters of {} labels and {} words, not of {n_labels} and {}",
                of.len(),
                weights.n_rows(),
                parts.words.n_cols()
            )));
        }
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        if !finite(parts.dense.values()) || !finite(&parts.intercepts) {
            return Err(Error::InvalidModel(
                "the ranker has a weight that is not finite".into(),
            ));
        }
        Ok(Ranker { parts })
    }

    /// The parts.
    pub(crate) fn parts(&self) -> &RankerParts {
        &self.parts
    }

    /// The levels above the labels, if there are any.
    pub(crate) fn clusters(&self) -> Option<&ClusterTree> {
        self.parts.clusters.as_ref()
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.parts.words.n_rows()
    }

    /// Number of words, V.
    pub(crate) fn n_words(&self) -> usize {
        self.parts.words.n_cols()
    }

    /// Embedding size, d; 0 for a ranker over words only.
    pub(crate) fn n_dense(&self) -> usize {
        self.parts.dense.n_cols()
    }

    /// The score q of a margin z, between 0 and 1.
    ///
    /// Logistic loss: σ(z), as in the paper. Squared hinge: exp(−max(0, 1 − z)³), as in the released code; it is 1
    /// for margins of 1 and above, so q orders candidates only together with p.
    #[inline]
    pub(crate) fn probability(&self, margin: f32) -> f32 {
        match self.parts.loss {
            RankerLoss::SquaredHinge => self.log_probability(margin).exp(),
            RankerLoss::Logistic => 1.0 / (1.0 + (-margin).exp()),
        }
    }

    /// ln q of a margin, which still tells scores apart that are too small for a float.
    #[inline]
    pub(crate) fn log_probability(&self, margin: f32) -> f32 {
        match self.parts.loss {
            RankerLoss::SquaredHinge => -(1.0 - margin).max(0.0).powi(3),
            RankerLoss::Logistic => margin.min(0.0) - (-margin.abs()).exp().ln_1p(),
        }
    }

    /// The row of a label.
    #[inline]
    pub(super) fn label(&self, label: LabelId) -> LabelRow<'_> {
        let (words, word_weights) = self.parts.words.row(label.idx());
        LabelRow {
            words,
            word_weights,
            dense: self.parts.dense.row(label.idx()),
            intercept: self.parts.intercepts[label.idx()],
        }
    }
}
