//! Settings of the initial clusters.

use serde::{Deserialize, Serialize};

/// How labels are clustered before training.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusteringConfig {
    /// Epochs of stage 1 after which labels are clustered again, on features and embeddings together, and stage 1
    /// starts over; 0 clusters once, on features (released code: 5).
    pub warmup_epochs: usize,
}
