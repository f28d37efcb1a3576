//! From a text to its terms: words other than stop words, and n-grams of them.

use crate::config::{FeaturesConfig, TokenPattern};
use crate::data::Texts;
use crate::features::token_table::TokenTable;
use crate::features::tokens::{for_each_token, lowercase_into};

/// Cuts texts into terms.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pattern: TokenPattern,
    lowercase: bool,
    ngrams: usize,
    stop_words: TokenTable,
}

/// Reusable buffers for cutting a text into terms.
#[derive(Clone, Debug, Default)]
pub struct TokenScratch {
    lowered: String,
    /// First and one-past-last byte of each word of the text.
    words: Vec<(usize, usize)>,
    joined: Vec<u8>,
    pub(super) columns: Vec<u32>,
}

impl Terms {
    pub(super) fn new(config: &FeaturesConfig) -> Self {
        let stop_words: Texts = config.stop_words.iter().collect();
        Terms {
            pattern: config.tokens,
            lowercase: config.lowercase,
            ngrams: config.ngrams,
            stop_words: TokenTable::from(&stop_words),
        }
    }

    /// Calls `visit` with each term: the words in order, then the pairs in order, and so on. The words of an n-gram
    /// are joined by one space; stop words are removed before n-grams are formed.
    pub(super) fn for_each(
        &self,
        text: &str,
        scratch: &mut TokenScratch,
        mut visit: impl FnMut(&[u8]),
    ) {
        let text = if self.lowercase {
            lowercase_into(text, &mut scratch.lowered);
            scratch.lowered.as_str()
        } else {
            text
        };
        if self.ngrams == 1 && self.stop_words.len() == 0 {
            for_each_token(text, self.pattern, visit);
            return;
        }
        let bytes = text.as_bytes();
        scratch.words.clear();
        for_each_token(text, self.pattern, |word| {
            if self.stop_words.find(word).is_none() {
                let start = word.as_ptr().addr() - bytes.as_ptr().addr();
                scratch.words.push((start, start + word.len()));
                visit(word);
            }
        });
        for n_words in 2..=self.ngrams.min(scratch.words.len()) {
            for run in scratch.words.windows(n_words) {
                scratch.joined.clear();
                for &(start, end) in run {
                    if !scratch.joined.is_empty() {
                        scratch.joined.push(b' ');
                    }
                    scratch.joined.extend_from_slice(&bytes[start..end]);
                }
                visit(&scratch.joined);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, config: FeaturesConfig, expected: &[&str]) {
        let mut found = Vec::new();
        Terms::new(&config).for_each(text, &mut TokenScratch::default(), |term| {
            found.push(String::from_utf8(term.to_vec()).unwrap());
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn terms_are_words_then_longer_runs_without_stop_words() {
        let config = FeaturesConfig::default();
        check("To be, TO be", config.clone(), &["to", "be", "to", "be"]);
        let as_written = FeaturesConfig {
            lowercase: false,
            ..config.clone()
        };
        check("To be", as_written, &["To", "be"]);
        let trigrams = FeaturesConfig {
            ngrams: 3,
            ..config.clone()
        };
        check(
            "a b c",
            trigrams.clone(),
            &["a", "b", "c", "a b", "b c", "a b c"],
        );
        check("a", trigrams, &["a"]);
        let bigrams_without_of = FeaturesConfig {
            ngrams: 2,
            stop_words: vec!["of".into()],
            ..config
        };
        check(
            "Point of view of",
            bigrams_without_of,
            &["point", "view", "point view"],
        );
    }
}
