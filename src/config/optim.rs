//! Configuration of the optimiser.

use serde::{Deserialize, Serialize};

/// What AdamW keeps a second moment for, in parameters that are updated row by row.
///
/// `coordinate`: every value, as in the paper; `shared`: each row of W_L, and all word embeddings together. A shared
/// moment keeps the direction of the gradient, so that a row stays in the span of what it was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondMoments {
    /// One a value.
    Coordinate,
    /// One a row of W_L, one for all word embeddings.
    Shared,
}

/// AdamW, its schedule and averaging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimConfig {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// What has a second moment of its own, in W_L and in the word embeddings.
    pub second_moments: SecondMoments,
    /// Decoupled weight decay of the encoder and of W_L; not applied to biases (released code: 0.01 everywhere).
    pub weight_decay: f32,
    /// Decoupled weight decay of the index, W_C and A.
    pub weight_decay_index: f32,
    /// Share of a stage's steps over which the rates rise linearly; they then fall linearly to zero.
    pub warmup: f32,
    /// Steps between updates of W_L and A (paper: 10 for W_L).
    pub update_every_labels: usize,
    /// Steps between updates of W_C.
    pub update_every_clusters: usize,
    /// Steps between updates of the encoder.
    pub update_every_encoder: usize,
    /// Share of stage 2's epochs, at its end, whose weights are averaged; 0 averages nothing.
    pub averaging: f32,
}

impl Default for OptimConfig {
    fn default() -> Self {
        OptimConfig {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            second_moments: SecondMoments::Shared,
            weight_decay: 0.15,
            weight_decay_index: 0.5,
            warmup: 0.1,
            update_every_labels: 1,
            update_every_clusters: 1,
            update_every_encoder: 1,
            averaging: 0.0,
        }
    }
}
