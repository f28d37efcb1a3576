//! Part 2: label by label, σ(w·φ + b), the classification loss and its gradients.
//!
//! The pairs of a range are grouped by label, and neighbouring labels, which mostly share their points, form tiles.
//! A row of W_L is read once, scored against the points that shortlisted it, and its gradient Σ dz·φ, the share
//! dz·w of each point's dφ, and AdamW follow while the row is in cache.

use rayon::prelude::*;

use super::LossWeights;
use super::search::{Pair, ShardBuffers};
use crate::classifiers::LabelClassifiers;
use crate::communicator::{N_RANGES, Ranges};
use crate::config::SecondMoments;
use crate::kernels::{Kernels, TILE, prefetch};
use crate::loss;
use crate::matrix::{Groups, Matrix};
use crate::optim::StepRates;

/// Destination of the gradients of W_L and b_L.
pub(crate) enum LabelState<'a> {
    /// They are applied as soon as a row is done.
    Apply(&'a mut LabelMoments, StepRates),
    /// They are added up, to be applied by a later step.
    Collect(&'a mut LabelGradients),
}

/// AdamW's state of the label classifiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelMoments {
    /// First moments of W_L, L×d.
    pub(crate) m: Vec<f32>,
    /// Second moments of W_L: L×d, or one per row.
    pub(crate) v: Vec<f32>,
    /// First and second moments of b_L.
    pub(crate) bias_m: Vec<f32>,
    pub(crate) bias_v: Vec<f32>,
    /// Updates of each row so far.
    pub(crate) n_updates: Vec<u32>,
}

impl LabelMoments {
    pub(crate) fn new(n_labels: usize, dim: usize, kind: SecondMoments) -> Self {
        let n_second = match kind {
            SecondMoments::Coordinate => dim,
            SecondMoments::Shared => 1,
        };
        LabelMoments {
            m: vec![0.0; n_labels * dim],
            v: vec![0.0; n_labels * n_second],
            bias_m: vec![0.0; n_labels],
            bias_v: vec![0.0; n_labels],
            n_updates: vec![0; n_labels],
        }
    }
}

/// Gradients of the label classifiers that wait to be applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelGradients {
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) touched: Vec<bool>,
}

impl LabelGradients {
    pub(crate) fn new(n_labels: usize, dim: usize) -> Self {
        LabelGradients {
            weights: vec![0.0; n_labels * dim],
            bias: vec![0.0; n_labels],
            touched: vec![false; n_labels],
        }
    }
}

impl LabelGradients {
    /// Applies what was collected and clears it.
    pub(crate) fn apply(
        &mut self,
        classifiers: &mut LabelClassifiers,
        moments: &mut LabelMoments,
        rates: StepRates,
    ) {
        let (n_labels, dim) = (classifiers.n_labels(), classifiers.weights.n_cols());
        let lengths = (0..N_RANGES).map(|range| Ranges::of(n_labels).get(range).len());
        let mut state = LabelState::Apply(moments, rates);
        let rows = state.split(classifiers, lengths.clone());
        let (mut weights, mut bias) = (self.weights.as_mut_slice(), self.bias.as_mut_slice());
        let mut touched = self.touched.as_mut_slice();
        let collected: Vec<_> = lengths
            .map(|n| {
                let weights = take(&mut weights, n * dim);
                (weights, take(&mut bias, n), take(&mut touched, n))
            })
            .collect();
        rows.into_par_iter()
            .zip(collected)
            .for_each(|(mut rows, (weights, bias, touched))| {
                for row in (0..touched.len()).filter(|&row| touched[row]) {
                    let gradient = &mut weights[row * dim..(row + 1) * dim];
                    rows.take_gradient(row, gradient, bias[row]);
                    gradient.fill(0.0);
                }
                bias.fill(0.0);
                touched.fill(false);
            });
    }
}

/// A range of rows of W_L with the state of their optimiser.
pub(super) struct LabelRows<'a> {
    weights: &'a mut [f32],
    bias: &'a mut [f32],
    update: RowUpdate<'a>,
}

