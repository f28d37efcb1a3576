//! Maps of the training points of single labels, with several clusters or with one (paper, Figs. multimodal and
//! unimodal), and the compactness of the points of both kinds of labels.

use serde::{Deserialize, Serialize};

use super::health::assigning_score;
use super::health::strong_clusters;
use super::members::PointClusters;
use super::tsne::{TsneOptions, tsne};
use crate::candidates::Member;
use crate::ids::{ClusterId, LabelId};
use crate::kernels::Kernels;
use crate::matrix::{CsrMatrix, Matrix};
use crate::predict::Predictor;
use crate::random::Random;

/// Options of the maps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapOptions {
    /// Maps per kind.
    pub n_maps: usize,
    /// At most this many points of the label.
    pub n_label_points: usize,
    /// At most this many points per cluster.
    pub n_cluster_points: usize,
    /// Labels with fewer training points get no map.
    pub fewest_points: usize,
    /// Chooses labels and points.
    pub seed: u64,
}

impl Default for MapOptions {
    fn default() -> Self {
        MapOptions {
            n_maps: 6,
            n_label_points: 100,
            n_cluster_points: 60,
            fewest_points: 15,
            seed: 42,
        }
    }
}

/// The map of one label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelMap {
    /// The label.
    pub label: u32,
    /// Its clusters, strongest first.
    pub clusters: Vec<u32>,
    /// The points.
    pub points: Vec<MapPoint>,
}

/// A training point on a map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapPoint {
    /// The training point.
    pub point: u32,
    /// Position, 0 to 1.
    pub x: f32,
    /// Position, 0 to 1.
    pub y: f32,
    /// The position of its cluster in [`LabelMap::clusters`]; `None` for a point of the label.
    pub cluster: Option<u8>,
}

/// A training point to put on a map, as in [`MapPoint`].
struct ChosenPoint {
    point: u32,
    cluster: Option<u8>,
}

/// Maps of labels with 2 to 5 clusters, and of labels with one.
pub fn label_maps(
    predictor: &Predictor,
    points: &PointClusters,
    labels: &CsrMatrix,
    options: &MapOptions,
) -> [Vec<LabelMap>; 2] {
    let member = &predictor.members()[0];
    let clusters_of = strong_clusters(&member.model.adjacency);
    let of_label = labels.transpose();
    let mut of_cluster: Vec<Vec<u32>> = vec![Vec::new(); member.model.clusters.n_clusters()];
    for (point, clusters) in points.of_point.iter().enumerate() {
        for cluster in clusters {
            of_cluster[cluster.idx()].push(point as u32);
        }
    }
    [2..=5, 1..=1].map(|wanted| {
        let mut random = Random::new(options.seed, "maps", u64::from(*wanted.start()));
        let mut candidates: Vec<LabelId> = (0..of_label.n_rows() as u32)
            .map(LabelId)
            .filter(|&label| {
                let row = member.model.numbering.row(label);
                wanted.contains(&clusters_of[row.idx()])
                    && of_label.row(label.idx()).0.len() >= options.fewest_points
            })
            .collect();
        random.shuffle(&mut candidates);
        candidates.truncate(options.n_maps);
        candidates.sort_unstable();
        let map = |&label: &LabelId| {
            let clusters = clusters_of_label(member, label);
            let mut chosen: Vec<ChosenPoint> = Vec::new();
            let mut take = |from: &[u32], most: usize, cluster: Option<u8>| {
                let mut from = from.to_vec();
                random.shuffle(&mut from);
                from.retain(|point| !chosen.iter().any(|taken| taken.point == *point));
                chosen.extend(
                    from.into_iter()
                        .take(most)
                        .map(|point| ChosenPoint { point, cluster }),
                );
            };
            take(of_label.row(label.idx()).0, options.n_label_points, None);
            for (at, cluster) in clusters.iter().enumerate() {
                take(
                    &of_cluster[cluster.idx()],
                    options.n_cluster_points,
                    Some(at as u8),
                );
            }
            lay_out(label, &clusters, &chosen, points, options.seed)
        };
        candidates.iter().map(map).collect()
    })
}

