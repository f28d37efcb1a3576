//! Settings of the tf-idf features.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// How texts become tf-idf rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct FeaturesConfig {
    /// Whether words are compared in lower case.
    pub lowercase: bool,
    /// Longest run of neighbouring words that becomes a feature; 1 means single words only.
    pub ngrams: usize,
    /// Fewest texts a word must occur in to become a feature; 1 if no word occurs that often.
    pub min_df: usize,
    /// Most features, the words of the most texts first; unset: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_features: Option<usize>,
}

impl Default for FeaturesConfig {
    fn default() -> Self {
        FeaturesConfig {
            lowercase: true,
            ngrams: 1,
            min_df: 2,
            max_features: None,
        }
    }
}
