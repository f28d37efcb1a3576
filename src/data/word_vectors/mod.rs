//! Vectors of words or of word pieces that someone else trained: knowledge that no training pair holds.
//!
//! A file of words has a line per word, `word v1 v2 …`, with or without a first line of two numbers, as word2vec, GloVe and
//! fastText write them. A directory has a matrix of tokens in a safetensors file and their names in `tokenizer.json`, as
//! model2vec and WordLlama lay them out. What is read is bounded, whatever the file says: files of words begin with
//! their most frequent words, so that the first ones are taken.

mod lines;
mod tokens;

use std::path::Path;
use std::sync::Arc;

use crate::data::Texts;
use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Most dimensions of a vector.
const MAX_DIM: usize = 8192;
/// Most values of all vectors: 1 GiB.
const MAX_VALUES: usize = 1 << 28;
/// Longest entry, in bytes: what is longer is no word.
const MAX_ENTRY: usize = 200;

/// Vectors by word, or by piece of a word.
///
/// Invariants: as many rows as entries; every value is finite; an entry is one of the signs of a place and a text that is not
/// empty, and none occurs twice.
#[derive(Clone, Debug, PartialEq)]
pub struct WordVectors {
    entries: Texts,
    vectors: Arc<Matrix>,
}

/// The place of an entry in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A whole word; a long one can be a part of a compound.
    Word,
    /// The start of a word, or all of it.
    Start,
    /// Anything after the start.
    Inside,
}

impl Place {
    /// Its sign before an entry.
    fn sign(self) -> char {
        match self {
            Place::Word => '=',
            Place::Start => '^',
            Place::Inside => '+',
        }
    }

    /// An entry taken apart; `None` if it is none.
    pub(crate) fn of(entry: &str) -> Option<(Place, &str)> {
        let mut chars = entry.chars();
        let sign = chars.next()?;
        let places = [Place::Word, Place::Start, Place::Inside];
        let place = places.into_iter().find(|place| place.sign() == sign)?;
        Some((place, chars.as_str())).filter(|(_, text)| !text.is_empty())
    }
}

impl WordVectors {
    /// Reads a file of words with their vectors, compressed or not, or a directory of tokens with theirs.
    ///
    /// # Errors
    /// [`Error::BadFile`] and [`Error::Malformed`] for files that are neither, with what was expected; [`Error::Io`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return tokens::read(path);
        }
        lines::read(path)
    }

    /// Number of words or pieces.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of a vector.
    pub fn dim(&self) -> usize {
        self.vectors.n_cols()
    }

    /// The words and pieces, each behind the sign of its place.
    pub(crate) fn entries(&self) -> &Texts {
        &self.entries
    }

    /// Their vectors.
    pub(crate) fn vectors(&self) -> &Matrix {
        &self.vectors
    }

    fn new(path: &Path, entries: Texts, values: Vec<f32>, dim: usize) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::BadFile {
                path: path.into(),
                problem: "has no word with a vector".into(),
            });
        }
        let vectors = Arc::new(Matrix::from_vec(values, entries.len(), dim));
        Ok(WordVectors { entries, vectors })
    }
}

/// Whether an entry can be a part of words: the features cut texts at everything else.
fn is_of_words(text: &str) -> bool {
    text.len() <= MAX_ENTRY
        && !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
