//! Part 2: label by label, σ(w·φ + b), the classification loss and its gradients.
//!
//! The pairs of a range are grouped by label. A row of W_L is read once, scored against the points that
//! shortlisted it, and its gradient Σ dz·φ, the share dz·w of each point's dφ, and AdamW follow while the row is
//! in cache.

use super::LossWeights;
use super::search::{Pair, ShardBuffers};
use crate::classifiers::LabelClassifiers;
use crate::loss;
use crate::matrix::{Groups, Kernels, Matrix};
use crate::optim::StepRates;

/// What becomes of the gradients of W_L and b_L.
pub(crate) enum LabelState<'a> {
    /// They are applied as soon as a row is done.
    Apply(&'a mut LabelMoments, StepRates),
    /// They are added up, to be applied by a later step.
    Collect(&'a mut LabelGradients),
}

/// AdamW's state of the label classifiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelMoments {
    /// First and second moments of W_L, L×d.
    pub(crate) m: Vec<f32>,
    pub(crate) v: Vec<f32>,
    /// First and second moments of b_L.
    pub(crate) bias_m: Vec<f32>,
    pub(crate) bias_v: Vec<f32>,
    /// Updates of each row so far.
    pub(crate) n_updates: Vec<u32>,
}

impl LabelMoments {
    pub(crate) fn new(n_labels: usize, dim: usize) -> Self {
        LabelMoments {
            m: vec![0.0; n_labels * dim],
            v: vec![0.0; n_labels * dim],
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
    /// The rows of each range, which together are all rows in order.
    pub(super) fn split<'s>(
        &'s mut self,
        classifiers: &'s mut LabelClassifiers,
        ranges: &[std::ops::Range<usize>],
    ) -> Vec<LabelRows<'s>> {
        let dim = classifiers.weights.n_cols();
        let mut weights = classifiers.weights.values_mut();
        let mut bias = classifiers.bias.as_mut_slice();
        let lengths = ranges.iter().map(std::ops::Range::len);
        match self {
            LabelState::Apply(moments, rates) => {
                let LabelMoments {
                    m,
                    v,
                    bias_m,
                    bias_v,
                    n_updates,
                } = &mut **moments;
                let (mut m, mut v) = (m.as_mut_slice(), v.as_mut_slice());
                let (mut bias_m, mut bias_v) = (bias_m.as_mut_slice(), bias_v.as_mut_slice());
                let mut n_updates = n_updates.as_mut_slice();
                let apply = lengths.map(|n| LabelRows {
                    weights: take(&mut weights, n * dim),
                    bias: take(&mut bias, n),
                    update: RowUpdate::Apply {
                        m: take(&mut m, n * dim),
                        v: take(&mut v, n * dim),
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
                let mut step = rates.adamw(rates.rates.labels, n_updates[row]);
                let weights = &mut self.weights[range.clone()];
                kernels.adamw(
                    &step,
                    weights,
                    gradient,
                    &mut m[range.clone()],
                    &mut v[range],
                );
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

/// What scoring a range needs besides its rows.
pub(super) struct Scoring<'a> {
    pub(super) embeddings: &'a Matrix,
    pub(super) weights: LossWeights,
    pub(super) gradient_floor: f32,
    pub(super) n_slots: usize,
    pub(super) wants_edges: bool,
}

/// Buffers and results of one range of labels.
pub(super) struct RangeBuffers {
    range_idx: usize,
    labels: std::ops::Range<usize>,
    by_label: Groups<Pair>,
    scratch: Scratch,
    /// The range's share of ∂L/∂φ, B×d.
    pub(super) d_embeddings: Vec<f32>,
    /// The range's share of ∂L/∂log ŝ_c, a selected cluster each.
    pub(super) d_slots: Vec<f32>,
    /// ∂L/∂log ŝ(c,ℓ) of edges, in pieces.
    pub(super) d_edges: Vec<(u32, f32)>,
    /// The range's share of L_c.
    pub(super) loss: f64,
}

/// Arrays over the points of one label.
#[derive(Default)]
struct Scratch {
    points: Vec<u32>,
    logits: Vec<f32>,
    kept_points: Vec<u32>,
    d_logits: Vec<f32>,
    gradient: Vec<f32>,
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
            loss: 0.0,
        }
    }

    pub(super) fn step(
        &mut self,
        shards: &[ShardBuffers],
        mut rows: LabelRows<'_>,
        scoring: &Scoring<'_>,
    ) {
        let (n_points, dim) = (scoring.embeddings.n_rows(), scoring.embeddings.n_cols());
        let first = self.labels.start as u32;
        let pairs = shards.iter().flat_map(|shard| &shard.pairs[self.range_idx]);
        self.by_label
            .group(pairs.map(|pair| (pair.label - first, *pair)));
        clear_to(&mut self.d_embeddings, n_points * dim);
        clear_to(&mut self.d_slots, n_points * scoring.n_slots);
        self.d_edges.clear();
        self.loss = 0.0;
        self.scratch.gradient.resize(dim, 0.0);
        for group_idx in 0..self.by_label.keys().len() {
            self.score_label(group_idx, &mut rows, scoring);
        }
    }

    fn score_label(&mut self, group_idx: usize, rows: &mut LabelRows<'_>, scoring: &Scoring<'_>) {
        let row = self.by_label.keys()[group_idx] as usize;
        let pairs = self.by_label.members(group_idx);
        let kernels = Kernels::detect();
        let embeddings = scoring.embeddings.values();
        let dim = scoring.embeddings.n_cols();
        let Scratch {
            points,
            logits,
            kept_points,
            d_logits,
            gradient,
        } = &mut self.scratch;

        // z = w·φ + b of every point, then e^−z.
        points.clear();
        points.extend(pairs.iter().map(|pair| u32::from(pair.point)));
        logits.resize(points.len(), 0.0);
        let weights = &rows.weights[row * dim..(row + 1) * dim];
        kernels.dot_rows(weights, embeddings, points, logits);
        let bias = rows.bias[row];
        logits.iter_mut().for_each(|z| *z = -(*z + bias));
        kernels.exp_sum(logits, 0.0);

        kept_points.clear();
        d_logits.clear();
        let LossWeights {
            classification,
            shortlist,
        } = scoring.weights;
        let mut bias_gradient = 0f32;
        let mut losses = loss::LogSum::default();
        for (pair, &e) in pairs.iter().zip(logits.iter()) {
            let (term, d_log_path) = if pair.is_positive() {
                let term = loss::positive(e, pair.score);
                (term, classification * term.d_log_path - shortlist)
            } else {
                let term = loss::negative(e, pair.score);
                let floor = scoring.gradient_floor;
                if term.d_log_path < floor && term.d_logit < floor {
                    losses.add(term.score);
                    continue;
                }
                (term, classification * term.d_log_path)
            };
            losses.add(term.score);
            let d_logit = classification * term.d_logit;
            kept_points.push(u32::from(pair.point));
            d_logits.push(d_logit);
            bias_gradient += d_logit;
            self.d_slots[pair.point as usize * scoring.n_slots + pair.slot()] += d_log_path;
            if scoring.wants_edges {
                self.d_edges.push((pair.edge, d_log_path));
            }
        }
        self.loss += losses.sum();
        if kept_points.is_empty() {
            return;
        }
        kernels.add_to_rows(d_logits, weights, &mut self.d_embeddings, kept_points);
        kernels.sum_rows(d_logits, embeddings, kept_points, gradient);
        rows.take_gradient(row, gradient, bias_gradient);
    }
}

fn clear_to(values: &mut Vec<f32>, len: usize) {
    values.clear();
    values.resize(len, 0.0);
}
