//! Candidate lists, and their inversion: which points train which label.
//!
//! A point trains the classifiers of its best candidates and of all its labels: positives that are not candidates
//! are added. This file does not use features.

use std::num::NonZeroU32;

use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::CsrMatrix;

/// For every point the labels that a model ranks highest, best first.
///
/// Invariant: `indptr` starts at 0, never decreases and ends at `labels.len()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CandidateLists {
    indptr: Vec<usize>,
    labels: Vec<LabelId>,
}

impl Default for CandidateLists {
    fn default() -> Self {
        CandidateLists {
            indptr: vec![0],
            labels: Vec::new(),
        }
    }
}

impl CandidateLists {
    /// Bytes of lists with so many candidates, and of their inversion.
    pub(crate) fn n_bytes(n_candidates: usize) -> usize {
        8 * n_candidates
    }

    /// Empty lists, with capacity for `n_points` of `n_candidates`.
    pub(crate) fn with_capacity(n_points: usize, n_candidates: usize) -> Self {
        let mut indptr = Vec::with_capacity(n_points + 1);
        indptr.push(0);
        CandidateLists {
            indptr,
            labels: Vec::with_capacity(n_points * n_candidates),
        }
    }

    /// Appends the list of the next point, best first.
    pub(crate) fn push(&mut self, labels: impl IntoIterator<Item = LabelId>) {
        self.labels.extend(labels);
        self.indptr.push(self.labels.len());
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The candidates of one point, best first.
    ///
    /// # Panics
    /// If the point is out of range.
    pub(crate) fn get(&self, point_idx: usize) -> &[LabelId] {
        &self.labels[self.indptr[point_idx]..self.indptr[point_idx + 1]]
    }
}

/// For every label the training points of its classifier, positives first.
pub(super) struct LabelPoints {
    indptr: Vec<usize>,
    n_positive: Vec<u32>,
    points: Vec<u32>,
}

/// The training points of one label.
#[derive(Clone, Copy)]
pub(super) struct TrainingPoints<'a> {
    /// Positives, ascending; then negatives, ascending.
    pub(super) points: &'a [u32],
    /// Number of positives.
    pub(super) n_positive: usize,
}

impl LabelPoints {
    /// Inverts the labels and the first `n_candidates` of every list, by counting.
    ///
    /// Duplicates in a list count once.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if a candidate is not a column of `labels`.
    pub(super) fn invert(
        candidates: &CandidateLists,
        labels: &CsrMatrix,
        n_candidates: usize,
    ) -> Result<Self> {
        let n_labels = labels.n_cols();
        let mut n_positive = vec![0u32; n_labels];
        for &label in labels.indices() {
            n_positive[label as usize] += 1;
        }

        if let Some(label) = candidates
            .labels
            .iter()
            .find(|label| label.idx() >= n_labels)
        {
            return Err(Error::CannotTrain(format!(
                "candidate label {} is out of range, there are {n_labels} labels",
                label.0
            )));
        }
        let mut indptr = vec![0usize; n_labels + 1];
        for_each_negative(candidates, labels, n_candidates, |_, label| {
            indptr[label.idx() + 1] += 1;
        });
        for label_idx in 0..n_labels {
            indptr[label_idx + 1] += indptr[label_idx] + n_positive[label_idx] as usize;
        }

        let mut points = vec![0u32; indptr[n_labels]];
        let mut next: Vec<usize> = indptr[..n_labels].to_vec();
        for point_idx in 0..labels.n_rows() {
            for &label in labels.row(point_idx).0 {
                points[next[label as usize]] = point_idx as u32;
                next[label as usize] += 1;
            }
        }
        for_each_negative(candidates, labels, n_candidates, |point_idx, label| {
            points[next[label.idx()]] = point_idx as u32;
            next[label.idx()] += 1;
        });
        Ok(LabelPoints {
            indptr,
            n_positive,
            points,
        })
    }

    /// Number of labels.
    pub(super) fn n_labels(&self) -> usize {
        self.n_positive.len()
    }

    /// The training points of one label.
    pub(super) fn get(&self, label_idx: usize) -> TrainingPoints<'_> {
        TrainingPoints {
            points: &self.points[self.indptr[label_idx]..self.indptr[label_idx + 1]],
            n_positive: self.n_positive[label_idx] as usize,
        }
    }
}

/// Visits every (point, candidate) pair that is a negative, each once, points ascending.
fn for_each_negative(
    candidates: &CandidateLists,
    labels: &CsrMatrix,
    n_candidates: usize,
    mut visit: impl FnMut(usize, LabelId),
) {
    // The last point that visited a label: detects positives and duplicates without sorting.
    let mut visited_by: Vec<Option<NonZeroU32>> = vec![None; labels.n_cols()];
    for point_idx in 0..candidates.len() {
        let mark = NonZeroU32::new(point_idx as u32 + 1);
        for &label in labels.row(point_idx).0 {
            visited_by[label as usize] = mark;
        }
        for &label in candidates.get(point_idx).iter().take(n_candidates) {
            if visited_by[label.idx()] != mark {
                visited_by[label.idx()] = mark;
                visit(point_idx, label);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(of: &[&[u32]]) -> CandidateLists {
        let mut lists = CandidateLists::default();
        for labels in of {
            lists.push(labels.iter().copied().map(LabelId));
        }
        lists
    }

    #[test]
    fn inversion_puts_positives_first_and_adds_missing_ones() {
        // Point 0 has label 2, which is not a candidate; point 1 has label 0, a candidate twice.
        let labels = CsrMatrix::new(vec![0, 1, 2, 2], vec![2, 0], vec![1.0, 1.0], 3).unwrap();
        let candidates = lists(&[&[1, 0, 2], &[0, 0, 2], &[2, 1, 2]]);
        let inverted = LabelPoints::invert(&candidates, &labels, 2).unwrap();
        let get = |label_idx| {
            let points = inverted.get(label_idx);
            (points.points.to_vec(), points.n_positive)
        };
        assert_eq!(get(0), (vec![1, 0], 1));
        assert_eq!(get(1), (vec![0, 2], 0));
        assert_eq!(get(2), (vec![0, 2], 1));
    }

    #[test]
    fn a_candidate_beyond_the_labels_is_an_error() {
        let labels = CsrMatrix::new(vec![0, 0], vec![], vec![], 3).unwrap();
        for label in [3, u32::MAX] {
            assert!(LabelPoints::invert(&lists(&[&[label]]), &labels, 9).is_err());
        }
    }
}
