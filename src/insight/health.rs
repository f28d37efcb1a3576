//! The state of a search index: sizes, edge scores, labels with several clusters, and overlap with stage 1.

use serde::{Deserialize, Serialize};

use crate::ids::{ClusterId, LabelId};
use crate::index::{Adjacency, Edges};
use crate::metrics::{DecileOf, decile_of_labels};
use crate::predict::Predictor;

/// Bins of the histogram of edge scores.
const N_BINS: usize = 20;
/// Labels with this many clusters or more are counted together.
const MAX_CLUSTERS: usize = 10;
/// Score cut-offs for the overlap with the edges of stage 1 (paper, Fig. index-overlap).
pub(crate) const OVERLAP_CUTOFFS: [f64; 10] =
    [0.0, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9];

/// ŝ(c,ℓ) above which an edge assigns its label to its cluster.
///
/// The paper has 0.25 where an edge of average weight scores β/κ = 0.15; here it is as many times the average.
/// Where that is not below 1, nearly saturated edges count.
pub(crate) fn assigning_score(adjacency: &Adjacency) -> f32 {
    let edges = adjacency.edges();
    let edges_per_cluster = edges.len() as f32 / edges.n_clusters().max(1) as f32;
    let average = adjacency.beta().unwrap_or(0.0) / edges_per_cluster.max(1.0);
    (0.25 / 0.15 * average).clamp(0.25, 0.95)
}

/// Facts about one member's index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexHealth {
    /// C.
    pub n_clusters: usize,
    /// L.
    pub n_labels: usize,
    /// Edges of A.
    pub n_edges: usize,
    /// β; `None` if edges are fixed.
    pub beta: Option<f32>,
    /// Edges per cluster: minimum, median, maximum.
    pub edges_of_cluster: [usize; 3],
    /// The score above which an edge assigns its label to its cluster.
    pub assigned_above: f32,
    /// Labels assigned per cluster: minimum, median, maximum.
    pub labels_of_cluster: [usize; 3],
    /// Labels assigned to 0, 1, 2, … clusters; the last entry counts all with that many or more.
    pub labels_by_clusters: Vec<usize>,
    /// Labels without an edge.
    pub n_unreachable: usize,
    /// Edges by score ŝ(c,ℓ), in bins of equal width from 0 to 1.
    pub histogram: Vec<usize>,
    /// The r-th largest normalised edge weight softmax(a), averaged over the clusters with edges, by r.
    pub weight_by_rank: Vec<f64>,
    /// Percent of the stage-1 edges with at least the score of each of [`Inspection::overlap_cutoffs`](super::Inspection).
    pub stage1_overlap: Option<Vec<f64>>,
    /// Mean number of assigned clusters per label, by decile of label frequency.
    pub clusters_by_decile: Vec<f64>,
}

impl IndexHealth {
    /// The index of one member.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn of(predictor: &Predictor, member_idx: usize) -> Self {
        let member = &predictor.members()[member_idx];
        let adjacency = &member.model.adjacency;
        let edges = adjacency.edges();
        let clusters = || (0..edges.n_clusters()).map(|cluster_idx| ClusterId(cluster_idx as u32));
        let assigned_above = assigning_score(adjacency);
        let n_strong = |cluster| {
            let scores = &adjacency.scores()[edges.range(cluster)];
            scores
                .iter()
                .filter(|&&score| score > assigned_above)
                .count()
        };
        let mut histogram = vec![0; N_BINS];
        for &score in adjacency.scores() {
            histogram[((score * N_BINS as f32) as usize).min(N_BINS - 1)] += 1;
        }
        let clusters_of = strong_clusters(adjacency);
        let mut labels_by_clusters = vec![0; MAX_CLUSTERS + 1];
        for &n_clusters in &clusters_of {
            labels_by_clusters[(n_clusters as usize).min(MAX_CLUSTERS)] += 1;
        }
        let numbering = &member.model.numbering;
        let counts: Vec<usize> = predictor
            .label_counts()
            .iter()
            .take(predictor.n_trained_labels())
            .map(|&count| count as usize)
            .collect();
        let mut sums = [(0.0, 0.0); 10];
        for (label_idx, &decile) in decile_of_labels(&counts, DecileOf::Labels)
            .iter()
            .enumerate()
        {
            let row = numbering.row(LabelId(label_idx as u32));
            let (sum, n) = &mut sums[usize::from(decile)];
            *sum += f64::from(clusters_of[row.idx()]);
            *n += 1.0;
        }
        let stage1 = member.stage1.edges.as_ref();
        IndexHealth {
            n_clusters: edges.n_clusters(),
            n_labels: edges.n_labels(),
            n_edges: edges.len(),
            beta: adjacency.beta(),
            edges_of_cluster: spread(clusters().map(|cluster| edges.range(cluster).len())),
            assigned_above,
            labels_of_cluster: spread(clusters().map(n_strong)),
            labels_by_clusters,
            n_unreachable: edges.unreachable().len(),
            histogram,
            weight_by_rank: weight_by_rank(adjacency),
            stage1_overlap: stage1.map(|stage1| overlap(adjacency, stage1)),
            clusters_by_decile: sums.map(|(sum, n)| sum / f64::max(n, 1.0)).to_vec(),
        }
    }

    /// Labels assigned to more than one cluster.
    pub fn n_in_several_clusters(&self) -> usize {
        self.labels_by_clusters[2..].iter().sum()
    }
}

