//! Part 2: label by label, σ(w·φ + b), the classification loss and its gradients.
//!
//! The pairs of a range are grouped by label, and neighbouring labels, which mostly share their points, form tiles.
//! A row of W_L is read once, scored against the points that shortlisted it, and its gradient Σ dz·φ, the share
//! dz·w of each point's dφ, and AdamW follow while the row is in cache.

use std::hint::select_unpredictable;

use super::LossWeights;
use super::label_state::LabelRows;
use super::search::{Pair, ShardBuffers};
use crate::kernels::{Aligned, Kernels, TILE, prefetch};
use crate::loss;
use crate::matrix::Groups;

/// Inputs of a range's step besides its rows.
pub(super) struct RangeInputs<'a> {
    /// φ after dropout, B×d.
    pub(super) embeddings: &'a [f32],
    /// d.
    pub(super) dim: usize,
    pub(super) weights: LossWeights,
    /// The weight of each point, B.
    pub(super) point_weights: &'a [f32],
    pub(super) gradient_floor: f32,
    pub(super) n_slots: usize,
    pub(super) wants_edges: bool,
}

/// Buffers and results of one range of labels.
pub(super) struct RangeBuffers {
    range_idx: usize,
    pub(super) labels: std::ops::Range<usize>,
    by_label: Groups<Pair>,
    scratch: Scratch,
    /// The range's share of ∂L/∂φ, B×d.
    pub(super) d_embeddings: Aligned,
    /// The range's share of ∂L/∂log ŝ_c, one per selected cluster.
    pub(super) d_slots: Vec<f32>,
    /// ∂L/∂log ŝ(c,ℓ) of edges, in pieces.
    pub(super) d_edges: Vec<(u32, f32)>,
    /// The range's share of L_c and L_s.
    pub(super) losses: [f64; 2],
}

/// The position of a point that no label of the tile has; batches are smaller.
const ABSENT: u16 = u16::MAX;

/// Arrays over a tile of labels.
#[derive(Default)]
struct Scratch {
    /// For every point of the batch: its position in `points`, or [`ABSENT`].
    position: Vec<u16>,
    /// The points that shortlisted any label of the tile.
    points: Vec<u32>,
    /// Position in `points` of every pair, label after label.
    positions: Vec<u16>,
    /// ŷ of every pair, infinite for positives: no probability of theirs is faint.
    paths: Vec<f32>,
    /// z of every point and label.
    products: Vec<f32>,
    /// e^−z of the pairs of one label.
    exponentials: Vec<f32>,
    /// The pairs of one label that are not faint.
    found: Vec<u32>,
    /// ∂L/∂z of every point and label; 0 for pairs that do not exist or pass nothing.
    d_logits: Vec<f32>,
    bias_gradients: [f32; TILE],
    is_touched: [bool; TILE],
    gradients: Vec<f32>,
}

impl RangeBuffers {
    pub(super) fn new(range_idx: usize, labels: std::ops::Range<usize>) -> Self {
        RangeBuffers {
            range_idx,
            by_label: Groups::new(labels.len()),
            labels,
            scratch: Scratch::default(),
            d_embeddings: Aligned::default(),
            d_slots: Vec::new(),
            d_edges: Vec::new(),
            losses: [0.0; 2],
        }
    }

    pub(super) fn step(
        &mut self,
        shards: &[ShardBuffers],
        mut rows: LabelRows<'_>,
        inputs: &RangeInputs<'_>,
    ) {
        let dim = inputs.dim;
        let n_points = inputs.embeddings.len() / dim;
        let first = self.labels.start as u32;
        let pairs = shards.iter().flat_map(|shard| &shard.pairs[self.range_idx]);
        self.by_label
            .group(pairs.map(|pair| (pair.label - first, *pair)));
        self.d_embeddings.clear_to(n_points * dim);
        clear_to(&mut self.d_slots, n_points * inputs.n_slots);
        self.d_edges.clear();
        let dropped = shards
            .iter()
            .flat_map(|shard| &shard.dropped)
            .filter(|pair| self.labels.contains(&(pair.label as usize)));
        self.losses = [0.0, dropped.map(|pair| loss::shortlist(pair.score)).sum()];
        self.scratch.gradients.resize(TILE * dim, 0.0);
        self.scratch.position.resize(n_points, ABSENT);
        let n_groups = self.by_label.keys().len();
        for first_group in (0..n_groups).step_by(TILE) {
            self.score_tile(
                first_group..n_groups.min(first_group + TILE),
                &mut rows,
                inputs,
            );
        }
    }

