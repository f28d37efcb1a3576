//! Label classifiers: the rows of W_L that score shortlisted labels.
//!
//! For an embedding φ and a shortlisted label ℓ the score is σ(w_ℓ·φ + b_ℓ). Only shortlisted rows are read or
//! written, so a step costs O(K·d), never O(L·d). This module does not choose the shortlist; see `index`.

use crate::matrix::Matrix;

/// Label classifiers.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelClassifiers {
    /// W_L, L×d.
    pub weights: Matrix,
    /// b_L, a label each.
    pub bias: Vec<f32>,
}

impl LabelClassifiers {
    /// Number of labels, L.
    pub fn n_labels(&self) -> usize {
        self.bias.len()
    }
}

/// σ(z) = 1 / (1 + e^−z).
#[inline]
pub fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}
