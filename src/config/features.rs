//! Settings of the tf-idf features.

use serde::{Deserialize, Serialize};

/// How texts become tf-idf rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeaturesConfig {
    /// What counts as a word.
    pub tokens: TokenPattern,
    /// Whether words are compared in lower case.
    pub lowercase: bool,
    /// Longest run of neighbouring words that becomes a column of its own; 1 means single words only.
    pub ngrams: usize,
    /// Number of texts a word must occur in to become a column; 1 if no word occurs that often.
    pub min_df: usize,
    /// Most columns kept, the words that occur most often first; no limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_features: Option<usize>,
    /// Whether a word that occurs n times in a text counts 1 + ln n rather than n.
    pub sublinear_tf: bool,
    /// Words that are skipped, written as they come out of the tokeniser (so in lower case if `lowercase`).
    pub stop_words: Vec<String>,
}

/// What counts as a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenPattern {
    /// Runs of letters, digits, underscores and the marks that belong to letters; a Han character is a word.
    #[default]
    Words,
    /// Runs of at least two letters, digits or underscores: scikit-learn's `(?u)\b\w\w+\b`.
    SklearnWords,
}

impl Default for FeaturesConfig {
    fn default() -> Self {
        FeaturesConfig {
            tokens: TokenPattern::default(),
            lowercase: true,
            ngrams: 1,
            min_df: 2,
            max_features: None,
            sublinear_tf: true,
            stop_words: Vec::new(),
        }
    }
}
