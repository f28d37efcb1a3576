//! The trained ranker: one row of weights a label.
//!
//! Word weights are sparse rows, sorted by word; the embedding's weights are a dense matrix, since hardly any of
//! them is small. A label row is read as a whole when the label is scored, so its words and weights lie together.

use crate::config::RankerLoss;
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::{CsrMatrix, Matrix};

/// A linear classifier per label over [bow/‖bow‖, φ/‖φ‖].
///
/// Invariants: words, dense and intercepts have one row a label; every number is finite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranker {
    parts: RankerParts,
}

/// What a ranker consists of, for saving and loading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankerParts {
    /// The loss it was trained with, which decides how a margin becomes a probability.
    pub loss: RankerLoss,
    /// Word weights, L×V.
    pub words: CsrMatrix,
    /// Embedding weights, L×d; d is 0 for a ranker over words only.
    pub dense: Matrix,
    /// Intercepts, L.
    pub intercepts: Vec<f32>,
}

impl Ranker {
    /// Bytes of so many word weights, and of embedding weights of this size.
    pub(crate) fn n_bytes(n_labels: usize, n_weights: usize, n_dense: usize) -> usize {
        8 * n_weights + 4 * n_labels * n_dense
    }

    /// A ranker over these parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if the parts do not fit each other or hold a number that is not finite.
    pub(crate) fn from_parts(parts: RankerParts) -> Result<Self> {
        let n_labels = parts.words.n_rows();
        for (what, count) in [
            ("embedding rows", parts.dense.n_rows()),
            ("intercepts", parts.intercepts.len()),
        ] {
            if count != n_labels {
                return Err(Error::InvalidModel(format!(
                    "ranker with {count} {what} for {n_labels} word rows"
                )));
            }
        }
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        if !finite(parts.dense.values()) || !finite(&parts.intercepts) {
            return Err(Error::InvalidModel(
                "ranker with a weight that is not finite".into(),
            ));
        }
        Ok(Ranker { parts })
    }

    /// The parts.
    pub(crate) fn parts(&self) -> &RankerParts {
        &self.parts
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
    /// from the margin 1 on, so q orders candidates only together with p.
    #[inline]
    pub(crate) fn probability(&self, margin: f32) -> f32 {
        match self.parts.loss {
            RankerLoss::SquaredHinge => (-(1.0 - margin).max(0.0).powi(3)).exp(),
            RankerLoss::Logistic => 1.0 / (1.0 + (-margin).exp()),
        }
    }

    /// The row of a label: its words, their weights, its embedding weights, its intercept.
    #[inline]
    pub(super) fn label(&self, label: LabelId) -> (&[u32], &[f32], &[f32], f32) {
        let (columns, weights) = self.parts.words.row(label.idx());
        (
            columns,
            weights,
            self.parts.dense.row(label.idx()),
            self.parts.intercepts[label.idx()],
        )
    }
}
