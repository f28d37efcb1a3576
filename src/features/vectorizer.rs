//! The vectoriser: a vocabulary with idf weights, and tf-idf rows.

use rayon::prelude::*;

use crate::config::FeaturesConfig;
use crate::data::Texts;
use crate::error::{Error, Result};
use crate::features::counting::{ChunkCounts, chunks, count_terms};
use crate::features::merging::merge;
use crate::features::terms::{Terms, TokenScratch};
use crate::features::token_table::TokenTable;
use crate::matrix::CsrMatrix;

/// No inverse document frequency is larger: 1 + ln of the number of texts. It keeps the norm of a row finite.
pub(super) const MAX_IDF: f32 = 1e3;

/// Turns texts into tf-idf rows over the vocabulary it was fitted on.
///
/// Invariants: the words strictly ascend by bytes; a word's position is its column; every idf is positive and finite.
#[derive(Clone, Debug)]
pub(crate) struct Vectorizer {
    vocabulary: Texts,
    idf: Vec<f32>,
    terms: Terms,
    column_of: TokenTable,
}

impl Vectorizer {
    /// Bytes of a vocabulary, its weights and its hash table.
    pub(crate) fn n_bytes(n_words: usize) -> usize {
        48 * n_words
    }

    /// Learns vocabulary and idf from texts and returns their rows, those of [`Vectorizer::transform`].
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if no text contains a word, [`Error::Config`] for an invalid setting.
    pub(crate) fn fit_transform(
        texts: &Texts,
        config: &FeaturesConfig,
    ) -> Result<(Vectorizer, CsrMatrix)> {
        check_config(config)?;
        let counted = count_terms(texts, &Terms::new(config));
        let merged = merge(&counted, config);
        if merged.words.is_empty() {
            return Err(Error::CannotTrain(format!(
                "none of the {} texts contains a word",
                texts.len()
            )));
        }
        let idf = merged
            .document_counts
            .iter()
            .map(|&document_count| idf(texts.len(), document_count as usize))
            .collect();
        let vectorizer = Vectorizer::from_parts(merged.words, idf, config)?;
        let parts = counted
            .into_par_iter()
            .zip(merged.columns)
            .map(|(chunk, columns)| vectorizer.weigh_chunk(&chunk, &columns))
            .collect();
        let rows = concatenate(parts, vectorizer.n_columns());
        Ok((vectorizer, rows))
    }

    /// A vectoriser from a saved vocabulary.
    ///
    /// # Errors
    /// [`Error::InvalidVocabulary`] if an invariant does not hold, [`Error::Config`] for an invalid setting.
    pub(crate) fn from_parts(
        vocabulary: Texts,
        idf: Vec<f32>,
        config: &FeaturesConfig,
    ) -> Result<Self> {
        check_config(config)?;
        let invalid = |problem: String| Err(Error::InvalidVocabulary(problem));
        if vocabulary.len() != idf.len() {
            return invalid(format!(
                "{} words but {} idf weights",
                vocabulary.len(),
                idf.len()
            ));
        }
        for column in 1..vocabulary.len() {
            if vocabulary.get(column) <= vocabulary.get(column - 1) {
                return invalid(format!(
                    "word {column} is {:?}, expected one above {:?}",
                    vocabulary.get(column),
                    vocabulary.get(column - 1)
                ));
            }
        }
        let is_valid = |weight: &f32| *weight > 0.0 && *weight <= MAX_IDF;
        if let Some(column) = idf.iter().position(|weight| !is_valid(weight)) {
            return invalid(format!(
                "the idf of word {column} is {}, expected more than 0 and at most {MAX_IDF}",
                idf[column]
            ));
        }
        Ok(Vectorizer {
            column_of: TokenTable::from(&vocabulary),
            terms: Terms::new(config),
            vocabulary,
            idf,
        })
    }

    /// The rows of texts, N×D. A text without a known word gets an empty row.
    pub(crate) fn transform(&self, texts: &Texts) -> CsrMatrix {
        let [rows] = rows_of(texts, [self.n_columns()], |_, text, scratch, [row]| {
            self.transform_one(text, scratch, row);
        });
        rows
    }

    /// Writes the row of one text to `out`: columns in ascending order with weights whose squares sum to 1, or nothing
    /// if the text contains no known word.
    ///
    /// Once `scratch` and `out` are large enough, nothing is allocated, except for texts with a capital sigma.
    pub(crate) fn transform_one(
        &self,
        text: &str,
        scratch: &mut TokenScratch,
        out: &mut Vec<(u32, f32)>,
    ) {
        let mut columns = std::mem::take(&mut scratch.columns);
        columns.clear();
        self.terms.for_each(text, scratch, |term| {
            columns.extend(self.column_of.find(term))
        });
        self.weigh(&mut columns, out);
        scratch.columns = columns;
    }

    /// Writes the row of a text that has these columns, each as often as it occurs.
    pub(super) fn weigh(&self, columns: &mut [u32], out: &mut Vec<(u32, f32)>) {
        columns.sort_unstable();
        out.clear();
        for run in columns.chunk_by(|a, b| a == b) {
            out.push((run[0], self.weight(run[0], run.len())));
        }
        normalize(out);
    }

    /// Writes the column of every word of a text to `out`, in their order; none for a word that is not known.
    pub(super) fn columns_in_order(
        &self,
        text: &str,
        scratch: &mut TokenScratch,
        out: &mut Vec<Option<u32>>,
    ) {
        out.clear();
        self.terms.for_each(text, scratch, |term| {
            out.push(self.column_of.find(term));
        });
    }

