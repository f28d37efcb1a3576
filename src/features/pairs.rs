//! Pairs of neighbouring words, for the ranker: a table of known pairs with their idf, and tf-idf rows.
//!
//! A pair is two columns of the vocabulary, so it needs no text of its own, and counting takes sixteen bytes for each pair
//! of a text at most. Formulas are those of words. A word that is not known ends a run: its neighbours are no pair.

use rayon::prelude::*;

use super::counting::chunks;
use super::vectorizer::{MAX_IDF, idf, normalize, rows_of, term_frequency};
use super::{TokenScratch, Vectorizer};
use crate::config::FeaturesConfig;
use crate::data::Texts;
use crate::error::{Error, Result};
use crate::matrix::CsrMatrix;

/// Known pairs: row is the first word, column the second, the value its idf, V×V. The number of a pair is its place
/// among all entries.
///
/// Invariant: every idf is positive and at most [`MAX_IDF`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pairs {
    idf: CsrMatrix,
}

impl Pairs {
    /// Bytes of a table of so many pairs.
    pub(crate) fn n_bytes(n_pairs: usize) -> usize {
        8 * n_pairs
    }

    /// The pairs that enough texts have; none if there is no such pair.
    pub(super) fn fit(texts: &Texts, words: &Vectorizer, config: &FeaturesConfig) -> Option<Pairs> {
        let mut counted: Vec<(u64, u32)> = count(&keys_of(texts, words), config.min_df);
        if let Some(max_features) = config.max_features.filter(|&max| max < counted.len()) {
            counted.par_sort_unstable_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
            counted.truncate(max_features);
            counted.par_sort_unstable();
        }
        if counted.is_empty() {
            return None;
        }
        let mut indptr = vec![0; words.n_columns() + 1];
        for (key, _) in &counted {
            indptr[(key >> 32) as usize + 1] += 1;
        }
        for row in 0..words.n_columns() {
            indptr[row + 1] += indptr[row];
        }
        let seconds = counted.iter().map(|&(key, _)| key as u32).collect();
        let of_texts = |&(_, count): &(u64, u32)| idf(texts.len(), count as usize);
        let values = counted.iter().map(of_texts).collect();
        let table = CsrMatrix::new(indptr, seconds, values, words.n_columns());
        Some(Pairs {
            idf: table.expect("pairs ascend"),
        })
    }

    /// Pairs from their table, V×V.
    ///
    /// # Errors
    /// [`Error::InvalidVocabulary`] if an idf is not positive or too large.
    pub(crate) fn from_parts(idf: CsrMatrix) -> Result<Self> {
        let is_valid = |idf: &f32| 0.0 < *idf && *idf <= MAX_IDF;
        if idf.values().iter().all(is_valid) {
            return Ok(Pairs { idf });
        }
        let problem =
            format!("the idf of a pair of words is not more than 0 and at most {MAX_IDF}");
        Err(Error::InvalidVocabulary(problem))
    }

    /// The table, V×V.
    pub(crate) fn idf(&self) -> &CsrMatrix {
        &self.idf
    }

    /// Number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.idf.nnz()
    }

    /// The words of a pair.
    ///
    /// # Panics
    /// If there is no such pair.
    pub(crate) fn words_of(&self, pair: usize) -> [u32; 2] {
        let first = self.idf.indptr().partition_point(|&end| end <= pair) - 1;
        [first as u32, self.idf.indices()[pair]]
    }

    /// The rows of texts, N×pairs, of length 1.
    pub(super) fn transform(&self, texts: &Texts, words: &Vectorizer) -> CsrMatrix {
        type Scratch = (TokenScratch, Vec<Option<u32>>, Vec<u32>);
        let [rows] = rows_of(
            texts,
            [self.len()],
            |_, text, scratch: &mut Scratch, [row]| {
                let (tokens, found, pairs) = scratch;
                words.columns_in_order(text, tokens, found);
                self.weigh(found, pairs, row);
            },
        );
        rows
    }

    /// Writes the row of a text with these words in their order, of length 1.
    pub(super) fn weigh(
        &self,
        words: &[Option<u32>],
        pairs: &mut Vec<u32>,
        out: &mut Vec<(u32, f32)>,
    ) {
        pairs.clear();
        pairs.extend(neighbours(words).filter_map(|(a, b)| self.find(a, b)));
        pairs.sort_unstable();
        out.clear();
        for run in pairs.chunk_by(|a, b| a == b) {
            let idf = self.idf.values()[run[0] as usize];
            out.push((run[0], term_frequency(run.len()) * idf));
        }
        normalize(out);
    }

    /// The number of a pair, if it is known.
    fn find(&self, first: u32, second: u32) -> Option<u32> {
        let place = self.idf.row(first as usize).0.binary_search(&second).ok()?;
        Some((self.idf.indptr()[first as usize] + place) as u32)
    }
}

/// The pairs of a text in their order.
fn neighbours(words: &[Option<u32>]) -> impl Iterator<Item = (u32, u32)> {
    words.windows(2).filter_map(|pair| pair[0].zip(pair[1]))
}

