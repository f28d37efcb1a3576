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
    /// b_L, a label each.
    pub bias: Vec<f32>,
    /// W_L in eight bits, once it does not change any more: predictions are then faster, and the same. Whoever changes
    /// W_L nevertheless drops them.
    pub coarse: Option<CoarseRows>,
}

impl LabelClassifiers {
    /// The same classifiers as they are kept after training: in this precision, with their coarse rows.
    pub(crate) fn into_inference(mut self, precision: LabelPrecision) -> Self {
        if precision == LabelPrecision::Half {
            self.weights = self.weights.into_half();
        }
        self.coarse = Some(CoarseRows::new(&self.weights));
        self
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.bias.len()
    }

    /// σ(w·φ + b) of one label; NaN if the product is not finite, so that no damaged row looks like a sure label.
    #[inline]
    pub(crate) fn score(&self, row: LabelRow, embedding: &[f32]) -> f32 {
        let z = self.weights.dot(row.idx(), embedding) + self.bias[row.idx()];
        match z.is_finite() {
            true => sigmoid(z),
            false => f32::NAN,
        }
    }
}

/// σ(z) = 1 / (1 + e^−z).
#[inline]
pub(crate) fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}
