//! From a text to its terms: words, and runs of neighbouring words.

use crate::config::FeaturesConfig;
use crate::features::tokens::{for_each_token, lowercase_into};

/// Cuts texts into terms.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    lowercase: bool,
    ngrams: usize,
}

/// Reusable buffers for cutting a text into terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenScratch {
    lowered: String,
    /// First and one-past-last byte of each word of the text.
    words: Vec<(usize, usize)>,
    joined: Vec<u8>,
    pub(super) columns: Vec<u32>,
}

impl Terms {
    pub(super) fn new(config: &FeaturesConfig) -> Self {
        Terms {
            lowercase: config.lowercase,
            ngrams: config.ngrams,
        }
    }

    /// Calls `visit` with each term: the words in order, then the pairs in order, and so on. The words of an n-gram
    /// are joined by one space.
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
        if self.ngrams == 1 {
            for_each_token(text, visit);
            return;
        }
        let bytes = text.as_bytes();
        scratch.words.clear();
        for_each_token(text, |word| {
            let start = word.as_ptr().addr() - bytes.as_ptr().addr();
            scratch.words.push((start, start + word.len()));
            visit(word);
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
    fn terms_are_words_then_longer_runs() {
        let config = FeaturesConfig::default();
        check("To be, TO be", config.clone(), &["to", "be", "to", "be"]);
        let as_written = FeaturesConfig {
            lowercase: false,
            ..config.clone()
        };
        check("To be", as_written, &["To", "be"]);
        let trigrams = FeaturesConfig {
            ngrams: 3,
            ..config
        };
        check(
            "a b c",
            trigrams.clone(),
            &["a", "b", "c", "a b", "b c", "a b c"],
        );
        check("a", trigrams, &["a"]);
    }
}
