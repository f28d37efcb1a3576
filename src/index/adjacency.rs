//! A: the labels of each cluster, and how strongly they belong to it.
//!
//! Stage 1 has fixed edges, each of score 1. Stage 2 learns a weight a(c,ℓ) per edge; the edge score is
//! ŝ(c,ℓ) = min(1, β·softmax over the row's own edges of a) (paper, eq. 5). Rows hold their own edges only: there
//! is no padding and no sentinel. Scores are cached; code that changes weights refreshes the rows it touched.

use std::ops::Range;

use crate::communicator::N_RANGES;
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelRow};

use super::row_sums::{Norm, edge_scores, exponentials, highest, segments};

/// The labels each cluster leads to.
///
/// Invariants: `indptr` starts at 0, never decreases and ends at the number of edges; within a row labels
/// strictly increase and are below `n_labels`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edges {
    indptr: Vec<usize>,
    labels: Vec<LabelRow>,
    n_labels: usize,
}

impl Edges {
    /// Edges from the label lists of the clusters.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn new(indptr: Vec<usize>, labels: Vec<LabelRow>, n_labels: usize) -> Result<Self> {
        let starts_and_ends = indptr.first() == Some(&0) && indptr.last() == Some(&labels.len());
        let ascends = indptr.windows(2).all(|ends| ends[0] <= ends[1]);
        if !starts_and_ends || !ascends {
            return Err(Error::InvalidModel(
                "row offsets of the adjacency do not ascend from 0 to the edges".into(),
            ));
        }
        let edges = Edges {
            indptr,
            labels,
            n_labels,
        };
        for cluster_idx in 0..edges.n_clusters() {
            let row = &edges.labels[edges.range(ClusterId(cluster_idx as u32))];
            let sorted = row.windows(2).all(|pair| pair[0] < pair[1]);
            if !sorted || row.last().is_some_and(|label| label.idx() >= n_labels) {
                let problem = format!(
                    "edges of cluster {cluster_idx} are not ascending labels below {n_labels}"
                );
                return Err(Error::InvalidModel(problem));
            }
        }
        Ok(edges)
    }

    /// Edges from one list of labels per cluster; lists are sorted.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if a label is out of range or twice in a list.
    pub(crate) fn from_lists(mut lists: Vec<Vec<LabelRow>>, n_labels: usize) -> Result<Self> {
        let mut indptr = vec![0];
        let mut labels = Vec::new();
        for list in &mut lists {
            list.sort_unstable();
            labels.append(list);
            indptr.push(labels.len());
        }
        Edges::new(indptr, labels, n_labels)
    }

    /// Number of clusters, C.
    pub(crate) fn n_clusters(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Number of edges.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The range of a cluster's edges in per-edge arrays.
    #[inline]
    pub(crate) fn range(&self, cluster: ClusterId) -> std::ops::Range<usize> {
        self.indptr[cluster.idx()]..self.indptr[cluster.idx() + 1]
    }

    /// The labels of all edges, cluster after cluster.
    #[inline]
    pub(crate) fn rows(&self) -> &[LabelRow] {
        &self.labels
    }

    /// Row offsets: one more than clusters.
    pub(crate) fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Labels that no cluster leads to.
    pub(crate) fn unreachable(&self) -> Vec<LabelRow> {
        let mut reached = vec![false; self.n_labels];
        for label in &self.labels {
            reached[label.idx()] = true;
        }
        (0..self.n_labels)
            .filter(|&idx| !reached[idx])
            .map(|idx| LabelRow(idx as u32))
            .collect()
    }
}

/// The adjacency matrix A of the search index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adjacency {
    edges: Edges,
    kind: EdgeKind,
    /// ŝ(c,ℓ), per edge.
    scores: Vec<f32>,
    /// The best edge score of each cluster.
    best: Vec<f32>,
    /// Maximum and sum of each cluster's softmax; empty where edges are fixed.
    norms: Vec<Norm>,
}

#[derive(Clone, Debug, PartialEq)]
enum EdgeKind {
    /// Every edge has score 1.
    Fixed,
    /// Edge scores follow from learned weights.
    Learned {
        weights: Vec<f32>,
        beta: f32,
        /// The share of each cluster's softmax that edges had which were removed; empty if none were.
        removed: Vec<f32>,
    },
}

impl Adjacency {
    /// Bytes of labels, weights and scores of edges.
    pub(crate) fn n_bytes(n_edges: usize) -> usize {
        12 * n_edges
    }

    /// Fixed edges of score 1 (stage 1).
    pub(crate) fn fixed(edges: Edges) -> Self {
        let best = (0..edges.n_clusters())
            .map(|c| {
                if edges.range(ClusterId(c as u32)).is_empty() {
                    0.0
                } else {
                    1.0
                }
            })
            .collect();
        Adjacency {
            scores: vec![1.0; edges.len()],
            best,
            edges,
            kind: EdgeKind::Fixed,
            norms: Vec::new(),
        }
    }

