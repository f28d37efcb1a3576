//! Recursive halving by balanced spherical 2-means.
//!
//! A set of labels is split by two unit centres: labels are ordered by `(centre_0 - centre_1) · x` and cut at the
//! required size, which is the best assignment of these sizes; each centre becomes the normalised sum of its side; and
//! so on until nothing improves. With sums S₀ and S₁ the summed cosine is ‖S₀‖ + ‖S₁‖, and no round lowers it. Every
//! split has its own random stream, numbered by its place in the tree.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::clustering::node::Node;
use crate::ids::LabelId;
use crate::matrix::CsrMatrix;
use crate::random::Random;

/// The labels of each wanted cluster. Sizes of all clusters differ by at most one.
///
/// `centroids` is L×D, rows of L2 norm 1 or empty. Requires `1 <= n_clusters <= L`. What leads to no wanted cluster is
/// not halved.
pub(super) fn halve_into(
    centroids: &CsrMatrix,
    n_clusters: usize,
    wanted: Range<usize>,
    seed: u64,
) -> Vec<Vec<LabelId>> {
    let root = Node {
        labels: (0..centroids.n_rows() as u32).map(LabelId).collect(),
        rows: Cow::Borrowed(centroids),
    };
    let tree = Tree { wanted, seed };
    tree.halve(root, 0..n_clusters, 1)
}

/// Inputs that all splits share.
struct Tree {
    /// The clusters whose labels are asked for.
    wanted: Range<usize>,
    seed: u64,
}

impl Tree {
    /// The wanted clusters of a node, which will have these clusters. `place` numbers the nodes: the root is 1, the
    /// children of `i` are `2i`, `2i + 1`.
    fn halve(&self, node: Node, clusters: Range<usize>, place: u64) -> Vec<Vec<LabelId>> {
        if clusters.len() == 1 {
            return if self.wants(&clusters) {
                vec![node.labels]
            } else {
                Vec::new()
            };
        }
        let n_left_clusters = clusters.len().div_ceil(2);
        let middle = clusters.start + n_left_clusters;
        let n_left = left_size(node.labels.len(), clusters.len(), n_left_clusters);
        let order = split(&node, n_left, Random::new(self.seed, "clustering", place));
        let child = |clusters: Range<usize>, rows: &[u32]| {
            let is_wanted = self.wants(&clusters);
            is_wanted.then(|| (node.select(rows), clusters))
        };
        let (left, right) = rayon::join(
            || child(clusters.start..middle, &order[..n_left]),
            || child(middle..clusters.end, &order[n_left..]),
        );
        drop(node);
        let halve = |child: Option<(Node, Range<usize>)>, place| match child {
            Some((node, clusters)) => self.halve(node, clusters, place),
            None => Vec::new(),
        };
        let (mut left, mut right) =
            rayon::join(|| halve(left, 2 * place), || halve(right, 2 * place + 1));
        left.append(&mut right);
        left
    }

    /// Whether one of the clusters is asked for.
    fn wants(&self, clusters: &Range<usize>) -> bool {
        clusters.start < self.wanted.end && self.wanted.start < clusters.end
    }
}

/// The number of labels on the left such that all clusters end up with ⌊n/C⌋ or ⌈n/C⌉.
fn left_size(n_labels: usize, n_clusters: usize, n_left_clusters: usize) -> usize {
    let (size, n_larger) = (n_labels / n_clusters, n_labels % n_clusters);
    let n_larger_left = (n_larger * n_left_clusters).div_ceil(n_clusters);
    size * n_left_clusters + n_larger_left
}

/// The rows of a node, the `n_left` of the left side first; both sides ascend.
///
/// Several starts run for a few rounds, the best of them to the end.
fn split(node: &Node, n_left: usize, mut random: Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..node.labels.len() as u32).collect();
    let mut best_order = order.clone();
    let mut best_cosine = f64::NEG_INFINITY;
    let total = node.sum(&order);
    let halving = Halving {
        node,
        n_left,
        total: &total,
        tolerance: f64::from(TOLERANCE),
    };
    for _ in 0..N_STARTS {
        halving.assign(&mut order, &first_direction(node, &mut random));
        let cosine = halving.two_means(&mut order, FIRST_ROUNDS);
        if cosine > best_cosine {
            best_cosine = cosine;
            best_order.copy_from_slice(&order);
        }
    }
    halving.two_means(&mut best_order, MAX_ROUNDS - FIRST_ROUNDS);
    best_order[..n_left].sort_unstable();
    best_order[n_left..].sort_unstable();
    best_order
}

/// Random starts per split.
const N_STARTS: usize = 4;
/// Rounds after which the starts of a split are compared.
const FIRST_ROUNDS: usize = 3;
/// Most rounds per split.
const MAX_ROUNDS: usize = 20;
/// A split ends once its mean cosine grows by less than this per round.
const TOLERANCE: f32 = 1e-5;

