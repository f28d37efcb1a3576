//! Settings of the sparse ranker.

use serde::{Deserialize, Serialize};

/// What a label's linear classifier minimises besides ½‖w‖².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankerLoss {
    /// Σ C·max(0, 1 − y·z)² (the released code).
    #[default]
    SquaredHinge,
    /// Σ C·log(1 + exp(−y·z)) (the paper).
    Logistic,
}

/// Which points are negatives of a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankerNegatives {
    /// Points that have another label of its cluster; clusters get classifiers of their own, as in linear trees.
    #[default]
    Clusters,
    /// Points that have it among their best candidates (paper).
    Candidates,
}

/// The sparse ranker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RankerConfig {
    /// Whether the best candidates are re-ranked.
    pub enabled: bool,
    /// Loss of the classifiers.
    pub loss: RankerLoss,
    /// Which points are negatives (paper: candidates).
    pub negatives: RankerNegatives,
    /// C: weight of the loss against ½‖w‖² (released code: 1).
    pub cost: f32,
    /// Candidates of the network per text, which are re-ranked (paper: 100).
    pub n_candidates: usize,
    /// Whether the ranker reads the embedding φ/‖φ‖ besides the words (paper: true).
    pub use_embedding: bool,
    /// Whether the ranker reads pairs of neighbouring words besides the words (paper: false).
    pub word_pairs: bool,
}

impl Default for RankerConfig {
    fn default() -> Self {
        RankerConfig {
            enabled: true,
            loss: RankerLoss::SquaredHinge,
            negatives: RankerNegatives::Clusters,
            cost: 0.5,
            n_candidates: 100,
            use_embedding: false,
            word_pairs: true,
        }
    }
}