    /// Learned edges (stage 2).
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is not one finite weight per edge or β is not positive.
    pub(crate) fn learned(edges: Edges, weights: Vec<f32>, beta: f32) -> Result<Self> {
        let valid =
            weights.len() == edges.len() && weights.iter().all(|a| a.is_finite()) && beta > 0.0;
        if !valid {
            return Err(Error::InvalidModel(
                "the adjacency needs a finite weight per edge and a positive beta".into(),
            ));
        }
        let n_clusters = edges.n_clusters();
        let (scores, best) = (vec![0.0; edges.len()], vec![0.0; n_clusters]);
        let mut adjacency = Adjacency {
            edges,
            kind: EdgeKind::Learned {
                weights,
                beta,
                removed: Vec::new(),
            },
            scores,
            best,
            norms: vec![Norm::default(); n_clusters],
        };
        adjacency.refresh_all();
        Ok(adjacency)
    }

    /// These learned edges as the rest after others were removed, which had this share of each cluster's softmax.
    ///
    /// The edges left keep the scores they had then: ŝ(c,ℓ) = min(1, β·(1 − removed)·softmax over the edges left).
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if the edges are fixed, or there is not one share of 0 to below 1 per cluster.
    pub(crate) fn with_removed(mut self, shares: Vec<f32>) -> Result<Self> {
        let n_clusters = self.edges.n_clusters();
        let is_valid = shares.len() == n_clusters && shares.iter().all(|s| (0.0..1.0).contains(s));
        match &mut self.kind {
            EdgeKind::Learned { removed, .. } if is_valid => *removed = shares,
            _ => {
                return Err(Error::InvalidModel(
                    "removed edges need learned weights and a share of 0 to below 1 per cluster"
                        .into(),
                ));
            }
        }
        self.refresh_all();
        Ok(self)
    }

    /// The share of each cluster's softmax that removed edges had; none if none were removed.
    pub(crate) fn removed(&self) -> Option<&[f32]> {
        match &self.kind {
            EdgeKind::Learned { removed, .. } if !removed.is_empty() => Some(removed),
            _ => None,
        }
    }

    fn refresh_all(&mut self) {
        for cluster_idx in 0..self.edges.n_clusters() {
            self.refresh(ClusterId(cluster_idx as u32));
        }
    }

    /// The edges.
    pub(crate) fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Edge scores ŝ(c,ℓ), in the order of the edges.
    #[inline]
    pub(crate) fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The best edge score of a cluster; 0 for a cluster without edges.
    #[inline]
    pub(crate) fn best_score(&self, cluster: ClusterId) -> f32 {
        self.best[cluster.idx()]
    }

    /// Raw weights a(c,ℓ), where they are learned.
    pub(crate) fn weights(&self) -> Option<&[f32]> {
        match &self.kind {
            EdgeKind::Fixed => None,
            EdgeKind::Learned { weights, .. } => Some(weights),
        }
    }

    /// β, where weights are learned.
    pub(crate) fn beta(&self) -> Option<f32> {
        match &self.kind {
            EdgeKind::Fixed => None,
            EdgeKind::Learned { beta, .. } => Some(*beta),
        }
    }

    /// Recomputes the scores of one cluster's edges from its weights.
    pub(crate) fn refresh(&mut self, cluster: ClusterId) {
        let range = self.edges.range(cluster);
        if let EdgeKind::Learned {
            weights,
            beta,
            removed,
        } = &self.kind
        {
            let left = 1.0 - removed.get(cluster.idx()).copied().unwrap_or(0.0);
            let (weights, scores) = (&weights[range.clone()], &mut self.scores[range.clone()]);
            let segments = segments(&self.edges.labels[range], self.edges.n_labels, 0..N_RANGES);
            let highest = highest(weights);
            let sums = exponentials(weights, highest, segments, scores);
            let sum = sums.sum::<f32>();
            self.norms[cluster.idx()] = Norm { highest, sum };
            self.best[cluster.idx()] = edge_scores(*beta * left, sum, scores);
        }
    }

    /// The edges that lead to these labels, with the scores they have among all edges.
    pub(crate) fn restricted(self, labels: Range<usize>) -> Self {
        if labels == (0..self.edges.n_labels) {
            return self;
        }
        let keeps = |label: &LabelRow| labels.contains(&label.idx());
        let kept: Vec<usize> = (0..self.edges.len())
            .filter(|&edge| keeps(&self.edges.labels[edge]))
            .collect();
        let n_kept_before = |end: &usize| kept.partition_point(|edge| edge < end);
        let of = |values: &[f32]| kept.iter().map(|&edge| values[edge]).collect();
        Adjacency {
            kind: match &self.kind {
                EdgeKind::Fixed => EdgeKind::Fixed,
                EdgeKind::Learned {
                    weights,
                    beta,
                    removed,
                } => EdgeKind::Learned {
                    weights: of(weights),
                    beta: *beta,
                    removed: removed.clone(),
                },
            },
            scores: of(&self.scores),
            edges: Edges {
                indptr: self.edges.indptr.iter().map(n_kept_before).collect(),
                labels: kept.iter().map(|&edge| self.edges.labels[edge]).collect(),
                n_labels: self.edges.n_labels,
            },
            ..self
        }
    }

