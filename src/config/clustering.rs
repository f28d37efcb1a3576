//! Settings of the initial clusters.

use serde::{Deserialize, Serialize};

/// How labels are clustered before training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusteringConfig {
    /// Number of clusters, C; 2^⌈log2(L/100)⌉ if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_clusters: Option<usize>,
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
            n_clusters: None,
            n_starts: 4,
            max_iterations: 20,
            tolerance: 1e-5,
        }
    }
}
