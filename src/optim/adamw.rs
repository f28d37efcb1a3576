//! The moments of AdamW and the updates.

use std::ops::Range;

use rayon::prelude::*;

use crate::config::{RowUpdates, SecondMoments};
use crate::encoder::{Gradient, Parameter};
use crate::kernels::{AdamWStep, Kernels};
use crate::matrix::ranges_mut;
use crate::optim::{Pace, StepRates};

/// Values per task when a parameter is updated.
const VALUES_PER_TASK: usize = 1 << 14;

/// Moments of a dense parameter, which every step updates.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DenseMoments {
    /// First moment.
    pub m: Vec<f32>,
    /// Second moment.
    pub v: Vec<f32>,
    /// Updates so far.
    pub n_updates: u32,
}

impl DenseMoments {
    /// Zero moments for this many values.
    pub(crate) fn new(n_values: usize) -> Self {
        DenseMoments {
            m: vec![0.0; n_values],
            v: vec![0.0; n_values],
            n_updates: 0,
        }
    }

    /// One update.
    pub(crate) fn update(
        &mut self,
        rates: &StepRates,
        pace: Pace,
        values: &mut [f32],
        gradient: &[f32],
    ) {
        let all = 0..values.len();
        self.update_ranges(rates, pace, values, gradient, &[all]);
    }

    /// One update of some ranges of the values, which ascend; the others are left as they are.
    pub(crate) fn update_ranges(
        &mut self,
        rates: &StepRates,
        pace: Pace,
        values: &mut [f32],
        gradient: &[f32],
        ranges: &[Range<usize>],
    ) {
        self.n_updates += 1;
        let step = rates.adamw(pace, self.n_updates);
        let gradients = ranges.par_iter().map(|range| &gradient[range.clone()]);
        let of_ranges = ranges_mut(values, ranges)
            .into_par_iter()
            .zip(gradients)
            .zip(ranges_mut(&mut self.m, ranges))
            .zip(ranges_mut(&mut self.v, ranges));
        of_ranges.for_each(|(((values, gradient), m), v)| {
            let tasks = values
                .par_chunks_mut(VALUES_PER_TASK)
                .zip(gradient.par_chunks(VALUES_PER_TASK))
                .zip(m.par_chunks_mut(VALUES_PER_TASK))
                .zip(v.par_chunks_mut(VALUES_PER_TASK));
            tasks.for_each(|(((values, gradient), m), v)| {
                Kernels::detect().adamw(&step, values, gradient, m, v);
            });
        });
    }
}

/// Decay of a shared second moment: about a hundred steps, as gradients shrink quickly at first.
const SHARED_DECAY: f32 = 0.99;

/// Moments of a parameter that is updated row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RowMoments {
    /// First moment, row by row.
    pub m: Vec<f32>,
    /// Second moment: row by row, or one value that all rows share (0 before the first update).
    pub v: Vec<f32>,
    /// Updates so far, per row.
    pub n_updates: Vec<u32>,
}

impl RowMoments {
    /// Zero moments for this many rows and values.
    pub(crate) fn new(n_rows: usize, n_values: usize, kind: SecondMoments) -> Self {
        let n_second = match kind {
            SecondMoments::Coordinate => n_values,
            SecondMoments::Shared => 1,
        };
        RowMoments {
            m: vec![0.0; n_values],
            v: vec![0.0; n_second],
            n_updates: vec![0; n_rows],
        }
    }

    /// One update of these rows, which ascend, and of the others if all are to be updated. gradients: rows×width
    pub(crate) fn update(
        &mut self,
        rates: &StepRates,
        pace: Pace,
        values: &mut [f32],
        (rows, gradients): (&[u32], &[f32]),
        updates: RowUpdates,
    ) {
        let width = if self.n_updates.is_empty() {
            0
        } else {
            values.len() / self.n_updates.len()
        };
        let step = |n_updates| rates.adamw(pace, n_updates);
        let is_shared = self.v.len() < self.m.len();
        let denominator = is_shared.then(|| {
            let mean = mean_square(gradients);
            let v = &mut self.v[0];
            *v = match *v {
                0.0 => mean,
                v => SHARED_DECAY * v + (1.0 - SHARED_DECAY) * mean,
            };
            v.sqrt() + step(1).epsilon
        });
        let rule = UpdateRule {
            step: &step,
            denominator,
        };
        let touched = RowGradients {
            rows,
            values: gradients,
            stride: width,
        };
        update_rows(self.rows_mut(values, width), touched, &rule);
        if updates == RowUpdates::All {
            let n_rows = self.n_updates.len() as u32;
            let is_other = |row: &u32| rows.binary_search(row).is_err();
            let others = RowGradients {
                rows: &(0..n_rows).filter(is_other).collect::<Vec<_>>(),
                values: &vec![0.0; width],
                stride: 0,
            };
            update_rows(self.rows_mut(values, width), others, &rule);
        }
    }

    fn rows_mut<'a>(&'a mut self, values: &'a mut [f32], width: usize) -> RowsMut<'a> {
        let is_shared = self.v.len() < self.m.len();
        RowsMut {
            first: 0,
            width,
            values,
            m: &mut self.m,
            v: if is_shared { &mut [] } else { &mut self.v },
            n_updates: &mut self.n_updates,
        }
    }
}

