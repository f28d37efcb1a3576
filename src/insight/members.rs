//! The training points of a cluster, and the words typical of it.

use std::cmp::Reverse;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::STRONG;
use crate::features::PointSet;
use crate::ids::ClusterId;
use crate::matrix::{CsrMatrix, Matrix};
use crate::predict::Predictor;

/// Points embedded at once.
const CHUNK: usize = 256;

/// The clusters and the embedding of each point.
#[derive(Clone, Debug)]
pub(crate) struct PointClusters {
    /// Clusters with ŝ_c above [`STRONG`], by descending score.
    pub(super) of_point: Vec<Vec<ClusterId>>,
    /// φ, N×d.
    pub(super) embeddings: Matrix,
}

/// Finds the clusters of all points, by the first member.
pub(crate) fn clusters_of_points(predictor: &Predictor, points: &PointSet) -> PointClusters {
    let member = &predictor.members()[0];
    let clusters = &member.model.clusters;
    let (dim, n_clusters) = (member.encoder.dim(), clusters.n_clusters());
    let rows: Vec<u32> = (0..points.len() as u32).collect();
    let chunks: Vec<(Vec<Vec<ClusterId>>, Vec<f32>)> = rows
        .par_chunks(CHUNK)
        .map(|rows| {
            let mut embeddings = Matrix::default();
            member
                .encoder
                .encode(points.points(), rows, &mut embeddings);
            let mut probabilities = vec![0.0; rows.len() * n_clusters];
            clusters.probabilities(embeddings.values(), &mut probabilities);
            let lists = probabilities.chunks(n_clusters).map(|row| {
                let mut strong: Vec<(f32, ClusterId)> = row
                    .iter()
                    .zip(0..)
                    .map(|(&p, cluster_idx)| (p, ClusterId(cluster_idx)))
                    .filter(|&(p, _)| clusters.score(p) > STRONG)
                    .collect();
                strong.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
                strong.into_iter().map(|(_, cluster)| cluster).collect()
            });
            (lists.collect(), embeddings.values().to_vec())
        })
        .collect();
    let mut of_point = Vec::with_capacity(rows.len());
    let mut values = Vec::with_capacity(rows.len() * dim);
    for (lists, embeddings) in chunks {
        of_point.extend(lists);
        values.extend(embeddings);
    }
    PointClusters {
        of_point,
        embeddings: Matrix::from_vec(values, rows.len(), dim),
    }
}

/// The points and the typical words of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClusterWords {
    /// Training points that belong to it.
    pub n_points: usize,
    /// The words that weigh most in its points, the heaviest first.
    pub words: Vec<String>,
}

/// Points and words of every cluster of the first member: the words of the largest summed tf-idf over its points,
/// against all points.
///
/// A word counts by how much more of its weight lies in the cluster than the cluster's share of all points.
pub(crate) fn cluster_words(
    predictor: &Predictor,
    clusters: &PointClusters,
    points: &PointSet,
    n_words: usize,
) -> Vec<ClusterWords> {
    let n_clusters = predictor.members()[0].model.clusters.n_clusters();
    let columns = cluster_columns(clusters, &points.features, n_clusters, n_words).into_iter();
    let name = |column| predictor.featurizer().name(column);
    columns
        .map(|(n_points, columns)| ClusterWords {
            n_points,
            words: columns.into_iter().map(name).collect(),
        })
        .collect()
}

/// Points of every cluster, and the columns of its words.
fn cluster_columns(
    points: &PointClusters,
    features: &CsrMatrix,
    n_clusters: usize,
    n_words: usize,
) -> Vec<(usize, Vec<u32>)> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); n_clusters];
    for (point, clusters) in points.of_point.iter().enumerate() {
        for cluster in clusters {
            members[cluster.idx()].push(point as u32);
        }
    }
    let mut totals = vec![0f32; features.n_cols()];
    for (&column, &value) in features.indices().iter().zip(features.values()) {
        totals[column as usize] += value;
    }
    let n_all = features.n_rows().max(1) as f32;
    let words = members.par_iter().map_init(
        || vec![0f32; totals.len()],
        |sums, members| {
            let mut seen: Vec<u32> = Vec::new();
            for &point in members {
                let (columns, values) = features.row(point as usize);
                for (&column, &value) in columns.iter().zip(values) {
                    if sums[column as usize] == 0.0 {
                        seen.push(column);
                    }
                    sums[column as usize] += value;
                }
            }
            let share = members.len() as f32 / n_all;
            let excess = |column: u32| {
                let (sum, total) = (sums[column as usize], totals[column as usize]);
                sum - share * total
            };
            let mut ranked: Vec<(Reverse<u64>, u32)> = seen
                .iter()
                .map(|&column| (Reverse(excess(column).max(0.0).to_bits().into()), column))
                .collect();
            ranked.sort_unstable();
            seen.iter().for_each(|&column| sums[column as usize] = 0.0);
            let columns = ranked.iter().take(n_words).map(|entry| entry.1).collect();
            (members.len(), columns)
        },
    );
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_words_are_frequent_here_and_rare_elsewhere() {
        // Word 0 is everywhere, word 1 in the first two points, word 2 in the last.
        let features = CsrMatrix::new(
            vec![0, 2, 4, 5, 7],
            vec![0, 1, 0, 1, 0, 0, 2],
            vec![0.6; 7],
            3,
        )
        .unwrap();
        let points = PointClusters {
            of_point: vec![
                vec![ClusterId(1)],
                vec![ClusterId(1)],
                vec![],
                vec![ClusterId(0)],
            ],
            embeddings: Matrix::default(),
        };
        let columns = cluster_columns(&points, &features, 3, 1);
        assert_eq!(columns, [(1, vec![2]), (2, vec![1]), (0, vec![])]);
    }
}