    /// The parts of learned edges that a row-wise update of their weights needs.
    ///
    /// No edges may have been removed: training begins with all of them.
    pub(crate) fn learned_mut(&mut self) -> Option<LearnedRows<'_>> {
        match &mut self.kind {
            EdgeKind::Fixed => None,
            EdgeKind::Learned { weights, beta, .. } => Some(LearnedRows {
                edges: &self.edges,
                weights,
                scores: &mut self.scores,
                best: &mut self.best,
                norms: &mut self.norms,
                beta: *beta,
            }),
        }
    }

    /// The strongest edge to each label and its cluster, ties to the lowest cluster.
    ///
    /// A label that no cluster leads to has none.
    pub(crate) fn parents(&self) -> Vec<Option<ClusterId>> {
        let mut parents: Vec<Option<ClusterId>> = vec![None; self.edges.n_labels];
        let mut best = vec![f32::NEG_INFINITY; self.edges.n_labels];
        for cluster_idx in 0..self.edges.n_clusters() {
            let cluster = ClusterId(cluster_idx as u32);
            for edge in self.edges.range(cluster) {
                let label = self.edges.labels[edge].idx();
                if self.scores[edge] > best[label] {
                    best[label] = self.scores[edge];
                    parents[label] = Some(cluster);
                }
            }
        }
        parents
    }
}

/// Mutable parts of a learned adjacency, for updates row by row.
pub(crate) struct LearnedRows<'a> {
    pub(crate) edges: &'a Edges,
    pub(crate) weights: &'a mut [f32],
    pub(crate) scores: &'a mut [f32],
    pub(crate) best: &'a mut [f32],
    pub(crate) norms: &'a mut [Norm],
    pub(crate) beta: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ids: &[u32]) -> Vec<LabelRow> {
        ids.iter().map(|&id| LabelRow(id)).collect()
    }

    #[test]
    fn edge_scores_are_clamped_softmax_of_the_row_only() {
        let edges =
            Edges::from_lists(vec![labels(&[2, 0]), vec![], labels(&[1, 2, 3])], 5).unwrap();
        let adjacency = Adjacency::learned(edges, vec![1.0, 1.0, 0.0, 0.0, 10.0], 1.5).unwrap();
        assert!(
            adjacency
                .scores()
                .iter()
                .zip([0.75, 0.75])
                .all(|(s, e)| (s - e).abs() < 1e-6)
        );
        assert_eq!(adjacency.scores()[4], 1.0);
        assert_eq!(adjacency.best_score(ClusterId(1)), 0.0);
        assert_eq!(adjacency.edges().unreachable(), labels(&[4]));
        let parents = adjacency.parents();
        assert_eq!(parents[2], Some(ClusterId(0)));
        assert_eq!(parents[4], None);
    }

    #[test]
    fn edges_into_some_labels_keep_their_scores() {
        let lists = vec![labels(&[0, 3, 17, 30]), vec![], labels(&[5, 6, 31, 39])];
        let edges = Edges::from_lists(lists, 40).unwrap();
        let weights = (0..8).map(|edge| 0.3 * edge as f32).collect();
        let whole = Adjacency::learned(edges, weights, 2.0).unwrap();
        let part = whole.clone().restricted(6..31);
        assert_eq!(part.edges().rows(), labels(&[17, 30, 6]));
        assert_eq!(part.edges().indptr(), [0, 2, 2, 3]);
        let expected = [2, 3, 5].map(|edge| whole.scores()[edge]);
        assert_eq!(part.scores(), expected);
        assert_eq!(
            part.best_score(ClusterId(2)),
            whole.best_score(ClusterId(2))
        );
        assert_eq!(whole.clone().restricted(0..40), whole);
    }

    #[test]
    fn constructor_refuses_labels_out_of_order_or_range() {
        assert!(Edges::new(vec![0, 2], labels(&[1, 1]), 3).is_err());
        assert!(Edges::new(vec![0, 1], labels(&[3]), 3).is_err());
        assert!(Edges::new(vec![0, 2], labels(&[1]), 3).is_err());
        let edges = Edges::new(vec![0, 1], labels(&[2]), 3).unwrap();
        assert!(Adjacency::learned(edges.clone(), vec![f32::NAN], 1.0).is_err());
        assert!(Adjacency::learned(edges, vec![], 1.0).is_err());
    }
}
