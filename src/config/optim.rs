//! Settings of the optimiser.

use serde::{Deserialize, Serialize};

/// What AdamW keeps a second moment for, in parameters that are updated row by row.
///
/// A shared moment keeps the direction of the gradient, so that a row stays in the span of what it was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondMoments {
    /// One per value (the paper).
    Coordinate,
    /// One per row of W_L, one for all word embeddings.
    Shared,
}

/// AdamW.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimConfig {
    /// Second moments of W_L and of the word embeddings.
    pub second_moments: SecondMoments,
    /// Decoupled weight decay of the encoder and of W_L; not applied to biases (released code: 0.01 everywhere).
    pub weight_decay: f32,
    /// Decoupled weight decay of the index, W_C and A.
    pub weight_decay_index: f32,
    /// Steps between updates of W_L, A and W_C (paper: 10 for W_L).
    pub update_every: usize,
}

impl Default for OptimConfig {
    fn default() -> Self {
        OptimConfig {
            second_moments: SecondMoments::Shared,
            weight_decay: 0.15,
            weight_decay_index: 0.5,
            update_every: 1,
        }
    }
}
