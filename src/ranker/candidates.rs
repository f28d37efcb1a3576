//! The best labels of every point.

use crate::communicator::Communicator;
use crate::ids::LabelId;

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
    /// Bytes of lists with this many candidates in all, and of their inversion.
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

    /// The lists of all processes, one after the other.
    pub(crate) fn gather(self, communicator: &dyn Communicator) -> Self {
        let length = |ends: &[usize]| (ends[1] - ends[0]) as u64;
        let own_lengths = self.indptr.windows(2).map(length).collect();
        let mut indptr = vec![0];
        for length in communicator.gather_many(own_lengths) {
            indptr.push(indptr[indptr.len() - 1] + length as usize);
        }
        CandidateLists {
            indptr,
            labels: communicator.gather_many(self.labels),
        }
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The highest label of all lists.
    pub(super) fn highest(&self) -> Option<LabelId> {
        self.labels.iter().copied().max()
    }

    /// The candidates of one point, best first.
    ///
    /// # Panics
    /// If the point is out of range.
    pub(crate) fn get(&self, point_idx: usize) -> &[LabelId] {
        &self.labels[self.indptr[point_idx]..self.indptr[point_idx + 1]]
    }
}
