//! Settings of the search index.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Which index leads to the labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum IndexMode {
    /// Clusters first, then the learned graph (the paper's method).
    #[default]
    Learned,
    /// The clusters alone, for the epochs of both stages: every label stays in the one it starts in.
    Fixed,
    /// No index: every label is scored and trained (one against all).
    Ova,
}

/// Clusters, edges, beam and shortlist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct IndexConfig {
    /// Learned index, fixed clusters, or none.
    pub mode: IndexMode,
    /// C: number of clusters; unset: 2^⌈log2(L/25)⌉ up to 512, then 2^⌈log2(L/100)⌉ (the paper).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_clusters: Option<usize>,
    /// α: how many clusters can be fully relevant at once.
    pub alpha: f32,
    /// β: how many labels can be fully assigned to a cluster; unset: 4.5·L/C, over a transformer 8.5·L/C (paper: 150).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<f32>,
    /// κ: edges per cluster; unset: 10·L/C (paper: 1000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kappa: Option<usize>,
    /// b: clusters searched.
    pub beam_size: usize,
    /// K: labels scored.
    pub shortlist_size: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        IndexConfig {
            mode: IndexMode::Learned,
            n_clusters: None,
            alpha: 10.0,
            beta: None,
            kappa: None,
            beam_size: 20,
            shortlist_size: 2000,
        }
    }
}
