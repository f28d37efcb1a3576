//! Settings of the sparse ranker.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The sparse ranker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct RankerConfig {
    /// Whether the best candidates are re-ranked.
    pub enabled: bool,
    /// Candidates of the network per text, which are re-ranked (paper: 100).
    pub n_candidates: usize,
}

impl Default for RankerConfig {
    fn default() -> Self {
        RankerConfig {
            enabled: true,
            n_candidates: 100,
        }
    }
}
