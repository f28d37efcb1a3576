//! Label classifiers: the rows of W_L that score shortlisted labels.
//!
//! For an embedding φ and a shortlisted label ℓ the score is σ(w_ℓ·φ + b_ℓ). Only shortlisted rows are read or
//! written, so a step costs O(K·d), never O(L·d). This module does not choose the shortlist; see `index`.

mod coarse;

pub(crate) use coarse::{Bounds, CoarseRows, CoarseScratch};

use crate::config::Precision;
use crate::ids::LabelRow;
use crate::matrix::WeightRows;

/// Label classifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelClassifiers {
    /// W_L, L×d.
    pub weights: WeightRows,
    /// b_L, one per label.
    pub bias: Vec<f32>,
    /// W_L in eight bits beside W_L in full, once it no longer changes: predictions are faster and unchanged. Code
    /// that changes W_L must drop them.
    pub coarse: Option<CoarseRows>,
}

impl LabelClassifiers {
    /// The classifiers as they are stored after training: in this precision, full rows with coarse ones.
    pub(crate) fn into_inference(mut self, precision: Precision) -> Self {
        if precision == Precision::Eight {
            self.weights = self.weights.into_eight();
        }
        self.coarse = CoarseRows::new(&self.weights);
        self
    }

    /// Bounds of w·φ from eight bits, if there are any.
    pub(crate) fn bounds(&self) -> Option<Bounds<'_>> {
        match (&self.weights, &self.coarse) {
            (WeightRows::Eight(rows), _) => Some(Bounds::exact(rows)),
            (_, Some(coarse)) => Some(coarse.bounds()),
            _ => None,
        }
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