/// Number of clusters each row of W_L is assigned to.
pub(super) fn strong_clusters(adjacency: &Adjacency) -> Vec<u32> {
    let mut counts = vec![0; adjacency.edges().n_labels()];
    let assigned_above = assigning_score(adjacency);
    for (label, &score) in adjacency.edges().rows().iter().zip(adjacency.scores()) {
        counts[label.idx()] += u32::from(score > assigned_above);
    }
    counts
}

/// Minimum, median and maximum; zeros if empty.
fn spread(counts: impl Iterator<Item = usize>) -> [usize; 3] {
    let mut counts: Vec<usize> = counts.collect();
    counts.sort_unstable();
    match counts.len() {
        0 => [0; 3],
        n => [counts[0], counts[n / 2], counts[n - 1]],
    }
}

fn weight_by_rank(adjacency: &Adjacency) -> Vec<f64> {
    let edges = adjacency.edges();
    let n_filled = edges
        .indptr()
        .windows(2)
        .filter(|ends| ends[0] < ends[1])
        .count() as f64;
    let mut means: Vec<f64> = Vec::new();
    for cluster_idx in 0..edges.n_clusters() {
        let range = edges.range(ClusterId(cluster_idx as u32));
        let mut weights: Vec<f64> = match adjacency.weights() {
            Some(weights) => weights[range].iter().map(|&a| f64::from(a)).collect(),
            None => vec![0.0; range.len()],
        };
        let highest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|a| *a = (*a - highest).exp());
        let sum: f64 = weights.iter().sum();
        weights.sort_by(|a, b| b.total_cmp(a));
        means.resize(means.len().max(weights.len()), 0.0);
        for (mean, weight) in means.iter_mut().zip(&weights) {
            *mean += weight / sum / n_filled;
        }
    }
    means
}

fn overlap(adjacency: &Adjacency, stage1: &Edges) -> Vec<f64> {
    let edges = adjacency.edges();
    let mut n_left = [0usize; OVERLAP_CUTOFFS.len()];
    for cluster_idx in 0..edges.n_clusters().min(stage1.n_clusters()) {
        let cluster = ClusterId(cluster_idx as u32);
        let range = edges.range(cluster);
        let row = &edges.rows()[range.clone()];
        for label in &stage1.rows()[stage1.range(cluster)] {
            let Ok(offset) = row.binary_search(label) else {
                continue;
            };
            let score = f64::from(adjacency.scores()[range.start + offset]);
            for (n_left, cutoff) in n_left.iter_mut().zip(OVERLAP_CUTOFFS) {
                *n_left += usize::from(score >= cutoff);
            }
        }
    }
    let percent = |n: usize| 100.0 * n as f64 / stage1.len().max(1) as f64;
    n_left.map(percent).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LabelRow;

    #[test]
    fn an_edge_assigns_its_label_by_how_far_it_is_above_the_average() {
        let edges = Edges::from_lists(vec![(0..20).map(LabelRow).collect()], 20).unwrap();
        let learned = |beta| Adjacency::learned(edges.clone(), vec![0.0; 20], beta).unwrap();
        let of = |beta| assigning_score(&learned(beta));
        assert!((of(3.0) - 0.25).abs() < 1e-6, "the paper's β/κ = 0.15");
        assert!((of(9.0) - 0.75).abs() < 1e-6);
        assert_eq!((of(1.0), of(100.0)), (0.25, 0.95));
        assert_eq!(assigning_score(&Adjacency::fixed(edges.clone())), 0.25);
    }
}
