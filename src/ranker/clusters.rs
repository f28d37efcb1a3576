//! The levels above the labels: a linear classifier per cluster, per group of clusters, and so on.
//!
//! A label's classifier has only seen points of its cluster; whether a text belongs there is for the cluster's
//! classifier to say. That one has seen the points of its group, so that the cost does not grow with the number of
//! clusters times that of points. Texts have few words and clusters many, so weights are held by word.

use std::ops::ControlFlow;

use super::rows::inverse_norm;
use super::training_points::clusters_of_points;
use super::{Negatives, Ranker, RankerOptions, RankerProblem};
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelId};
use crate::matrix::{CsrBuilder, CsrMatrix};

/// Clusters that train against each other without groups.
const MAX_AT_TOP: usize = 128;
/// Clusters of one group, where there are more.
const MAX_SIBLINGS: usize = 32;

/// The clusters of the labels, the clusters of these, and a linear classifier over bow/‖bow‖ for each.
///
/// Invariants: every cluster is a column of the weights and has an intercept and a parent, or none at the top; a parent
/// comes after its children; values are finite where they were checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterTree {
    cluster_of: Vec<ClusterId>,
    parents: Vec<Option<ClusterId>>,
    /// Weights by word, V×C.
    weights: CsrMatrix,
    /// The number that the weights of each cluster are multiples of, C, if they are rounded.
    steps: Option<Vec<f32>>,
    /// C.
    intercepts: Vec<f32>,
}

/// The levels of clusters as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterTreeParts {
    /// The cluster of each label, L.
    pub(crate) cluster_of: Vec<ClusterId>,
    /// The cluster that each is in, C.
    pub(crate) parents: Vec<Option<ClusterId>>,
    /// Weights by word, V×C.
    pub(crate) weights: CsrMatrix,
    /// The number that the weights of each cluster are multiples of, C, if they are rounded.
    pub(crate) steps: Option<Vec<f32>>,
    /// C.
    pub(crate) intercepts: Vec<f32>,
}

impl ClusterTree {
    /// The tree from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if they do not fit together.
    pub(crate) fn from_parts(parts: ClusterTreeParts) -> Result<Self> {
        let ClusterTreeParts {
            cluster_of,
            parents,
            weights,
            steps,
            intercepts,
        } = parts;
        let n_clusters = intercepts.len();
        let is_above = |(child, parent): (usize, &Option<ClusterId>)| {
            parent.is_none_or(|parent| (child + 1..n_clusters).contains(&parent.idx()))
        };
        let fits = weights.n_cols() == n_clusters
            && parents.len() == n_clusters
            && steps.as_ref().is_none_or(|steps| steps.len() == n_clusters)
            && parents.iter().enumerate().all(is_above)
            && cluster_of.iter().all(|cluster| cluster.idx() < n_clusters)
            && intercepts.iter().all(|value| value.is_finite());
        if !fits {
            let problem = "the ranker's clusters do not fit each other";
            return Err(Error::InvalidModel(problem.into()));
        }
        Ok(ClusterTree {
            cluster_of,
            parents,
            weights,
            steps,
            intercepts,
        })
    }

