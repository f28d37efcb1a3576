//! One vocabulary of terms: words, then the pairs of neighbouring words that the ranker reads.
//!
//! A text is cut into words once; its row of words and its row of pairs follow from the columns of these words.

use super::vectorizer::rows_of;
use super::{Pairs, TokenScratch, Vectorizer};
use crate::config::{Config, Recipe};
use crate::data::Texts;
use crate::error::Result;
use crate::matrix::CsrMatrix;

/// Known words and pairs of words with their weights.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    words: Vectorizer,
    pairs: Option<Pairs>,
}

/// The rows of texts; each row of length 1, or empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TermRows {
    /// N×V.
    pub(super) words: CsrMatrix,
    /// N×pairs.
    pub(super) pairs: Option<CsrMatrix>,
}

/// Buffers of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct TermScratch {
    tokens: TokenScratch,
    /// The words of the text in their order.
    found: Vec<Option<u32>>,
    columns: Vec<u32>,
}

impl Vocabulary {
    /// Learns words, and pairs if the ranker reads them, and returns the rows of the texts.
    ///
    /// # Errors
    /// As [`Vectorizer::fit_transform`].
    pub(super) fn fit_transform(texts: &Texts, config: &Config) -> Result<(Self, TermRows)> {
        let (words, rows_of_words) = Vectorizer::fit_transform(texts, &config.features)?;
        // Longer terms than words have them already.
        let reads_pairs =
            config.ranker.enabled && Recipe::of(config).ranker_pairs && config.features.ngrams == 1;
        let pairs = if reads_pairs {
            Pairs::fit(texts, &words, &config.features)
        } else {
            None
        };
        let rows = TermRows {
            pairs: pairs.as_ref().map(|pairs| pairs.transform(texts, &words)),
            words: rows_of_words,
        };
        Ok((Vocabulary { words, pairs }, rows))
    }

    /// A vocabulary from its parts.
    pub(crate) fn from_parts(words: Vectorizer, pairs: Option<Pairs>) -> Self {
        Vocabulary { words, pairs }
    }

    /// The words.
    pub(crate) fn words(&self) -> &Vectorizer {
        &self.words
    }

    /// The pairs, if the ranker reads them.
    pub(crate) fn pairs(&self) -> Option<&Pairs> {
        self.pairs.as_ref()
    }

    /// The name of a term: a word, or the two words of a pair.
    pub(super) fn name(&self, column: usize) -> String {
        let word = |word: usize| self.words.vocabulary().get(word).to_owned();
        let pair = column.checked_sub(self.words.n_columns());
        match self.pairs.as_ref().zip(pair) {
            Some((pairs, pair)) => {
                let words = pairs.words_of(pair);
                words.map(|column| word(column as usize)).join(" ")
            }
            None => word(column),
        }
    }

    /// The rows of texts.
    pub(super) fn transform(&self, texts: &Texts) -> TermRows {
        let Some(pairs) = &self.pairs else {
            return TermRows {
                words: self.words.transform(texts),
                pairs: None,
            };
        };
        let n_columns = [self.words.n_columns(), pairs.len()];
        let [words, pairs] = rows_of(texts, n_columns, |_, text, scratch, [words, pairs]| {
            self.transform_one(text, scratch, words, pairs);
        });
        TermRows {
            words,
            pairs: Some(pairs),
        }
    }

    /// Writes the rows of one text: its words, and its pairs if there are any in the vocabulary.
    pub(super) fn transform_one(
        &self,
        text: &str,
        scratch: &mut TermScratch,
        words: &mut Vec<(u32, f32)>,
        pairs: &mut Vec<(u32, f32)>,
    ) {
        let Some(known_pairs) = &self.pairs else {
            self.words.transform_one(text, &mut scratch.tokens, words);
            return;
        };
        let TermScratch {
            tokens,
            found,
            columns,
        } = scratch;
        self.words.columns_in_order(text, tokens, found);
        columns.clear();
        columns.extend(found.iter().copied().flatten());
        self.words.weigh(columns, words);
        known_pairs.weigh(found, columns, pairs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beside_pairs_have_the_rows_of_words_alone() {
        let texts = ["to be or not to be", "to be, not to see", "or", "", "sea"];
        let texts: Texts = texts.iter().collect();
        let config = Config::default();
        let (vocabulary, rows) = Vocabulary::fit_transform(&texts, &config).unwrap();
        let (words, expected) = Vectorizer::fit_transform(&texts, &config.features).unwrap();
        assert_eq!(rows.words, expected);
        assert_eq!(rows, vocabulary.transform(&texts));
        let pairs = rows.pairs.as_ref().unwrap();
        let (mut scratch, mut rows_of_one) = (TermScratch::default(), [Vec::new(), Vec::new()]);
        for (point, text) in texts.iter().enumerate() {
            let [one, two] = &mut rows_of_one;
            vocabulary.transform_one(text, &mut scratch, one, two);
            for (found, expected) in [(&*one, rows.words.row(point)), (two, pairs.row(point))] {
                let expected = expected.0.iter().copied().zip(expected.1.iter().copied());
                assert!(found.iter().copied().eq(expected), "{text}");
            }
        }
        assert_eq!(vocabulary.name(words.n_columns()), "not to");

        let without = config.with_value("ablation.ranker_pairs=false").unwrap();
        let (without, rows) = Vocabulary::fit_transform(&texts, &without).unwrap();
        assert!(without.pairs().is_none() && rows.pairs.is_none());
        assert_eq!(rows.words, expected);
    }
}