/// The mean of squares, summed in chunks of fixed size.
fn mean_square(values: &[f32]) -> f32 {
    let chunks = values.par_chunks(VALUES_PER_TASK);
    let sums: Vec<f32> = chunks
        .map(|chunk| Kernels::detect().dot(chunk, chunk))
        .collect();
    let sum: f64 = sums.iter().map(|&sum| f64::from(sum)).sum();
    (sum / values.len().max(1) as f64) as f32
}

/// The parameters of an update of rows.
struct UpdateRule<'a> {
    /// The step of a row's n-th update.
    step: &'a (dyn Fn(u32) -> AdamWStep + Sync),
    /// √v + ε, if all rows share it.
    denominator: Option<f32>,
}

/// Rows to update, which ascend, and where their gradients are: those of the i-th begin at i·stride.
#[derive(Clone, Copy)]
struct RowGradients<'a> {
    rows: &'a [u32],
    values: &'a [f32],
    stride: usize,
}

impl<'a> RowGradients<'a> {
    fn split_at(self, at: usize) -> (Self, Self) {
        let (low, high) = self.rows.split_at(at);
        let values = &self.values[at * self.stride..];
        let low = RowGradients { rows: low, ..self };
        let high = RowGradients {
            rows: high,
            values,
            ..self
        };
        (low, high)
    }

    /// Each row with its gradient.
    fn iter(self, width: usize) -> impl Iterator<Item = (u32, &'a [f32])> {
        let rows = self.rows.iter().enumerate();
        rows.map(move |(at, &row)| (row, &self.values[at * self.stride..][..width]))
    }
}

/// Consecutive rows with their moments.
struct RowsMut<'a> {
    first: usize,
    width: usize,
    values: &'a mut [f32],
    m: &'a mut [f32],
    /// Empty if the second moment is shared.
    v: &'a mut [f32],
    n_updates: &'a mut [u32],
}

/// Splits the rows between threads until a task is small.
fn update_rows(rows_mut: RowsMut<'_>, gradients: RowGradients<'_>, rule: &UpdateRule<'_>) {
    let rows = gradients.rows;
    let RowsMut {
        first,
        width,
        values,
        m,
        v,
        n_updates,
    } = rows_mut;
    if rows.len() <= 1 || rows.len() * width <= VALUES_PER_TASK {
        let kernels = Kernels::detect();
        for (row, gradient) in gradients.iter(width) {
            let row = row as usize - first;
            let range = row * width..(row + 1) * width;
            n_updates[row] += 1;
            let step = (rule.step)(n_updates[row]);
            let (values, m) = (&mut values[range.clone()], &mut m[range.clone()]);
            match rule.denominator {
                Some(denominator) => {
                    kernels.adamw_scaled(&step, denominator, values, gradient, m);
                }
                None => kernels.adamw(&step, values, gradient, m, &mut v[range]),
            }
        }
        return;
    }
    let half = rows.len() / 2;
    let split = rows[half] as usize - first;
    let (values_low, values_high) = values.split_at_mut(split * width);
    let (m_low, m_high) = m.split_at_mut(split * width);
    let (v_low, v_high) = v.split_at_mut((split * width).min(v.len()));
    let (n_low, n_high) = n_updates.split_at_mut(split);
    let (gradients_low, gradients_high) = gradients.split_at(half);
    let low = RowsMut {
        first,
        width,
        values: values_low,
        m: m_low,
        v: v_low,
        n_updates: n_low,
    };
    let high = RowsMut {
        first: first + split,
        width,
        values: values_high,
        m: m_high,
        v: v_high,
        n_updates: n_high,
    };
    rayon::join(
        || update_rows(low, gradients_low, rule),
        || update_rows(high, gradients_high, rule),
    );
}

/// Moments of one encoder parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Moments {
    /// Updated as a whole.
    Dense(DenseMoments),
    /// Updated row by row.
    Rows(RowMoments),
}

impl Moments {
    /// Zero moments for a parameter.
    pub(crate) fn for_parameter(parameter: &Parameter<'_>, kind: SecondMoments) -> Self {
        match parameter.gradient {
            Gradient::Dense(_) => Moments::Dense(DenseMoments::new(parameter.values.len())),
            Gradient::Rows(..) => {
                let (n_rows, n_values) = (parameter.shape.0, parameter.values.len());
                Moments::Rows(RowMoments::new(n_rows, n_values, kind))
            }
        }
    }
}

/// One update of an encoder parameter with its gradient.
pub(crate) fn update_parameter(
    parameter: Parameter<'_>,
    moments: &mut Moments,
    rates: &StepRates,
    updates: RowUpdates,
) {
    let pace = Pace {
        rate: rates.encoder.rate * parameter.rate_factor,
        ..rates.encoder.decaying_if(parameter.decays)
    };
    match (parameter.gradient, moments) {
        (Gradient::Dense(gradient), Moments::Dense(moments)) => {
            moments.update(rates, pace, parameter.values, gradient);
        }
        (Gradient::Rows(rows, gradients), Moments::Rows(moments)) => {
            moments.update(rates, pace, parameter.values, (rows, gradients), updates);
        }
        _ => unreachable!("moments are made by `Moments::for_parameter` for the same parameter"),
    }
}
