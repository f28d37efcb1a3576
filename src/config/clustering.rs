//! Settings of the initial clusters.

use serde::{Deserialize, Serialize};

/// How labels are clustered before training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusteringConfig {
    /// Epochs of stage 1 on clusters of the features alone, after which labels are clustered anew on features and
    /// embeddings together and stage 1 starts over; 0 clusters once (released code: 5).
    pub warmup_epochs: usize,
    /// Random starts of 2-means a split may choose the best of.
    pub n_starts: usize,
    /// Most rounds of 2-means a split may take.
    pub max_iterations: usize,
    /// A split ends once its mean cosine grows by less than this in a round.
    pub tolerance: f32,
}

impl Default for ClusteringConfig {
    fn default() -> Self {
        ClusteringConfig {
            warmup_epochs: 0,
            n_starts: 4,
            max_iterations: 20,
            tolerance: 1e-5,
        }
    }
}
