//! The state of W_L in training: moments of AdamW, gradients that wait, and ranges of rows with both.

use rayon::prelude::*;

use crate::classifiers::LabelClassifiers;
use crate::communicator::{N_RANGES, Ranges};
use crate::config::{RowUpdates, SecondMoments};
use crate::kernels::Kernels;
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

    /// Applies what was collected and clears it.
    pub(crate) fn apply(
        &mut self,
        classifiers: &mut LabelClassifiers,
        moments: &mut LabelMoments,
        rates: StepRates,
        updates: RowUpdates,
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
                let moves = |row: &usize| updates == RowUpdates::All || touched[*row];
                for row in (0..touched.len()).filter(moves) {
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
    pub(super) weights: &'a mut [f32],
    pub(super) bias: &'a mut [f32],
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
    /// Applies or collects the gradient of a row.
    pub(super) fn take_gradient(&mut self, row: usize, gradient: &[f32], bias_gradient: f32) {
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
