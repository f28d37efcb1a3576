//! Common ground of both dual solvers: the stopping rule and the scratch memory.

use super::RankerOptions;
use crate::config::RankerLoss;
use crate::random::Random;

use super::rows::{DualWeights, TrainingRows};
use super::{logistic, squared_hinge};

/// When the solver stops.
#[derive(Clone, Copy)]
pub(super) struct Stopping {
    pub(super) tolerance: f64,
    pub(super) max_iterations: usize,
}

/// Dual variables and visiting order of one label's points; one per thread.
#[derive(Default)]
pub(super) struct Solver {
    pub(super) alphas: Vec<f64>,
    /// logit(α/C); logistic loss only.
    pub(super) logits: Vec<f64>,
    pub(super) order: Vec<u32>,
}

impl Solver {
    pub(super) fn reset(&mut self, n_rows: usize) {
        self.alphas.clear();
        self.alphas.resize(n_rows, 0.0);
        self.logits.clear();
        self.logits.resize(n_rows, 0.0);
        self.order.clear();
        self.order.extend(0..n_rows as u32);
    }

    /// Trains `weights` on `rows`.
    pub(super) fn solve(
        &mut self,
        rows: &TrainingRows<'_>,
        weights: &mut DualWeights<'_>,
        config: &RankerOptions,
        random: &mut Random,
    ) {
        let stopping = Stopping {
            tolerance: f64::from(config.tolerance),
            max_iterations: config.max_iterations,
        };
        let costs = |row_idx| {
            let cost = if row_idx < rows.n_positive {
                config.cost_positive
            } else {
                config.cost_negative
            };
            f64::from(rows.weight(row_idx) * cost)
        };
        match config.loss {
            RankerLoss::SquaredHinge => {
                squared_hinge::solve(rows, weights, costs, stopping, random, self);
            }
            RankerLoss::Logistic => logistic::solve(rows, weights, costs, stopping, random, self),
        }
    }
}
