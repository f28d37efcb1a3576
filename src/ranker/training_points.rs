//! The points that train each label.
//!
//! A label's positives are the points that have it. Its negatives are the points that have it among their best
//! candidates (paper), or those that have another label of its cluster, as in a linear tree; and the points for which a
//! label of its cluster was rejected. This file does not use features.

use std::num::NonZeroU32;
use std::ops::Range;

use super::{CandidateLists, RankerProblem};
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelId};
use crate::matrix::{CsrBuilder, CsrMatrix};

/// Source of the negatives of a label.
#[derive(Clone, Copy)]
pub(crate) enum Negatives<'a> {
    /// Points that have it among their candidates.
    Candidates(&'a CandidateLists),
    /// Points that have a label of its cluster; the cluster of each label.
    Clusters(&'a [ClusterId]),
}

impl Negatives<'_> {
    /// Checks that every label has a cluster, if they come from clusters.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] otherwise.
    pub(super) fn check(&self, n_labels: usize) -> Result<()> {
        match self {
            Negatives::Clusters(cluster_of) if cluster_of.len() != n_labels => {
                let n_given = cluster_of.len();
                let problem = format!("clusters of {n_given} labels, there are {n_labels}");
                Err(Error::CannotTrain(problem))
            }
            Negatives::Clusters(_) | Negatives::Candidates(_) => Ok(()),
        }
    }
}

/// For every label of a range the training points of its classifier.
pub(super) struct LabelPoints<'a> {
    range: Range<usize>,
    /// The points of each label of the range, by label.
    positives: CsrMatrix,
    others: Others<'a>,
}

enum Others<'a> {
    /// The negatives of each label of the range, one after the other.
    Lists {
        indptr: Vec<usize>,
        points: Vec<u32>,
    },
    /// The cluster of each label, and the points of each cluster, C×N.
    Clusters {
        cluster_of: &'a [ClusterId],
        points: CsrMatrix,
    },
}

/// The training points of one label.
#[derive(Clone, Copy)]
pub(super) struct TrainingPoints<'a> {
    /// Positives, ascending; then negatives, ascending.
    pub(super) points: &'a [u32],
    /// Number of positives.
    pub(super) n_positive: usize,
}

impl<'a> LabelPoints<'a> {
    /// The training points of a range of the problem's labels; at most `n_candidates` of every list count.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if a candidate is not a column of `labels`, or a label has no cluster.
    pub(super) fn new(
        problem: &RankerProblem<'a>,
        range: Range<usize>,
        n_candidates: usize,
    ) -> Result<Self> {
        let labels = problem.labels;
        let others = match problem.negatives {
            Negatives::Candidates(lists) => invert(lists, labels, &range, n_candidates)?,
            Negatives::Clusters(cluster_of) => {
                problem.negatives.check(labels.n_cols())?;
                let targets = problem.targets.unwrap_or(labels);
                Others::Clusters {
                    cluster_of,
                    points: clusters_of_points(targets, cluster_of)?.transpose(),
                }
            }
        };
        Ok(LabelPoints {
            positives: labels.transpose_columns(range.clone()),
            range,
            others,
        })
    }

    /// The labels.
    #[cfg(test)]
    fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Number of training points, approximately.
    pub(super) fn size(&self, label_idx: usize) -> usize {
        let place = label_idx - self.range.start;
        match &self.others {
            Others::Lists { indptr, .. } => {
                self.positives.row(place).0.len() + indptr[place + 1] - indptr[place]
            }
            Others::Clusters { .. } => self.of_cluster(label_idx).len(),
        }
    }

    /// The points of a label's cluster, ascending; none where negatives are candidates.
    pub(super) fn of_cluster(&self, label_idx: usize) -> &[u32] {
        match &self.others {
            Others::Lists { .. } => &[],
            Others::Clusters { cluster_of, points } => points.row(cluster_of[label_idx].idx()).0,
        }
    }

    /// The positives of a label, ascending.
    pub(super) fn positives(&self, label_idx: usize) -> &[u32] {
        self.positives.row(label_idx - self.range.start).0
    }

    /// The training points of one label, in a buffer.
    pub(super) fn get<'b>(&self, label_idx: usize, buffer: &'b mut Vec<u32>) -> TrainingPoints<'b> {
        let place = label_idx - self.range.start;
        let positives = self.positives.row(place).0;
        buffer.clear();
        buffer.extend_from_slice(positives);
        match &self.others {
            Others::Lists { indptr, points } => {
                buffer.extend_from_slice(&points[indptr[place]..indptr[place + 1]]);
            }
            Others::Clusters { cluster_of, points } => {
                let of_cluster = points.row(cluster_of[label_idx].idx()).0;
                let mut positives = positives.iter().peekable();
                // Both ascend, and every positive is a point of the cluster.
                let is_negative = |point: &&u32| positives.next_if_eq(point).is_none();
                buffer.extend(of_cluster.iter().filter(is_negative));
            }
        }
        TrainingPoints {
            points: buffer,
            n_positive: positives.len(),
        }
    }
}

/// The clusters that the labels of each point are in, N×C.
///
/// # Errors
/// [`Error::InvalidMatrix`] if there are too many clusters.
pub(super) fn clusters_of_points(
    labels: &CsrMatrix,
    cluster_of: &[ClusterId],
) -> Result<CsrMatrix> {
    let n_clusters = cluster_of.iter().map(|cluster| cluster.idx() + 1).max();
    let mut builder = CsrBuilder::default();
    let mut clusters = Vec::new();
    for point_idx in 0..labels.n_rows() {
        clusters.clear();
        let of_labels = labels.row(point_idx).0.iter();
        clusters.extend(of_labels.map(|&label| cluster_of[label as usize].0));
        clusters.sort_unstable();
        clusters.dedup();
        builder.push_row(clusters.iter().map(|&cluster| (cluster, 1.0)));
    }
    builder.finish(n_clusters.unwrap_or(0))
}

