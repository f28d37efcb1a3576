//! Recursive halving by balanced spherical 2-means.
//!
//! A set of labels is split in two by two unit centres: labels are ordered by `(centre_0 - centre_1) · x` and cut at
//! the wanted size, which is the best assignment of these sizes; each centre becomes the normalised sum of its side;
//! and so on until nothing is gained. With sums S₀ and S₁ the summed cosine is ‖S₀‖ + ‖S₁‖, and no round lowers it.
//! Every split draws from a random stream of its own, named by its place in the tree.

use rayon::prelude::*;

use crate::config::ClusteringConfig;
use crate::ids::LabelId;
use crate::matrix::CsrMatrix;
use crate::random::Random;

/// Reorders the labels so that clusters stand one after the other, and gives the sizes of the clusters.
///
/// Requires `1 <= n_clusters <= labels.len()`. Sizes differ by at most one.
pub(super) fn halve_into(
    centroids: &CsrMatrix,
    labels: &mut [LabelId],
    n_clusters: usize,
    config: &ClusteringConfig,
    seed: u64,
) -> Vec<usize> {
    let tree = Tree {
        centroids,
        config,
        seed,
    };
    tree.halve(labels, n_clusters, 1)
}

struct Tree<'a> {
    /// L×D, rows of length 1 or empty.
    centroids: &'a CsrMatrix,
    config: &'a ClusteringConfig,
    seed: u64,
}

impl Tree<'_> {
    /// `node` numbers the places in the tree: the root is 1, the children of `i` are `2i` and `2i + 1`.
    fn halve(&self, labels: &mut [LabelId], n_clusters: usize, node: u64) -> Vec<usize> {
        if n_clusters == 1 {
            return vec![labels.len()];
        }
        let n_left_clusters = n_clusters.div_ceil(2);
        let n_left = left_size(labels.len(), n_clusters, n_left_clusters);
        self.split(labels, n_left, node);
        let (left, right) = labels.split_at_mut(n_left);
        let (mut sizes, right_sizes) = rayon::join(
            || self.halve(left, n_left_clusters, 2 * node),
            || self.halve(right, n_clusters - n_left_clusters, 2 * node + 1),
        );
        sizes.extend(right_sizes);
        sizes
    }

    /// Reorders the labels so that the first `n_left` are one side of a split; both sides ascend by label.
    fn split(&self, labels: &mut [LabelId], n_left: usize, node: u64) {
        let mut random = Random::new(self.seed, "clustering", node);
        let total = self.sum(labels);
        let mut direction = self.first_direction(labels, &mut random);
        let mut best_gain = f64::NEG_INFINITY;
        for _ in 0..self.config.max_iterations.max(1) {
            self.assign(labels, n_left, &direction);
            let left = self.sum(&labels[..n_left]);
            let (left_norm, right_norm) = norms(&left, &total);
            let cosine = (left_norm + right_norm) / labels.len() as f64;
            if cosine - best_gain < f64::from(self.config.tolerance) {
                break;
            }
            best_gain = cosine;
            // centre_0 - centre_1; a side without length has no centre and pulls nothing.
            let scale = |norm: f64| {
                if norm == 0.0 {
                    0.0
                } else {
                    (1.0 / norm) as f32
                }
            };
            let (left_scale, right_scale) = (scale(left_norm), scale(right_norm));
            for ((place, &left), &total) in direction.iter_mut().zip(&left).zip(&total) {
                *place = left_scale * left - right_scale * (total - left);
            }
        }
        labels[..n_left].sort_unstable();
        labels[n_left..].sort_unstable();
    }

    /// A label drawn at random minus the label least like it, of a sample.
    fn first_direction(&self, labels: &[LabelId], random: &mut Random) -> Vec<f32> {
        let mut direction = vec![0.0; self.centroids.n_cols()];
        let first = labels[random.below(labels.len())];
        self.add(first, 1.0, &mut direction);
        let second = (0..N_CANDIDATES)
            .map(|_| labels[random.below(labels.len())])
            .map(|label| (self.score(label, &direction), label))
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
            .map_or(first, |(_, label)| label);
        self.add(second, -1.0, &mut direction);
        direction
    }

    fn add(&self, label: LabelId, factor: f32, sum: &mut [f32]) {
        let (columns, values) = self.centroids.row(label.idx());
        for (&column, &value) in columns.iter().zip(values) {
            sum[column as usize] += factor * value;
        }
    }

    /// Reorders the labels so that the `n_left` with the greatest `direction · x` come first; ties to the lower id.
    fn assign(&self, labels: &mut [LabelId], n_left: usize, direction: &[f32]) {
        let mut scored: Vec<(f32, LabelId)> = labels
            .par_iter()
            .with_min_len(LEAST_PARALLEL_LABELS)
            .map(|&label| (self.score(label, direction), label))
            .collect();
        if n_left < scored.len() {
            scored.select_nth_unstable_by(n_left, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        for (place, (_, label)) in labels.iter_mut().zip(scored) {
            *place = label;
        }
    }

    fn score(&self, label: LabelId, direction: &[f32]) -> f32 {
        let (columns, values) = self.centroids.row(label.idx());
        let mut score = 0.0;
        for (&column, &value) in columns.iter().zip(values) {
            score += direction[column as usize] * value;
        }
        score
    }

    /// Σ of the labels' rows. Blocks are cut by the number of labels and added in order, whatever the threads.
    fn sum(&self, labels: &[LabelId]) -> Vec<f32> {
        let block_size = labels
            .len()
            .div_ceil(MOST_BLOCKS)
            .max(LEAST_PARALLEL_LABELS);
        let blocks: Vec<Vec<f32>> = labels
            .par_chunks(block_size)
            .map(|block| {
                let mut sum = vec![0.0; self.centroids.n_cols()];
                for &label in block {
                    self.add(label, 1.0, &mut sum);
                }
                sum
            })
            .collect();
        blocks
            .into_iter()
            .reduce(|mut sum, block| {
                for (place, value) in sum.iter_mut().zip(block) {
                    *place += value;
                }
                sum
            })
            .unwrap_or_else(|| vec![0.0; self.centroids.n_cols()])
    }
}

/// Labels among which the second seed of a split is sought.
const N_CANDIDATES: usize = 16;
/// Blocks cost a dense vector each; this many keep many threads busy at the root.
const MOST_BLOCKS: usize = 16;
/// Below this many labels a block is not worth handing to another thread.
const LEAST_PARALLEL_LABELS: usize = 2048;

/// How many labels go left so that in the end all clusters hold ⌊n/C⌋ or ⌈n/C⌉.
fn left_size(n_labels: usize, n_clusters: usize, n_left_clusters: usize) -> usize {
    let (size, n_larger) = (n_labels / n_clusters, n_labels % n_clusters);
    let n_larger_left = (n_larger * n_left_clusters).div_ceil(n_clusters);
    size * n_left_clusters + n_larger_left
}

/// ‖left‖ and ‖total - left‖, summed in `f64`.
fn norms(left: &[f32], total: &[f32]) -> (f64, f64) {
    let (mut left_squares, mut right_squares) = (0.0, 0.0);
    for (&left, &total) in left.iter().zip(total) {
        let right = f64::from(total - left);
        left_squares += f64::from(left) * f64::from(left);
        right_squares += right * right;
    }
    (left_squares.sqrt(), right_squares.sqrt())
}