    /// Clusters of each level, the lowest first.
    pub(crate) fn level_sizes(n_clusters: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(n_clusters), |&n_clusters| {
            (MAX_AT_TOP < n_clusters).then(|| n_clusters.div_ceil(MAX_SIBLINGS))
        })
    }

    /// Trains a classifier per cluster on the points that have a label of its group, and so on for the groups. Processes
    /// other than 0 get none.
    ///
    /// # Errors
    /// As [`Ranker::train`].
    pub(super) fn train(
        problem: &RankerProblem<'_>,
        cluster_of: &[ClusterId],
        config: &RankerOptions,
        seed: u64,
        mut progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Self>> {
        let mut of_labels = cluster_of.to_vec();
        let (mut parents, mut levels) = (Vec::new(), Vec::new());
        loop {
            let labels = clusters_of_points(problem.labels, &of_labels)?;
            let n_clusters = labels.n_cols();
            let is_top = n_clusters <= MAX_AT_TOP;
            let group_size = if is_top { MAX_AT_TOP } else { MAX_SIBLINGS } as u32;
            let groups: Vec<ClusterId> = (0..n_clusters as u32)
                .map(|cluster| ClusterId(cluster / group_size))
                .collect();
            let level = RankerProblem {
                dense: None,
                labels: &labels,
                targets: None,
                prior: None,
                negatives: Negatives::Clusters(&groups),
                ..*problem
            };
            let stream = "cluster ranker";
            levels.push(Ranker::train_level(
                &level,
                config,
                seed,
                stream,
                &mut progress,
            )?);
            let first_above = (parents.len() + n_clusters) as u32;
            let parent = |group: &ClusterId| (!is_top).then_some(ClusterId(first_above + group.0));
            parents.extend(groups.iter().map(parent));
            if is_top {
                break;
            }
            of_labels
                .iter_mut()
                .for_each(|cluster| *cluster = groups[cluster.idx()]);
        }
        let Some(levels) = levels.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let mut weights = CsrBuilder::default().finish(problem.bow.n_cols())?;
        let (mut intercepts, mut steps) = (Vec::new(), Vec::new());
        for level in levels {
            weights.append(&level.words);
            intercepts.extend(level.intercepts);
            steps.push(level.steps);
        }
        let steps: Option<Vec<Vec<f32>>> = steps.into_iter().collect();
        let parts = ClusterTreeParts {
            cluster_of: cluster_of.to_vec(),
            parents,
            weights: weights.transpose(),
            steps: steps.map(|of_levels| of_levels.concat()),
            intercepts,
        };
        ClusterTree::from_parts(parts).map(Some)
    }

    /// The same clusters with more labels, each in one of them.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is no such cluster.
    pub(super) fn with_labels(&self, more: impl Iterator<Item = ClusterId>) -> Result<Self> {
        let mut tree = self.clone();
        tree.cluster_of.extend(more);
        ClusterTree::from_parts(ClusterTreeParts {
            cluster_of: tree.cluster_of,
            parents: tree.parents,
            weights: tree.weights,
            steps: tree.steps,
            intercepts: tree.intercepts,
        })
    }

    /// The cluster of each label.
    pub(crate) fn cluster_of(&self) -> &[ClusterId] {
        &self.cluster_of
    }

    /// The cluster that each cluster is in.
    pub(crate) fn parents(&self) -> &[Option<ClusterId>] {
        &self.parents
    }

    /// Weights by word, V×C.
    pub(crate) fn weights(&self) -> &CsrMatrix {
        &self.weights
    }

    /// The number that the weights of each cluster are multiples of, C, if they are rounded.
    pub(crate) fn steps(&self) -> Option<&[f32]> {
        self.steps.as_deref()
    }

    /// Intercepts, C.
    pub(crate) fn intercepts(&self) -> &[f32] {
        &self.intercepts
    }

    /// The cluster of a label, the cluster of that, and so on.
    #[inline]
    pub(crate) fn above(&self, label: LabelId) -> impl Iterator<Item = ClusterId> {
        let parent = |cluster: &ClusterId| self.parents[cluster.idx()];
        std::iter::successors(Some(self.cluster_of[label.idx()]), parent)
    }

    /// Writes the margins of all clusters for a point with these words to `out`; the words need not be normalised.
    pub(crate) fn score(&self, bow: (&[u32], &[f32]), out: &mut Vec<f32>) {
        out.clear();
        out.extend_from_slice(&self.intercepts);
        let scale = inverse_norm(bow.1);
        for (&word, &value) in std::iter::zip(bow.0, bow.1) {
            if (word as usize) < self.weights.n_rows() {
                let (clusters, weights) = self.weights.row(word as usize);
                for (&cluster, &weight) in clusters.iter().zip(weights) {
                    out[cluster as usize] += scale * value * weight;
                }
            }
        }
    }
}