/// The clusters of a label, strongest first.
fn clusters_of_label(member: &Member, label: LabelId) -> Vec<ClusterId> {
    let adjacency = &member.model.adjacency;
    let row = member.model.numbering.row(label);
    let mut found: Vec<(f32, ClusterId)> = Vec::new();
    for cluster_idx in 0..adjacency.edges().n_clusters() {
        let cluster = ClusterId(cluster_idx as u32);
        let range = adjacency.edges().range(cluster);
        let labels = &adjacency.edges().rows()[range.clone()];
        if let Ok(offset) = labels.binary_search(&row) {
            found.push((adjacency.scores()[range.start + offset], cluster));
        }
    }
    let assigned_above = assigning_score(adjacency);
    found.retain(|(score, _)| *score > assigned_above);
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, cluster)| cluster).collect()
}

fn lay_out(
    label: LabelId,
    clusters: &[ClusterId],
    chosen: &[ChosenPoint],
    points: &PointClusters,
    seed: u64,
) -> LabelMap {
    let dim = points.embeddings.n_cols();
    let values = chosen
        .iter()
        .flat_map(|chosen| points.embeddings.row(chosen.point as usize))
        .copied()
        .collect();
    let rows = Matrix::from_vec(values, chosen.len(), dim);
    let options = TsneOptions {
        perplexity: 30.0,
        n_steps: 300,
        seed,
    };
    let positions = tsne(&rows, options);
    let bounds = |axis: usize| {
        let values = positions.iter().map(|position| position[axis]);
        let low = values.clone().fold(f64::INFINITY, f64::min);
        (
            low,
            (values.fold(f64::NEG_INFINITY, f64::max) - low).max(1e-9),
        )
    };
    let [(left, width), (top, height)] = [bounds(0), bounds(1)];
    let place = |(chosen, position): (&ChosenPoint, &[f64; 2])| MapPoint {
        point: chosen.point,
        x: ((position[0] - left) / width) as f32,
        y: ((position[1] - top) / height) as f32,
        cluster: chosen.cluster,
    };
    LabelMap {
        label: label.0,
        clusters: clusters.iter().map(|cluster| cluster.0).collect(),
        points: chosen.iter().zip(&positions).map(place).collect(),
    }
}

/// Compactness of the training points of labels, for labels with one cluster and with several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compactness {
    /// Fewest training points of a label.
    pub fewest_points: usize,
    /// Most training points of a label.
    pub most_points: usize,
    /// Labels with one cluster, and with several.
    pub n_labels: [usize; 2],
    /// Norm of the mean of a label's normalised embeddings, averaged over the labels of each kind; 1 if they
    /// are all the same.
    pub mean_length: [f64; 2],
}

/// Compactness by bands of label frequency, since frequent labels have more clusters and more varied points.
pub fn compactness(
    predictor: &Predictor,
    points: &PointClusters,
    labels: &CsrMatrix,
    bands: &[(usize, usize)],
) -> Vec<Compactness> {
    let member = &predictor.members()[0];
    let clusters_of = strong_clusters(&member.model.adjacency);
    let of_label = labels.transpose();
    let mut found: Vec<Compactness> = bands
        .iter()
        .map(|&(fewest_points, most_points)| Compactness {
            fewest_points,
            most_points,
            n_labels: [0; 2],
            mean_length: [0.0; 2],
        })
        .collect();
    for label_idx in 0..of_label.n_rows() {
        let own = of_label.row(label_idx).0;
        let band = found
            .iter_mut()
            .find(|band| (band.fewest_points..=band.most_points).contains(&own.len()));
        let row = member.model.numbering.row(LabelId(label_idx as u32));
        let kind = match clusters_of[row.idx()] {
            0 => continue,
            1 => 0,
            _ => 1,
        };
        if let Some(band) = band {
            band.n_labels[kind] += 1;
            band.mean_length[kind] += norm_of_mean(&points.embeddings, own);
        }
    }
    for band in &mut found {
        for (mean, &n) in band.mean_length.iter_mut().zip(&band.n_labels) {
            *mean /= n.max(1) as f64;
        }
    }
    found
}

fn norm_of_mean(embeddings: &Matrix, points: &[u32]) -> f64 {
    let kernels = Kernels::detect();
    let mut sum = vec![0f32; embeddings.n_cols()];
    for &point in points {
        let row = embeddings.row(point as usize);
        let length = kernels.dot(row, row).sqrt().max(f32::MIN_POSITIVE);
        kernels.axpy(1.0 / length, row, &mut sum);
    }
    f64::from(kernels.dot(&sum, &sum).sqrt()) / points.len().max(1) as f64
}