/// Inverts the first `n_candidates` of every list for a range of labels, by counting. Duplicates in a list count once.
fn invert<'a>(
    candidates: &CandidateLists,
    labels: &CsrMatrix,
    range: &Range<usize>,
    n_candidates: usize,
) -> Result<Others<'a>> {
    let n_labels = labels.n_cols();
    if let Some(label) = candidates.highest().filter(|label| n_labels <= label.idx()) {
        return Err(Error::CannotTrain(format!(
            "candidate label {} is out of range, there are {n_labels} labels",
            label.0
        )));
    }
    let n_wanted = range.len();
    let mut indptr = vec![0usize; n_wanted + 1];
    for_each_negative(candidates, labels, n_candidates, |_, label| {
        if range.contains(&label.idx()) {
            indptr[label.idx() - range.start + 1] += 1;
        }
    });
    for place in 0..n_wanted {
        indptr[place + 1] += indptr[place];
    }
    let mut points = vec![0u32; indptr[n_wanted]];
    let mut next: Vec<usize> = indptr[..n_wanted].to_vec();
    for_each_negative(candidates, labels, n_candidates, |point_idx, label| {
        if range.contains(&label.idx()) {
            let next = &mut next[label.idx() - range.start];
            points[*next] = point_idx as u32;
            *next += 1;
        }
    });
    Ok(Others::Lists { indptr, points })
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
    use crate::communicator::SingleProcess;

    fn problem<'a>(labels: &'a CsrMatrix, negatives: Negatives<'a>) -> RankerProblem<'a> {
        RankerProblem {
            bow: labels,
            dense: None,
            labels,
            targets: None,
            point_weights: &[1.0; 4],
            negatives,
            prior: None,
            communicator: &SingleProcess,
        }
    }

    fn lists(of: &[&[u32]]) -> CandidateLists {
        let mut lists = CandidateLists::default();
        for labels in of {
            lists.push(labels.iter().copied().map(LabelId));
        }
        lists
    }

    fn all(points: &LabelPoints<'_>) -> Vec<(Vec<u32>, usize)> {
        let mut buffer = Vec::new();
        let mut get = |label_idx| {
            let points = points.get(label_idx, &mut buffer);
            (points.points.to_vec(), points.n_positive)
        };
        points.range().map(&mut get).collect()
    }

    #[test]
    fn candidates_are_inverted_with_positives_first() {
        // Point 0 has label 2, which is not a candidate; point 1 has label 0, a candidate twice.
        let labels = CsrMatrix::new(vec![0, 1, 2, 2], vec![2, 0], vec![1.0, 1.0], 3).unwrap();
        let candidates = lists(&[&[1, 0, 2], &[0, 0, 2], &[2, 1, 2]]);
        let expected = [(vec![1, 0], 1), (vec![0, 2], 0), (vec![0, 2], 1)];
        for range in [0..3, 0..1, 1..3, 2..2] {
            let problem = problem(&labels, Negatives::Candidates(&candidates));
            let points = LabelPoints::new(&problem, range.clone(), 2).unwrap();
            assert_eq!(all(&points), expected[range]);
        }
    }

    #[test]
    fn negatives_are_the_other_points_of_the_cluster() {
        // Labels 0 and 2 are in cluster 1, label 1 in cluster 0; point 3 has no label.
        let labels = CsrMatrix::new(vec![0, 2, 3, 4, 4], vec![0, 2, 1, 2], vec![1.0; 4], 3);
        let cluster_of = [1, 0, 1].map(ClusterId);
        let negatives = Negatives::Clusters(&cluster_of);
        let labels = labels.unwrap();
        let expected = [(vec![0, 2], 1), (vec![1], 1), (vec![0, 2], 2)];
        for range in [0..3, 0..1, 1..3, 2..2] {
            let points = LabelPoints::new(&problem(&labels, negatives), range.clone(), 0).unwrap();
            assert_eq!(all(&points), expected[range]);
        }
        // Point 1 rejects label 0, so it is a negative of that and of its sibling.
        let targets = CsrMatrix::new(
            vec![0, 2, 4, 5, 5],
            vec![0, 2, 0, 1, 2],
            vec![1.0, 1.0, -1.0, 1.0, 1.0],
            3,
        )
        .unwrap();
        let problem = RankerProblem {
            targets: Some(&targets),
            ..problem(&labels, negatives)
        };
        let points = LabelPoints::new(&problem, 0..3, 0).unwrap();
        let expected = [(vec![0, 1, 2], 1), (vec![1], 1), (vec![0, 2, 1], 2)];
        assert_eq!(all(&points), expected);
    }

    #[test]
    fn what_does_not_fit_the_labels_is_an_error() {
        let labels = CsrMatrix::new(vec![0, 0], vec![], vec![], 3).unwrap();
        for label in [3, u32::MAX] {
            let lists = lists(&[&[label]]);
            let candidates = problem(&labels, Negatives::Candidates(&lists));
            assert!(LabelPoints::new(&candidates, 0..3, 9).is_err());
        }
        let clusters = problem(&labels, Negatives::Clusters(&[ClusterId(0)]));
        assert!(LabelPoints::new(&clusters, 0..3, 9).is_err());
    }
}
