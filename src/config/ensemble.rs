//! Settings of the ensemble.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Several models whose rankings become one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EnsembleConfig {
    /// Models with different seeds and clusterings, trained one after the other (paper: 3).
    pub members: usize,
}

impl Default for EnsembleConfig {
    fn default() -> Self {
        EnsembleConfig { members: 1 }
    }
}