enum RowUpdate<'a> {
    Apply {
        m: &'a mut [f32],
        v: &'a mut [f32],
        bias_m: &'a mut [f32],
        bias_v: &'a mut [f32],
        n_updates: &'a mut [u32],
        rates: StepRates,
    },
    Collect {
        weights: &'a mut [f32],
        bias: &'a mut [f32],
        touched: &'a mut [bool],
    },
}

/// Cuts the first `n` entries off a slice.
pub(super) fn take<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(rest).split_at_mut(n);
    *rest = tail;
    head
}

impl LabelState<'_> {
    /// The rows of ranges of these lengths, which together are all rows in order.
    pub(super) fn split<'s>(
        &'s mut self,
        classifiers: &'s mut LabelClassifiers,
        lengths: impl Iterator<Item = usize>,
    ) -> Vec<LabelRows<'s>> {
        let dim = classifiers.weights.n_cols();
        let mut weights = classifiers.weights.values_mut();
        let mut bias = classifiers.bias.as_mut_slice();
        match self {
            LabelState::Apply(moments, rates) => {
                let LabelMoments {
                    m,
                    v,
                    bias_m,
                    bias_v,
                    n_updates,
                } = &mut **moments;
                let n_second = v.len() / n_updates.len().max(1);
                let (mut m, mut v) = (m.as_mut_slice(), v.as_mut_slice());
                let (mut bias_m, mut bias_v) = (bias_m.as_mut_slice(), bias_v.as_mut_slice());
                let mut n_updates = n_updates.as_mut_slice();
                let apply = lengths.map(|n| LabelRows {
                    weights: take(&mut weights, n * dim),
                    bias: take(&mut bias, n),
                    update: RowUpdate::Apply {
                        m: take(&mut m, n * dim),
                        v: take(&mut v, n * n_second),
                        bias_m: take(&mut bias_m, n),
                        bias_v: take(&mut bias_v, n),
                        n_updates: take(&mut n_updates, n),
                        rates: *rates,
                    },
                });
                apply.collect()
            }
            LabelState::Collect(gradients) => {
                let LabelGradients {
                    weights: sums,
                    bias: bias_sums,
                    touched,
                } = &mut **gradients;
                let (mut sums, mut bias_sums) = (sums.as_mut_slice(), bias_sums.as_mut_slice());
                let mut touched = touched.as_mut_slice();
                let collect = lengths.map(|n| LabelRows {
                    weights: take(&mut weights, n * dim),
                    bias: take(&mut bias, n),
                    update: RowUpdate::Collect {
                        weights: take(&mut sums, n * dim),
                        bias: take(&mut bias_sums, n),
                        touched: take(&mut touched, n),
                    },
                });
                collect.collect()
            }
        }
    }
}

impl LabelRows<'_> {
    fn take_gradient(&mut self, row: usize, gradient: &[f32], bias_gradient: f32) {
        let dim = gradient.len();
        let range = row * dim..(row + 1) * dim;
        let kernels = Kernels::detect();
        match &mut self.update {
            RowUpdate::Apply {
                m,
                v,
                bias_m,
                bias_v,
                n_updates,
                rates,
            } => {
                n_updates[row] += 1;
                let mut step = rates.adamw(rates.labels, n_updates[row]);
                let weights = &mut self.weights[range.clone()];
                if v.len() == m.len() {
                    let m = &mut m[range.clone()];
                    kernels.adamw(&step, weights, gradient, m, &mut v[range]);
                } else {
                    let denominator = step.row_denominator(&mut v[row], gradient);
                    kernels.adamw_scaled(&step, denominator, weights, gradient, &mut m[range]);
                }
                step.weight_decay = 0.0;
                let one = row..row + 1;
                let (bias, bias_m, bias_v) = (
                    &mut self.bias[one.clone()],
                    &mut bias_m[one.clone()],
                    &mut bias_v[one],
                );
                kernels.adamw(&step, bias, &[bias_gradient], bias_m, bias_v);
            }
            RowUpdate::Collect {
                weights,
                bias,
                touched,
            } => {
                kernels.axpy(1.0, gradient, &mut weights[range]);
                bias[row] += bias_gradient;
                touched[row] = true;
            }
        }
    }
}

