//! Single parts of the method, to be compared with other implementations.

use crate::clustering::{self, PointFeatures, label_centroids};
use crate::error::Result;
use crate::matrix::CsrMatrix;
use crate::pipeline::PreparedTraining;

/// The initial cluster of each label, from features and labels of the same points.
///
/// # Errors
/// [`Error::Config`](crate::Error::Config) if there are no clusters, or more than labels.
pub fn cluster_labels(
    features: &CsrMatrix,
    labels: &CsrMatrix,
    n_clusters: usize,
    seed: u64,
) -> Result<Vec<u32>> {
    let points = PointFeatures {
        sparse: features,
        dense: None,
    };
    let centroids = label_centroids(labels, points);
    let clustering = clustering::cluster_labels(&centroids, n_clusters, seed)?;
    let clusters = clustering.cluster_of().iter();
    Ok(clusters.map(|cluster| cluster.0).collect())
}

/// Trains the stages of one member, on any number of ranks, and keeps nothing of it.
///
/// # Errors
/// As [`Trainer::train`](crate::Trainer::train).
pub fn train_stages(prepared: PreparedTraining<'_>) -> Result<()> {
    prepared.train_stages()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;

    #[test]
    fn labels_of_the_same_words_share_a_cluster() {
        let data = Dataset::from_texts([
            ("red apple", ["apple", "fruit"]),
            ("fast car", ["car", "vehicle"]),
        ]);
        let (_, features) = crate::tools::TfIdf::fit_transform(data.texts().unwrap()).unwrap();
        let clusters = cluster_labels(&features, data.labels(), 2, 0).unwrap();
        assert_eq!((clusters[0], clusters[2]), (clusters[1], clusters[3]));
        assert_ne!(clusters[0], clusters[2]);
    }
}