/// Every pair of every text once, in ascending order.
fn keys_of(texts: &Texts, words: &Vectorizer) -> Vec<u64> {
    let of_chunks: Vec<Vec<u64>> = chunks(texts)
        .into_par_iter()
        .map(|chunk| {
            let (mut tokens, mut found) = (TokenScratch::default(), Vec::new());
            let (mut keys, mut of_text) = (Vec::new(), Vec::new());
            for text_idx in chunk {
                words.columns_in_order(texts.get(text_idx), &mut tokens, &mut found);
                of_text.clear();
                let key = |(a, b): (u32, u32)| u64::from(a) << 32 | u64::from(b);
                of_text.extend(neighbours(&found).map(key));
                of_text.sort_unstable();
                of_text.dedup();
                keys.extend_from_slice(&of_text);
            }
            keys
        })
        .collect();
    let mut keys = Vec::with_capacity(of_chunks.iter().map(Vec::len).sum());
    of_chunks
        .into_iter()
        .for_each(|of_chunk| keys.extend(of_chunk));
    keys.par_sort_unstable();
    keys
}

/// Keys that occur so often or more, with how often they do.
fn count(keys: &[u64], at_least: usize) -> Vec<(u64, u32)> {
    let runs = keys.chunk_by(|a, b| a == b);
    runs.filter(|run| at_least <= run.len())
        .map(|run| (run[0], run.len() as u32))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::features::Vocabulary;

    /// Words and pairs of texts, and the rows of the pairs.
    fn fit(texts: &[&str], config: &FeaturesConfig) -> (Vectorizer, Option<(Pairs, CsrMatrix)>) {
        let texts: Texts = texts.iter().collect();
        let config = Config {
            features: config.clone(),
            ..Config::default()
        };
        let (vocabulary, rows) = Vocabulary::fit_transform(&texts, &config).unwrap();
        let pairs = vocabulary.pairs().cloned().zip(rows.pairs);
        (vocabulary.words().clone(), pairs)
    }

    fn name(words: &Vectorizer, pairs: &Pairs, pair: usize) -> String {
        let name = |word: u32| words.vocabulary().get(word as usize).to_owned();
        pairs.words_of(pair).map(name).join(" ")
    }

    #[test]
    fn pairs_are_those_of_bigrams_and_weigh_as_they_do() {
        let texts = [
            "to be or not to be",
            "to be, not to see",
            "see the sea",
            "the sea",
            "to",
            "",
        ];
        let config = FeaturesConfig::default();
        let (words, fitted) = fit(&texts, &config);
        let (pairs, rows) = fitted.unwrap();
        // The same from the vectoriser, with words taken out and lengths made 1 again.
        let bigrams = FeaturesConfig {
            ngrams: 2,
            ..config
        };
        let all: Texts = texts.iter().collect();
        let (expected, expected_rows) = Vectorizer::fit_transform(&all, &bigrams).unwrap();
        let is_pair = |term: &&str| term.contains(' ');
        let mut known: Vec<String> = (0..pairs.len())
            .map(|at| name(&words, &pairs, at))
            .collect();
        known.sort();
        let terms = expected.vocabulary().iter().filter(is_pair);
        assert!(terms.eq(known.iter().map(String::as_str)), "{known:?}");
        for row in 0..texts.len() {
            let (columns, values) = expected_rows.row(row);
            let of_row = columns.iter().zip(values).filter_map(|(&column, &value)| {
                let term = expected.vocabulary().get(column as usize);
                is_pair(&term).then(|| (term.to_owned(), value))
            });
            let mut of_row: Vec<(String, f32)> = of_row.collect();
            let length = of_row
                .iter()
                .map(|(_, value)| value * value)
                .sum::<f32>()
                .sqrt();
            let (found, values) = rows.row(row);
            let found = found
                .iter()
                .map(|&pair| name(&words, &pairs, pair as usize));
            let mut found: Vec<(String, f32)> = found.zip(values.iter().copied()).collect();
            found.sort_by(|a, b| a.0.cmp(&b.0));
            of_row.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(found.len(), of_row.len(), "{row}");
            for (found, expected) in found.iter().zip(&of_row) {
                assert_eq!(found.0, expected.0);
                assert!((found.1 - expected.1 / length).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn the_most_frequent_are_kept_and_texts_without_pairs_have_none() {
        let texts = [
            "a1 b1 c1", "a1 b1 c1", "b1 c1", "c1 a1", "c1 a1", "b1 a1", "b1 a1",
        ];
        let names = |min_df| -> Vec<String> {
            let config = FeaturesConfig {
                max_features: Some(3),
                min_df,
                ..FeaturesConfig::default()
            };
            let (words, fitted) = fit(&texts, &config);
            let (pairs, _) = fitted.unwrap();
            (0..pairs.len())
                .map(|at| name(&words, &pairs, at))
                .collect()
        };
        // Of those that two texts have, the lower ones.
        assert_eq!(names(2), ["a1 b1", "b1 a1", "b1 c1"]);
        assert_eq!(names(3), ["b1 c1"]);
        assert!(fit(&["a1", "b1"], &FeaturesConfig::default()).1.is_none());
    }

    #[test]
    fn an_idf_that_is_not_positive_or_too_large_is_an_error() {
        for value in [0.0, -1.0, f32::MAX] {
            let table = CsrMatrix::new(vec![0, 1], vec![0], vec![value], 1).unwrap();
            assert!(Pairs::from_parts(table).is_err());
        }
    }
}