/// Inputs of a range's step besides its rows.
pub(super) struct RangeInputs<'a> {
    pub(super) embeddings: &'a Matrix,
    pub(super) weights: LossWeights,
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
    pub(super) d_embeddings: Vec<f32>,
    /// The range's share of ∂L/∂log ŝ_c, one per selected cluster.
    pub(super) d_slots: Vec<f32>,
    /// ∂L/∂log ŝ(c,ℓ) of edges, in pieces.
    pub(super) d_edges: Vec<(u32, f32)>,
    /// The range's share of L_c and L_s.
    pub(super) losses: [f64; 2],
}

/// Arrays over a tile of labels.
#[derive(Default)]
struct Scratch {
    /// For every point of the batch: its position in `points`, where the tile has it.
    position: Vec<Option<u16>>,
    /// The points that shortlisted any label of the tile.
    points: Vec<u32>,
    /// Position in `points` of every pair, label after label.
    positions: Vec<u16>,
    /// z of every point and label.
    products: Vec<f32>,
    /// e^−z of the pairs of one label.
    exponentials: Vec<f32>,
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
            d_embeddings: Vec::new(),
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
        let (n_points, dim) = (inputs.embeddings.n_rows(), inputs.embeddings.n_cols());
        let first = self.labels.start as u32;
        let pairs = shards.iter().flat_map(|shard| &shard.pairs[self.range_idx]);
        self.by_label
            .group(pairs.map(|pair| (pair.label - first, *pair)));
        clear_to(&mut self.d_embeddings, n_points * dim);
        clear_to(&mut self.d_slots, n_points * inputs.n_slots);
        self.d_edges.clear();
        let dropped = shards.iter().flat_map(|shard| &shard.dropped);
        let dropped = dropped.filter(|pair| self.labels.contains(&(pair.label as usize)));
        self.losses = [0.0, dropped.map(|pair| loss::shortlist(pair.score)).sum()];
        self.scratch.gradients.resize(TILE * dim, 0.0);
        self.scratch.position.resize(n_points, None);
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
        let embeddings = inputs.embeddings.values();
        let dim = inputs.embeddings.n_cols();
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
            ..
        } = &mut self.scratch;
        points.clear();
        positions.clear();
        for group_idx in groups {
            for pair in self.by_label.members(group_idx) {
                let at = *position[pair.point as usize].get_or_insert_with(|| {
                    points.push(u32::from(pair.point));
                    points.len() as u16 - 1
                });
                positions.push(at);
            }
        }
        points
            .iter()
            .for_each(|&point| position[point as usize] = None);
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
            products,
            exponentials,
            d_logits,
            bias_gradients,
            is_touched,
            ..
        } = &mut self.scratch;
        let positions = &positions[first_pair..first_pair + pairs.len()];
        exponentials.clear();
        let logit = |&position: &u16| -(products[position as usize * TILE + at] + bias);
        exponentials.extend(positions.iter().map(logit));
        Kernels::detect().exp_sum(exponentials, 0.0);

        let LossWeights {
            classification,
            shortlist,
        } = inputs.weights;
        let mut losses = loss::LogSum::default();
        for ((pair, &position), &e) in pairs.iter().zip(positions).zip(exponentials.iter()) {
            let (term, d_log_path) = if pair.is_positive() {
                let term = loss::positive(e, pair.score);
                losses.add(term.score);
                self.losses[1] += loss::shortlist(pair.score);
                (term, classification * term.d_log_path - shortlist)
            } else {
                let term = loss::negative(e, pair.score);
                losses.add(term.score);
                let floor = inputs.gradient_floor;
                let is_negligible = loss::is_negligible(e, pair.score, floor)
                    || term.d_log_path < floor && term.d_logit < floor;
                if is_negligible {
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
