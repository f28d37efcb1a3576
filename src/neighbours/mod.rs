//! The training points that are most like a text, and the labels they vote for.
//!
//! An inverted index over the tf-idf rows of the training points: each word lists its points. A text adds up its
//! cosine with every point it shares a word with and keeps the best; no other point is touched. A neighbour with
//! cosine c gives each of its labels c². This module sees features and labels, not models.

mod search;
mod votes;

pub(crate) use search::NeighbourScratch;
pub(crate) use votes::Vote;

use crate::error::{Error, Result};
use crate::matrix::{CsrMatrix, Matrix};

/// Neighbours that vote.
pub(crate) const N_NEIGHBOURS: usize = 30;

/// Words of a larger share of the points are not listed: they say little and take most of the time.
const MAX_SHARE: f64 = 0.1;
/// Words of so few points are always listed.
const ALWAYS_LISTED: usize = 100;

/// The training points by their words, with their labels.
///
/// Invariants: `starts` begins at 0, never decreases and ends at the number of postings. Points of mapped postings are
/// checked when they are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neighbours {
    /// Where the postings of each word start, V + 1.
    starts: Vec<u64>,
    /// The point of each posting, 1×n.
    points: Matrix<u32>,
    /// Its weight in the point's row of length 1, 1×n.
    weights: Matrix,
    /// Y, N×L.
    labels: CsrMatrix,
}

/// What a [`Neighbours`] consists of; see there.
pub(crate) struct NeighbourParts {
    pub(crate) starts: Vec<u64>,
    pub(crate) points: Matrix<u32>,
    pub(crate) weights: Matrix,
    pub(crate) labels: CsrMatrix,
}

impl Neighbours {
    /// The index of points with rows of length 1 and their labels.
    pub(crate) fn new(features: &CsrMatrix, labels: &CsrMatrix) -> Self {
        let n_points = features.n_rows();
        let most = ALWAYS_LISTED.max((MAX_SHARE * n_points as f64) as usize);
        let mut counts = vec![0usize; features.n_cols()];
        for &word in features.indices() {
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
        let (mut points, mut weights) = (vec![0u32; n_postings], vec![0f32; n_postings]);
        for point in 0..n_points {
            let (words, values) = features.row(point);
            for (&word, &value) in words.iter().zip(values) {
                if is_listed(word as usize) {
                    let at = next[word as usize] as usize;
                    (points[at], weights[at]) = (point as u32, value);
                    next[word as usize] += 1;
                }
            }
        }
        Neighbours {
            starts,
            points: Matrix::from_vec(points, 1, n_postings),
            weights: Matrix::from_vec(weights, 1, n_postings),
            labels: labels.clone(),
        }
    }

    /// An index from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_parts(parts: NeighbourParts) -> Result<Self> {
        let NeighbourParts {
            starts,
            points,
            weights,
            labels,
        } = parts;
        let n_postings = points.values().len() as u64;
        let fits = starts.first() == Some(&0)
            && starts.last() == Some(&n_postings)
            && starts.windows(2).all(|pair| pair[0] <= pair[1])
            && weights.values().len() as u64 == n_postings;
        if !fits {
            let problem = "the words of its neighbours do not fit their postings";
            return Err(Error::InvalidModel(problem.into()));
        }
        Ok(Neighbours {
            starts,
            points,
            weights,
            labels,
        })
    }

    /// Its parts: starts, points, weights and labels.
    pub(crate) fn parts(&self) -> (&[u64], &[u32], &[f32], &CsrMatrix) {
        let (points, weights) = (self.points.values(), self.weights.values());
        (&self.starts, points, weights, &self.labels)
    }

    /// Number of words, V.
    pub(crate) fn n_words(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.labels.n_cols()
    }

    /// Bytes of an index with so many entries of features and labels.
    pub(crate) fn n_bytes(n_feature_entries: usize, n_label_entries: usize) -> usize {
        8 * (n_feature_entries + n_label_entries)
    }
}

#[cfg(test)]
mod tests;
