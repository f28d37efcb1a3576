//! Label classifiers: the rows of W_L that score shortlisted labels.
//!
//! For an embedding φ and a shortlisted label ℓ the score is σ(w_ℓ·φ + b_ℓ). Only shortlisted rows are read or
//! written, so a step costs O(K·d), never O(L·d). This module does not choose the shortlist; see `index`.

mod coarse;
mod weights;

pub(crate) use coarse::{CoarseRows, CoarseScratch};
pub(crate) use weights::LabelWeights;

use crate::config::LabelPrecision;
use crate::ids::LabelRow;

/// Label classifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelClassifiers {
    /// W_L, L×d.
    pub weights: LabelWeights,
    /// b_L, one per label.
    pub bias: Vec<f32>,
    /// W_L in eight bits, once it no longer changes: predictions are faster and unchanged. Code that changes W_L
    /// must drop them.
    pub coarse: Option<CoarseRows>,
}

impl LabelClassifiers {
    /// The classifiers as they are stored after training: in this precision, with their coarse rows.
    pub(crate) fn into_inference(mut self, precision: LabelPrecision) -> Self {
        if precision == LabelPrecision::Half {
            self.weights = self.weights.into_half();
        }
        self.coarse = Some(CoarseRows::new(&self.weights));
        self
    }

    /// Bytes of W_L and b_L while they are trained.
    pub(crate) fn n_bytes(n_labels: usize, dim: usize) -> usize {
        4 * n_labels * (dim + 1)
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.bias.len()
    }

    /// σ(w·φ + b) of one label; NaN if the product is not finite, so that no damaged row looks like a certain label.
    #[inline]
    pub(crate) fn score(&self, row: LabelRow, embedding: &[f32]) -> f32 {
        let z = self.weights.dot(row.idx(), embedding) + self.bias[row.idx()];
        if z.is_finite() { sigmoid(z) } else { f32::NAN }
    }
}

/// σ(z) = 1 / (1 + e^−z).
#[inline]
pub(crate) fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}
