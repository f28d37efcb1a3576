//! Rows by their words: each word lists the rows it occurs in, and a text finds its nearest rows by cosine, exactly.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::matrix::{CsrBuilder, CsrMatrix};

/// Words of a larger share of the rows are not listed: they say little and take most of the time.
const MAX_SHARE: f64 = 0.1;
/// Words of so few rows are always listed.
const ALWAYS_LISTED: usize = 100;

/// An inverted index over rows of length 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Postings {
    /// The rows of each word, with its weight in each, V×N.
    by_word: CsrMatrix,
    /// The number that the weights of each word are multiples of, V, if they are rounded.
    steps: Option<Vec<f32>>,
}

/// A row near a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Neighbour {
    /// The row.
    pub(crate) row: u32,
    /// The cosine of their words.
    pub(crate) cosine: f32,
}

impl Neighbour {
    /// The order of neighbours: best first, ties to the lower row.
    pub(super) fn before(&self, other: &Neighbour) -> Ordering {
        let by_cosine = other.cosine.total_cmp(&self.cosine);
        by_cosine.then(self.row.cmp(&other.row))
    }
}

/// Buffers of the search; one per thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct NeighbourScratch {
    /// The cosine with each row so far; all zero between calls.
    cosines: Vec<f32>,
    /// The rows met so far, then room for more.
    met: Vec<u32>,
    pub(super) found: Vec<Neighbour>,
    /// Those of another index.
    pub(super) others: Vec<Neighbour>,
    pub(super) labels: Vec<(u32, f32)>,
}

impl Postings {
    /// The index of the first `n_rows` rows.
    pub(super) fn new(features: &CsrMatrix, n_rows: usize) -> Self {
        let most = ALWAYS_LISTED.max((MAX_SHARE * n_rows as f64) as usize);
        let mut counts = vec![0usize; features.n_cols()];
        for &word in &features.indices()[..features.indptr()[n_rows]] {
            counts[word as usize] += 1;
        }
        Postings {
            by_word: features.transpose_if(n_rows, |word| counts[word as usize] <= most),
            steps: None,
        }
    }

    /// The index of all rows, with all of their words.
    pub(super) fn of_all_words(features: &CsrMatrix) -> Self {
        Postings {
            by_word: features.transpose(),
            steps: None,
        }
    }

    /// The rows of this index, and then those of another over the same words, with the weights that they have: rounded ones
    /// stay as they are, but have no common step any more.
    pub(super) fn followed_by(&self, more: &Postings) -> Self {
        let n_postings = self.by_word.nnz() + more.by_word.nnz();
        let mut by_word = CsrBuilder::with_capacity(self.n_words(), n_postings);
        for word in 0..self.n_words() {
            let (rows, weights) = self.by_word.row(word);
            let (later, of_later) = more.by_word.row(word);
            let later = later.iter().map(|row| self.n_rows() as u32 + row);
            let rows = rows.iter().copied().chain(later);
            by_word.push_row(rows.zip(weights.iter().chain(of_later).copied()));
        }
        let by_word = by_word.finish(self.n_rows() + more.n_rows());
        Postings {
            by_word: by_word.expect("later rows have greater numbers"),
            steps: None,
        }
    }

    /// An index from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is not a step per word.
    pub(crate) fn from_parts(by_word: CsrMatrix, steps: Option<Vec<f32>>) -> Result<Self> {
        if steps
            .as_ref()
            .is_none_or(|steps| steps.len() == by_word.n_rows())
        {
            return Ok(Postings { by_word, steps });
        }
        let problem = "the steps of an inverted index do not fit its words";
        Err(Error::InvalidModel(problem.into()))
    }

    /// The same index with the weights of every word rounded to multiples of a step.
    pub(super) fn rounded(mut self) -> Self {
        self.steps = Some(self.by_word.round_rows());
        self
    }

    /// The rows of each word with its weights, V×N.
    pub(crate) fn by_word(&self) -> &CsrMatrix {
        &self.by_word
    }

    /// The number that the weights of each word are multiples of, V, if they are rounded.
    pub(crate) fn steps(&self) -> Option<&[f32]> {
        self.steps.as_deref()
    }

    /// Number of words, V.
    pub(crate) fn n_words(&self) -> usize {
        self.by_word.n_rows()
    }

    /// Number of rows, N.
    pub(crate) fn n_rows(&self) -> usize {
        self.by_word.n_cols()
    }

    /// The listed words of some rows, which ascend, with their weights; it reads the whole index.
    pub(crate) fn words_of(&self, rows: &[u32]) -> Vec<Vec<(u32, f32)>> {
        let mut words = vec![Vec::new(); rows.len()];
        for word in 0..self.n_words() {
            let (of_word, weights) = self.by_word.row(word);
            for (row, &weight) in of_word.iter().zip(weights) {
                if let Ok(place) = rows.binary_search(row) {
                    words[place].push((word as u32, weight));
                }
            }
        }
        words
    }

    /// The `k` rows nearest to the words of a text, best first, ties to the lower row. Words whose weights are not
    /// positive do not count.
    pub(crate) fn nearest<'s>(
        &self,
        (words, values): (&[u32], &[f32]),
        k: usize,
        scratch: &'s mut NeighbourScratch,
    ) -> &'s [Neighbour] {
        let NeighbourScratch {
            cosines,
            met,
            found,
            ..
        } = scratch;
        let n_rows = self.n_rows();
        cosines.resize(cosines.len().max(n_rows), 0.0);
        let cosines = &mut cosines[..n_rows];
        met.resize(met.len().max(n_rows + 1), 0);
        let mut n_met = 0;
        for (&word, &value) in words.iter().zip(values) {
            if self.n_words() <= word as usize {
                continue;
            }
            let (rows, weights) = self.by_word.row(word as usize);
            for (&row, &weight) in rows.iter().zip(weights) {
                let cosine = &mut cosines[row as usize];
                // Whether a row is new is hard to predict, so nothing branches on it. NaN counts as 0.
                let product = (value * weight).max(0.0);
                met[n_met] = row;
                n_met += usize::from((*cosine == 0.0) & (0.0 < product));
                *cosine += product;
            }
        }
        take_best(k, cosines, &met[..n_met], found);
        found
    }
}

/// Writes the `k` best of the rows met to `found`, and forgets the cosines.
fn take_best(k: usize, cosines: &mut [f32], met: &[u32], found: &mut Vec<Neighbour>) {
    found.clear();
    // Twice k are collected before the worse half is dropped; then only better ones are let in.
    let mut least = 0.0;
    for &row in met {
        let cosine = std::mem::take(&mut cosines[row as usize]);
        if cosine < least || k == 0 {
            continue;
        }
        found.push(Neighbour { row, cosine });
        if 2 * k <= found.len() {
            found.select_nth_unstable_by(k - 1, Neighbour::before);
            found.truncate(k);
            least = found[k - 1].cosine;
        }
    }
    found.sort_unstable_by(Neighbour::before);
    found.truncate(k);
}
