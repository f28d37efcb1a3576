//! The initial clusters: labels grouped by the texts they occur with.
//!
//! Each label is described by the normalised sum of its points' features ([`label_centroids`]); the labels are then
//! halved recursively by balanced spherical 2-means ([`cluster_labels`]) until there are C clusters. Stage 1 trains
//! on these clusters; the learned adjacency replaces them later.

mod centroids;
mod node;
#[cfg(test)]
mod quality;
mod two_means;

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelId};
use crate::matrix::CsrMatrix;

pub(crate) use centroids::{PointFeatures, label_centroids};
#[cfg(test)]
pub(crate) use quality::mean_cosine;

/// A partition of the labels.
///
/// Invariants: every label is in exactly one cluster; no cluster is empty; members ascend by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clustering {
    cluster_of: Vec<ClusterId>,
    /// The members of cluster 0, then those of cluster 1, and so on.
    members: Vec<LabelId>,
    /// The end of each cluster in `members`.
    ends: Vec<usize>,
}

/// Groups labels into `n_clusters` clusters whose sizes differ by at most one.
///
/// `centroids` is L×D with rows of L2 norm 1, or empty for a label without points; such labels fill the clusters
/// with room, lowest ids first. The result depends on the seed, not on the number of threads or processes: each process
/// halves towards its own clusters, and all get the whole. Neighbouring clusters are siblings of the recursive halving.
///
/// # Errors
/// [`Error::Config`] if `n_clusters` is 0 or above the number of labels.
pub(crate) fn cluster_labels(
    centroids: &CsrMatrix,
    n_clusters: usize,
    seed: u64,
    communicator: &dyn Communicator,
) -> Result<Clustering> {
    let n_labels = centroids.n_rows();
    if n_clusters == 0 || n_clusters > n_labels {
        return Err(Error::Config {
            key: "clustering.n_clusters".into(),
            found: n_clusters.to_string(),
            expected: format!("1 to {n_labels}, the number of labels"),
        });
    }
    let own = communicator.own(n_clusters);
    let clusters = two_means::halve_into(centroids, n_clusters, own, seed);
    let clusters = communicator.gather_lists(clusters);
    let sizes: Vec<usize> = clusters.iter().map(Vec::len).collect();
    Ok(Clustering::from_order(clusters.concat(), &sizes))
}

impl Clustering {
    /// The partition with these clusters of the labels.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if a cluster is at or above `n_clusters`, or has no label.
    pub(crate) fn new(cluster_of: Vec<ClusterId>, n_clusters: usize) -> Result<Clustering> {
        let mut sizes = vec![0; n_clusters];
        for (label_idx, cluster) in cluster_of.iter().enumerate() {
            let Some(size) = sizes.get_mut(cluster.idx()) else {
                return Err(Error::CannotTrain(format!(
                    "label {label_idx} is in cluster {}, there are {n_clusters} clusters",
                    cluster.0
                )));
            };
            *size += 1;
        }
        if let Some(empty) = sizes.iter().position(|&size| size == 0) {
            return Err(Error::CannotTrain(format!("cluster {empty} has no label")));
        }
        let mut order: Vec<LabelId> = (0..cluster_of.len() as u32).map(LabelId).collect();
        order.sort_by_key(|label| cluster_of[label.idx()]);
        Ok(Clustering::from_order(order, &sizes))
    }

    /// The partition whose first cluster is the first `sizes[0]` labels, and so on.
    fn from_order(mut order: Vec<LabelId>, sizes: &[usize]) -> Clustering {
        let mut cluster_of = vec![ClusterId(0); order.len()];
        let mut ends = Vec::with_capacity(sizes.len());
        let mut start = 0;
        for (cluster_idx, size) in sizes.iter().enumerate() {
            let members = &mut order[start..start + size];
            members.sort_unstable();
            for label in members {
                cluster_of[label.idx()] = ClusterId(cluster_idx as u32);
            }
            start += size;
            ends.push(start);
        }
        Clustering {
            cluster_of,
            members: order,
            ends,
        }
    }

    /// Number of clusters, C.
    pub(crate) fn n_clusters(&self) -> usize {
        self.ends.len()
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.cluster_of.len()
    }

    /// The cluster of each label.
    pub(crate) fn cluster_of(&self) -> &[ClusterId] {
        &self.cluster_of
    }

    /// The labels of a cluster, in ascending order.
    ///
    /// # Panics
    /// If there is no such cluster.
    pub(crate) fn members(&self, cluster: ClusterId) -> &[LabelId] {
        let start = match cluster.idx() {
            0 => 0,
            cluster_idx => self.ends[cluster_idx - 1],
        };
        &self.members[start..self.ends[cluster.idx()]]
    }

    /// The labels of each cluster, in cluster order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[LabelId]> {
        (0..self.n_clusters()).map(|cluster_idx| self.members(ClusterId(cluster_idx as u32)))
    }
}

/// Bytes that clustering takes: rows of their own first, then one matrix; and dense sums of all columns.
pub(crate) fn n_bytes(
    n_centroid_entries: usize,
    n_label_entries: usize,
    n_words: usize,
    n_threads: usize,
) -> usize {
    16 * n_centroid_entries + 8 * n_label_entries + 4 * n_words * (4 * n_threads + 16)
}

#[cfg(test)]
mod tests;
