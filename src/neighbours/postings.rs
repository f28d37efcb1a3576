//! Rows by their words: each word lists the rows it occurs in, and a text finds its nearest rows by cosine, exactly.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::matrix::{CsrMatrix, Matrix};

/// Words of a larger share of the rows are not listed: they say little and take most of the time.
const MAX_SHARE: f64 = 0.1;
/// Words of so few rows are always listed.
const ALWAYS_LISTED: usize = 100;

/// An inverted index over rows of length 1.
///
/// Invariants: `starts` begins at 0, never decreases and ends at the number of postings. Rows of mapped postings are
/// checked when they are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Postings {
    /// Where the postings of each word start, V + 1.
    pub(super) starts: Vec<u64>,
    /// The row of each posting, 1×n.
    pub(super) rows: Matrix<u32>,
    /// The word's weight in that row, 1×n.
    pub(super) weights: Matrix,
    pub(super) n_rows: usize,
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
        let is_listed = |word: usize| counts[word] <= most;
        let mut starts = vec![0u64];
        for (word, &count) in counts.iter().enumerate() {
            let listed = if is_listed(word) { count } else { 0 };
            starts.push(starts[word] + listed as u64);
        }
        let n_postings = starts[counts.len()] as usize;
        let mut next = starts.clone();
        let (mut rows, mut weights) = (vec![0u32; n_postings], vec![0f32; n_postings]);
        for row in 0..n_rows {
            let (words, values) = features.row(row);
            for (&word, &value) in words.iter().zip(values) {
                if is_listed(word as usize) {
                    let at = next[word as usize] as usize;
                    (rows[at], weights[at]) = (row as u32, value);
                    next[word as usize] += 1;
                }
            }
        }
        Postings {
            starts,
            rows: Matrix::from_vec(rows, 1, n_postings),
            weights: Matrix::from_vec(weights, 1, n_postings),
            n_rows,
        }
    }

    /// The index of all rows, with all of their words.
    pub(super) fn of_all_words(features: &CsrMatrix) -> Self {
        let by_word = features.transpose();
        let n_postings = features.nnz();
        Postings {
            starts: by_word.indptr().iter().map(|&start| start as u64).collect(),
            rows: Matrix::from_vec(by_word.indices().to_vec(), 1, n_postings),
            weights: Matrix::from_vec(by_word.values().to_vec(), 1, n_postings),
            n_rows: features.n_rows(),
        }
    }

    /// The rows of this index, and then those of another over the same words.
    pub(super) fn followed_by(&self, more: &Postings) -> Self {
        let n_postings = self.rows.values().len() + more.rows.values().len();
        let (mut starts, mut rows) = (vec![0], Vec::with_capacity(n_postings));
        let mut weights = Vec::with_capacity(n_postings);
        for word in 0..self.n_words() {
            for (index, first) in [(self, 0), (more, self.n_rows as u32)] {
                let own = index.starts[word] as usize..index.starts[word + 1] as usize;
                rows.extend(
                    index.rows.values()[own.clone()]
                        .iter()
                        .map(|row| first + row),
                );
                weights.extend_from_slice(&index.weights.values()[own]);
            }
            starts.push(rows.len() as u64);
        }
        Postings {
            starts,
            rows: Matrix::from_vec(rows, 1, n_postings),
            weights: Matrix::from_vec(weights, 1, n_postings),
            n_rows: self.n_rows + more.n_rows,
        }
    }

    /// An index from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_parts(
        starts: Vec<u64>,
        rows: Matrix<u32>,
        weights: Matrix,
        n_rows: usize,
    ) -> Result<Self> {
        let n_postings = rows.values().len() as u64;
        let fits = starts.first() == Some(&0)
            && starts.last() == Some(&n_postings)
            && starts.windows(2).all(|pair| pair[0] <= pair[1])
            && weights.values().len() as u64 == n_postings;
        if !fits {
            let problem = "the words of an inverted index do not fit its postings";
            return Err(Error::InvalidModel(problem.into()));
        }
        Ok(Postings {
            starts,
            rows,
            weights,
            n_rows,
        })
    }

    /// Starts, rows and weights of the postings.
    pub(crate) fn parts(&self) -> (&[u64], &[u32], &[f32]) {
        (&self.starts, self.rows.values(), self.weights.values())
    }

    /// Number of words, V.
    pub(crate) fn n_words(&self) -> usize {
        self.starts.len() - 1
    }

    /// The listed words of some rows, which ascend, with their weights; it reads the whole index.
    pub(crate) fn words_of(&self, rows: &[u32]) -> Vec<Vec<(u32, f32)>> {
        let mut words = vec![Vec::new(); rows.len()];
        let postings = self.rows.values().iter().zip(self.weights.values());
        let mut word = 0;
        for (at, (row, &weight)) in postings.enumerate() {
            while self.starts[word + 1] <= at as u64 {
                word += 1;
            }
            if let Ok(place) = rows.binary_search(row) {
                words[place].push((word as u32, weight));
            }
        }
        words
    }

    /// The `k` rows nearest to the words of a text, best first, ties to the lower row. Words whose weights are not
    /// positive do not count.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if a posting names a row that is not there.
    pub(crate) fn nearest<'s>(
        &self,
        (words, values): (&[u32], &[f32]),
        k: usize,
        scratch: &'s mut NeighbourScratch,
    ) -> Result<&'s [Neighbour]> {
        let NeighbourScratch {
            cosines,
            met,
            found,
            ..
        } = scratch;
        cosines.resize(cosines.len().max(self.n_rows), 0.0);
        let cosines = &mut cosines[..self.n_rows];
        met.resize(met.len().max(self.n_rows + 1), 0);
        let (mut n_met, mut is_damaged) = (0, false);
        for (&word, &value) in words.iter().zip(values) {
            let Some(&[start, end]) = self.starts.get(word as usize..word as usize + 2) else {
                continue;
            };
            let postings = start as usize..end as usize;
            let weights = &self.weights.values()[postings.clone()];
            for (&row, &weight) in self.rows.values()[postings].iter().zip(weights) {
                let Some(cosine) = cosines.get_mut(row as usize) else {
                    is_damaged = true;
                    continue;
                };
                // Whether a row is new is hard to predict, so nothing branches on it. NaN counts as 0.
                let product = (value * weight).max(0.0);
                met[n_met] = row;
                n_met += usize::from((*cosine == 0.0) & (0.0 < product));
                *cosine += product;
            }
        }
        take_best(k, cosines, &met[..n_met], found);
        if is_damaged {
            let problem = "a word of the model lists a row that is not there: the model is damaged";
            return Err(Error::CannotPredict(problem.into()));
        }
        Ok(found)
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
