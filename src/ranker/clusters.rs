//! The level above the labels: a linear classifier per cluster.
//!
//! A label's classifier has only seen points of its cluster; whether a text belongs there is for the cluster's
//! classifier to say, which has seen all points. Texts have few words and clusters many, so weights are held by word.

use std::ops::ControlFlow;

use super::rows::inverse_norm;
use super::training_points::clusters_of_points;
use super::{Negatives, Ranker, RankerOptions, RankerProblem};
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelId};
use crate::matrix::CsrMatrix;

/// The clusters of the labels, and a linear classifier over bow/‖bow‖ for each.
///
/// Invariants: every cluster is a column of the weights and has an intercept; values are finite where they were
/// checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterLevel {
    cluster_of: Vec<ClusterId>,
    /// Weights by word, V×C.
    weights: CsrMatrix,
    /// C.
    intercepts: Vec<f32>,
}

impl ClusterLevel {
    /// The level from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if they do not fit together.
    pub(crate) fn from_parts(
        cluster_of: Vec<ClusterId>,
        weights: CsrMatrix,
        intercepts: Vec<f32>,
    ) -> Result<Self> {
        let n_clusters = intercepts.len();
        let fits = weights.n_cols() == n_clusters
            && cluster_of.iter().all(|cluster| cluster.idx() < n_clusters)
            && intercepts.iter().all(|value| value.is_finite());
        if !fits {
            let problem = "the ranker's clusters do not fit each other";
            return Err(Error::InvalidModel(problem.into()));
        }
        Ok(ClusterLevel {
            cluster_of,
            weights,
            intercepts,
        })
    }

    /// Trains a classifier per cluster on all points that have a label. Ranks other than 0 get none.
    ///
    /// # Errors
    /// As [`Ranker::train`].
    pub(super) fn train(
        problem: &RankerProblem<'_>,
        cluster_of: &[ClusterId],
        config: &RankerOptions,
        seed: u64,
        progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Self>> {
        let labels = clusters_of_points(problem.labels, cluster_of)?;
        let all_in_one = vec![ClusterId(0); labels.n_cols()];
        let problem = RankerProblem {
            bow: problem.bow,
            dense: None,
            labels: &labels,
            negatives: Negatives::Clusters(&all_in_one),
            ranks: problem.ranks,
        };
        let trained = Ranker::train_level(&problem, config, seed, "cluster ranker", progress)?;
        let level = trained.map(|trained| {
            let weights = trained.words.transpose();
            ClusterLevel::from_parts(cluster_of.to_vec(), weights, trained.intercepts)
        });
        level.transpose()
    }

    /// The cluster of each label, weights by word, and intercepts.
    pub(crate) fn parts(&self) -> (&[ClusterId], &CsrMatrix, &[f32]) {
        (&self.cluster_of, &self.weights, &self.intercepts)
    }

    /// The cluster of a label.
    #[inline]
    pub(crate) fn of(&self, label: LabelId) -> ClusterId {
        self.cluster_of[label.idx()]
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