    /// Forward and backward of up to TILE neighbouring labels.
    fn score_tile(
        &mut self,
        groups: std::ops::Range<usize>,
        rows: &mut LabelRows<'_>,
        inputs: &RangeInputs<'_>,
    ) {
        self.gather_points(groups.clone());
        let kernels = Kernels::detect();
        let (embeddings, dim) = (inputs.embeddings, inputs.dim);
        // A tile with fewer labels repeats its last; nobody reads the products.
        let label_rows: [usize; TILE] = std::array::from_fn(|at| {
            self.by_label.keys()[(groups.start + at).min(groups.end - 1)] as usize
        });
        let scratch = &mut self.scratch;
        scratch.products.resize(scratch.points.len() * TILE, 0.0);
        // Rows lie far apart where labels are many: those of the next tile are asked for now.
        for &row in self.by_label.keys()[groups.end..].iter().take(TILE) {
            prefetch(&rows.weights[row as usize * dim..][..dim]);
        }
        let weights = label_rows.map(|row| &rows.weights[row * dim..(row + 1) * dim]);
        kernels.dot_tile(weights, embeddings, &scratch.points, &mut scratch.products);

        clear_to(&mut scratch.d_logits, scratch.points.len() * TILE);
        scratch.bias_gradients = [0.0; TILE];
        scratch.is_touched = [false; TILE];
        let mut first_pair = 0;
        for (at, group_idx) in groups.clone().enumerate() {
            first_pair =
                self.score_label(at, group_idx, first_pair, rows.bias[label_rows[at]], inputs);
        }

        let scratch = &mut self.scratch;
        scratch.keep_touched_points();
        if scratch.points.is_empty() {
            return;
        }
        let (points, d_logits) = (&scratch.points, &scratch.d_logits);
        kernels.add_tile(d_logits, weights, &mut self.d_embeddings, points);
        kernels.sum_tile(d_logits, embeddings, points, &mut scratch.gradients);
        for (at, gradient) in scratch.gradients.chunks_exact(dim).enumerate() {
            if scratch.is_touched[at] {
                rows.take_gradient(label_rows[at], gradient, scratch.bias_gradients[at]);
            }
        }
    }

    /// The points of a tile, each once, and the position of each pair's point.
    fn gather_points(&mut self, groups: std::ops::Range<usize>) {
        let Scratch {
            position,
            points,
            positions,
            paths,
            ..
        } = &mut self.scratch;
        positions.clear();
        paths.clear();
        // One more than there can be: the place of a new point is written whether the point is new or not, as that cannot
        // be predicted.
        points.resize(position.len() + 1, 0);
        let mut n_points = 0;
        for group_idx in groups {
            let pairs = self.by_label.members(group_idx).iter();
            positions.extend(pairs.clone().map(|pair| {
                let position = &mut position[pair.point as usize];
                points[n_points] = u32::from(pair.point);
                let is_new = *position == ABSENT;
                *position = select_unpredictable(is_new, n_points as u16, *position);
                n_points += usize::from(is_new);
                *position
            }));
            paths.extend(pairs.map(|pair| {
                if pair.is_positive() {
                    f32::INFINITY
                } else {
                    pair.score
                }
            }));
        }
        points.truncate(n_points);
        points
            .iter()
            .for_each(|&point| position[point as usize] = ABSENT);
    }

    /// Losses and derivatives of one label's pairs; returns where the next label's pairs start.
    fn score_label(
        &mut self,
        at: usize,
        group_idx: usize,
        first_pair: usize,
        bias: f32,
        inputs: &RangeInputs<'_>,
    ) -> usize {
        let pairs = self.by_label.members(group_idx);
        let Scratch {
            positions,
            paths,
            products,
            exponentials,
            found,
            d_logits,
            bias_gradients,
            is_touched,
            ..
        } = &mut self.scratch;
        let own = first_pair..first_pair + pairs.len();
        let (positions, paths) = (&positions[own.clone()], &paths[own]);
        exponentials.clear();
        let logit = |&position: &u16| -(products[position as usize * TILE + at] + bias);
        exponentials.extend(positions.iter().map(logit));
        let floor = inputs.gradient_floor;
        let threshold = loss::faint_below(floor);
        let of_faint = Kernels::detect().score_negatives(exponentials, paths, threshold, found);
        self.losses[0] += f64::from(of_faint);

        let mut losses = loss::LogSum::default();
        for &pair_idx in found.iter() {
            let pair_idx = pair_idx as usize;
            let (pair, position, e) =
                (pairs[pair_idx], positions[pair_idx], exponentials[pair_idx]);
            let weight = inputs.point_weights[pair.point as usize];
            let classification = weight * inputs.weights.classification;
            let (term, d_log_path) = if pair.is_positive() {
                let term = loss::positive(e, pair.score);
                losses.add(term.score);
                self.losses[1] += loss::shortlist(pair.score);
                let shortlist = weight * inputs.weights.shortlist;
                (term, classification * term.d_log_path - shortlist)
            } else {
                let term = loss::negative(e, pair.score);
                losses.add(term.score);
                if term.d_log_path < floor && term.d_logit < floor {
                    continue;
                }
                (term, classification * term.d_log_path)
            };
            let d_logit = classification * term.d_logit;
            d_logits[position as usize * TILE + at] = d_logit;
            bias_gradients[at] += d_logit;
            is_touched[at] = true;
            self.d_slots[pair.point as usize * inputs.n_slots + pair.slot()] += d_log_path;
            if inputs.wants_edges {
                self.d_edges.push((pair.edge, d_log_path));
            }
        }
        self.losses[0] += losses.sum();
        first_pair + pairs.len()
    }
}

impl Scratch {
    /// Drops the points to which no label of the tile passes a gradient.
    fn keep_touched_points(&mut self) {
        let mut n_kept = 0;
        for at in 0..self.points.len() {
            let passes = self.d_logits[at * TILE..][..TILE]
                .iter()
                .any(|&d_logit| d_logit != 0.0);
            if passes {
                self.points[n_kept] = self.points[at];
                self.d_logits
                    .copy_within(at * TILE..(at + 1) * TILE, n_kept * TILE);
                n_kept += 1;
            }
        }
        self.points.truncate(n_kept);
        self.d_logits.truncate(n_kept * TILE);
    }
}

fn clear_to(values: &mut Vec<f32>, len: usize) {
    values.clear();
    values.resize(len, 0.0);
}