/// A random label minus the least similar one of a sample.
fn first_direction(node: &Node, random: &mut Random) -> Vec<f32> {
    let n_rows = node.labels.len();
    let mut direction = vec![0.0; node.rows.n_cols()];
    let first = random.below(n_rows) as u32;
    node.add(first, 1.0, &mut direction);
    let second = (0..N_CANDIDATES)
        .map(|_| random.below(n_rows) as u32)
        .map(|row| (node.dot(row, &direction), row))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        .map_or(first, |(_, row)| row);
    node.add(second, -1.0, &mut direction);
    direction
}

/// Size of that sample.
const N_CANDIDATES: usize = 16;

/// A split in progress. An order of the node's rows has the left side first.
struct Halving<'a> {
    node: &'a Node<'a>,
    n_left: usize,
    /// Σ of all rows of the node.
    total: &'a [f32],
    tolerance: f64,
}

impl Halving<'_> {
    /// Runs at most `n_rounds` rounds of 2-means from the given sides; returns the mean cosine.
    fn two_means(&self, order: &mut [u32], n_rounds: usize) -> f64 {
        let (mut direction, mut cosine) = self.centres(order);
        for _ in 0..n_rounds {
            self.assign(order, &direction);
            let cosine_before = cosine;
            (direction, cosine) = self.centres(order);
            if cosine - cosine_before < self.tolerance {
                break;
            }
        }
        cosine
    }

    /// Puts the `n_left` rows with the highest `direction · x` first; ties to the lower label.
    fn assign(&self, order: &mut [u32], direction: &[f32]) {
        let mut scored: Vec<(f32, u32)> = order
            .par_iter()
            .with_min_len(MIN_LABELS_PER_TASK)
            .map(|&row| (self.node.dot(row, direction), row))
            .collect();
        // One side is never empty, so there is a row at `n_left`.
        scored.select_nth_unstable_by(self.n_left, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (place, (_, row)) in order.iter_mut().zip(scored) {
            *place = row;
        }
    }

    /// centre_0 - centre_1, and the mean cosine between labels and the centres of their sides.
    fn centres(&self, order: &[u32]) -> (Vec<f32>, f64) {
        let mut left = self.node.sum(&order[..self.n_left]);
        let (mut left_squares, mut right_squares) = (0.0, 0.0);
        for (&left, &total) in left.iter().zip(self.total) {
            let (left, right) = (f64::from(left), f64::from(total - left));
            left_squares += left * left;
            right_squares += right * right;
        }
        let (left_norm, right_norm) = (left_squares.sqrt(), right_squares.sqrt());
        let cosine = (left_norm + right_norm) / order.len() as f64;
        // A side whose sum is zero has no centre.
        let scale = |norm: f64| {
            if norm == 0.0 {
                0.0
            } else {
                (1.0 / norm) as f32
            }
        };
        let (left_scale, right_scale) = (scale(left_norm), scale(right_norm));
        for (left, &total) in left.iter_mut().zip(self.total) {
            *left = left_scale * *left - right_scale * (total - *left);
        }
        (left, cosine)
    }
}

/// The fewest labels worth a task of their own.
pub(super) const MIN_LABELS_PER_TASK: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sides_are_large_enough_for_their_clusters(n_labels in 2usize..500, share in 0.0f64..1.0) {
            let n_clusters = 2 + (share * (n_labels - 2) as f64) as usize;
            let n_left_clusters = n_clusters.div_ceil(2);
            let n_left = left_size(n_labels, n_clusters, n_left_clusters);
            let n_right = n_labels - n_left;
            let sizes = n_labels / n_clusters..=n_labels.div_ceil(n_clusters);
            for (n, c) in [(n_left, n_left_clusters), (n_right, n_clusters - n_left_clusters)] {
                prop_assert!(sizes.contains(&(n / c)) && sizes.contains(&n.div_ceil(c)));
            }
        }

        #[test]
        fn assignment_maximises_the_score_of_the_left_side(values in prop::collection::vec(-3i8..3, 2..9), cut in 0usize..8) {
            let n_left = 1 + cut % (values.len() - 1);
            let indptr = (0..=values.len()).collect();
            let entries = values.iter().map(|&value| f32::from(value)).collect();
            let rows = CsrMatrix::new(indptr, vec![0; values.len()], entries, 1).unwrap();
            let labels = (0..values.len() as u32).map(LabelId).collect();
            let node = Node { labels, rows: Cow::Owned(rows) };
            let halving = Halving { node: &node, n_left, total: &[0.0], tolerance: 0.0 };
            let mut order: Vec<u32> = (0..values.len() as u32).rev().collect();
            halving.assign(&mut order, &[1.0]);
            let mut best: Vec<u32> = (0..values.len() as u32).collect();
            best.sort_by_key(|&row| (-values[row as usize], row));
            order[..n_left].sort_unstable();
            best[..n_left].sort_unstable();
            prop_assert_eq!(&order[..n_left], &best[..n_left]);
        }
    }
}