    /// Calls `visit` with every word of a text that is not in the vocabulary, in their order.
    pub(super) fn for_each_unknown(
        &self,
        text: &str,
        scratch: &mut TokenScratch,
        mut visit: impl FnMut(&str),
    ) {
        self.terms.for_each(text, scratch, |term| {
            if self.column_of.find(term).is_none()
                && let Ok(term) = std::str::from_utf8(term)
            {
                visit(term);
            }
        });
    }

    /// Number of columns, D.
    pub(crate) fn n_columns(&self) -> usize {
        self.vocabulary.len()
    }

    /// The words (or n-grams) of the columns, in column order, which is the order of their bytes.
    pub(crate) fn vocabulary(&self) -> &Texts {
        &self.vocabulary
    }

    /// Inverse document frequencies, one per column.
    pub(crate) fn idf(&self) -> &[f32] {
        &self.idf
    }

    fn weigh_chunk(&self, chunk: &ChunkCounts, columns: &[Option<u32>]) -> ChunkRows {
        let mut rows = ChunkRows::default();
        let mut counted: Vec<u64> = Vec::new();
        let mut row = Vec::new();
        for text in chunk.texts() {
            // Sorting packed integers is faster than sorting pairs.
            counted.clear();
            for &(term_idx, count) in text {
                if let Some(column) = columns[term_idx as usize] {
                    counted.push(u64::from(column) << 32 | u64::from(count));
                }
            }
            counted.sort_unstable();
            row.clear();
            for &packed in &counted {
                let column = (packed >> 32) as u32;
                row.push((column, self.weight(column, packed as u32 as usize)));
            }
            normalize(&mut row);
            rows.push(&row);
        }
        rows
    }

    #[inline]
    fn weight(&self, column: u32, count: usize) -> f32 {
        term_frequency(count) * self.idf[column as usize]
    }
}

/// 1 + ln of a count.
#[inline]
pub(super) fn term_frequency(count: usize) -> f32 {
    match count {
        1 => 1.0,
        _ => 1.0 + (count as f32).ln(),
    }
}

/// `ln((1 + N) / (1 + df)) + 1`, as if one more text contained every word.
pub(super) fn idf(n_texts: usize, document_count: usize) -> f32 {
    let ratio = (1 + n_texts) as f64 / (1 + document_count) as f64;
    (ratio.ln() + 1.0) as f32
}

/// Divides by the L2 norm, summed in `f64`. An empty row stays empty.
pub(super) fn normalize(row: &mut [(u32, f32)]) {
    let squares: f64 = row
        .iter()
        .map(|&(_, weight)| f64::from(weight) * f64::from(weight))
        .sum();
    let scale = (1.0 / squares.sqrt()) as f32;
    for (_, weight) in row {
        *weight *= scale;
    }
}

/// The rows of one chunk.
#[derive(Default)]
struct ChunkRows {
    lengths: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl ChunkRows {
    fn push(&mut self, row: &[(u32, f32)]) {
        self.lengths.push(row.len());
        self.indices.extend(row.iter().map(|&(column, _)| column));
        self.values.extend(row.iter().map(|&(_, weight)| weight));
    }
}

/// The rows of texts in several matrices, each text's written by `transform_one`, which is given its number and itself, with
/// buffers for many of them.
pub(super) fn rows_of<S: Default, const N: usize>(
    texts: &Texts,
    n_columns: [usize; N],
    transform_one: impl Fn(usize, &str, &mut S, &mut [Vec<(u32, f32)>; N]) + Sync,
) -> [CsrMatrix; N] {
    let of_chunks: Vec<[ChunkRows; N]> = chunks(texts)
        .into_par_iter()
        .map(|chunk| {
            let mut parts = [(); N].map(|()| ChunkRows::default());
            let (mut scratch, mut rows) = (S::default(), [(); N].map(|()| Vec::new()));
            for text_idx in chunk {
                transform_one(text_idx, texts.get(text_idx), &mut scratch, &mut rows);
                parts
                    .iter_mut()
                    .zip(&rows)
                    .for_each(|(part, row)| part.push(row));
            }
            parts
        })
        .collect();
    let mut of_matrices = [(); N].map(|()| Vec::with_capacity(of_chunks.len()));
    for parts in of_chunks {
        for (matrix, part) in of_matrices.iter_mut().zip(parts) {
            matrix.push(part);
        }
    }
    let mut n_columns = n_columns.into_iter();
    of_matrices.map(|parts| concatenate(parts, n_columns.next().unwrap_or(0)))
}

fn concatenate(parts: Vec<ChunkRows>, n_columns: usize) -> CsrMatrix {
    let nnz = parts.iter().map(|part| part.indices.len()).sum();
    let mut indptr = vec![0];
    let mut indices = Vec::with_capacity(nnz);
    let mut values = Vec::with_capacity(nnz);
    let mut end = 0;
    for part in parts {
        for length in part.lengths {
            end += length;
            indptr.push(end);
        }
        indices.extend_from_slice(&part.indices);
        values.extend_from_slice(&part.values);
    }
    CsrMatrix::new(indptr, indices, values, n_columns).expect("rows are sorted and finite")
}

fn check_config(config: &FeaturesConfig) -> Result<()> {
    let counts = [
        ("features.ngrams", Some(config.ngrams)),
        ("features.min_df", Some(config.min_df)),
        ("features.max_features", config.max_features),
    ];
    for (key, count) in counts {
        if count == Some(0) {
            return Err(Error::Config {
                key: key.into(),
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
    }
    Ok(())
}
