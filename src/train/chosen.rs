//! The weights that a stage ends with, where these are not the last: their mean over steps, and those of the best epoch.
//!
//! Stochastic weight averaging adds up all parameters but A, once and again from a part of stage 2 on; the mean is what
//! validations see and what the stage ends with, A beside it as it is then. The best epoch has the highest nDCG@5 on points
//! that are held out from training; all parameters are kept as they were then, A's among them. What was trained goes on from
//! the last weights in either case.

use super::state::{Array, TrainState};
use crate::communicator::Communicator;
use crate::config::Recipe;
use crate::events::Phase;

/// Epochs between two looks at the held-out points.
const LOOK_EVERY: usize = 3;

/// No epoch was looked at yet: every nDCG is higher.
const NONE: f32 = -1.0;

/// Weights beside those that are trained, in the order of [`TrainState::parameters`]; empty where the recipe has none.
#[derive(Default)]
pub(super) struct Chosen {
    /// The mean over steps.
    average: Vec<Vec<f32>>,
    /// How many steps it is of: one number.
    n_averaged: Vec<u32>,
    /// Those of the best epoch, and behind them A's.
    best: Vec<Vec<f32>>,
    /// nDCG@5 of the best epoch: one number.
    best_ndcg: Vec<f32>,
}

/// The steps of stage 2 whose weights are averaged.
pub(super) fn is_averaged(
    recipe: &Recipe,
    n_done: usize,
    n_batches: usize,
    n_epochs: usize,
) -> bool {
    let every = (recipe.average_every * n_batches as f32).round() as usize;
    let first = (recipe.average_from * n_epochs as f32).round() as usize * n_batches + 1;
    n_done == first || first < n_done && n_done.is_multiple_of(every.max(1))
}

/// Whether the held-out points are looked at after this many epochs.
pub(super) fn is_looked_at(n_done: usize, n_epochs: usize) -> bool {
    n_done.is_multiple_of(LOOK_EVERY) || n_done == n_epochs
}

/// Bytes beside so many parameters without A, and so many of A.
pub(super) fn n_bytes(recipe: &Recipe, n_parameters: usize, n_edges: usize) -> usize {
    let of_average = if recipe.average_every > 0.0 {
        n_parameters
    } else {
        0
    };
    let of_best = if recipe.best_epoch {
        n_parameters + n_edges
    } else {
        0
    };
    4 * (of_average + of_best)
}

impl TrainState {
    /// Makes room for what the recipe keeps in this phase, and forgets what was there.
    pub(super) fn choose_anew(&mut self, recipe: &Recipe) {
        let mut chosen = Chosen::default();
        let phase = self.position.phase;
        if recipe.average_every > 0.0 && phase == Phase::Stage2 {
            chosen.average = self.copy_parameters();
            chosen.n_averaged = vec![0];
        }
        if recipe.best_epoch && phase != Phase::WarmUp {
            chosen.best = self.copy_parameters();
            chosen.best.push(self.edge_weights());
            chosen.best_ndcg = vec![NONE];
        }
        self.chosen = chosen;
    }

    /// Forgets the best epoch: its edges of A are no more.
    pub(super) fn forget_best_epoch(&mut self) {
        let edges = self.edge_weights();
        if let Some(last) = self.chosen.best.last_mut() {
            *last = edges;
            self.chosen.best_ndcg = vec![NONE];
        }
    }

    fn edge_weights(&self) -> Vec<f32> {
        let weights = self.model.adjacency.weights();
        weights.map_or(Vec::new(), <[f32]>::to_vec)
    }

    /// Adds the weights to the mean.
    pub(super) fn add_to_average(&mut self) {
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.n_averaged[0] += 1;
        let share = 1.0 / chosen.n_averaged[0] as f32;
        for (average, values) in chosen.average.iter_mut().zip(self.parameters()) {
            for (average, value) in average.iter_mut().zip(values) {
                *average += share * (*value - *average);
            }
        }
        self.chosen = chosen;
    }

    /// Exchanges the weights for their mean, if there is one, or the mean for the weights.
    pub(super) fn swap_average(&mut self) {
        if self.chosen.n_averaged.first().is_none_or(|&n| n == 0) {
            return;
        }
        let mut chosen = std::mem::take(&mut self.chosen);
        for (average, values) in chosen.average.iter_mut().zip(self.parameters()) {
            values.swap_with_slice(average);
        }
        self.chosen = chosen;
    }

    /// Keeps the weights as they are now if none before had a higher nDCG.
    pub(super) fn keep_if_best(&mut self, ndcg: f64) {
        let ndcg = ndcg as f32;
        if self
            .chosen
            .best_ndcg
            .first()
            .is_none_or(|&best| ndcg <= best)
        {
            return;
        }
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.best_ndcg[0] = ndcg;
        for (best, values) in chosen.best.iter_mut().zip(self.parameters()) {
            best.copy_from_slice(values);
        }
        if let Some(last) = chosen.best.last_mut() {
            *last = self.edge_weights();
        }
        self.chosen = chosen;
    }

    /// Ends a stage with what was chosen; a second call does nothing.
    pub(super) fn end_with_chosen(&mut self, communicator: &dyn Communicator) {
        self.swap_average();
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.n_averaged.fill(0);
        if chosen.best_ndcg.first().is_some_and(|&best| NONE < best) {
            chosen.best_ndcg[0] = NONE;
            for (best, values) in chosen.best.iter().zip(self.parameters()) {
                values.copy_from_slice(best);
            }
            let edges = self.optimiser.edges.as_mut().zip(chosen.best.last());
            if let Some((state, weights)) = edges {
                state.replace_weights(&mut self.model.adjacency, weights, communicator);
            }
        }
        self.chosen = chosen;
    }
}

impl Chosen {
    /// Its arrays; `names` are those of the parameters.
    pub(super) fn add_arrays<'a>(
        &'a mut self,
        names: &[String],
        add: &mut dyn FnMut(&str, Array<'a>),
    ) {
        let Chosen {
            average,
            n_averaged,
            best,
            best_ndcg,
        } = self;
        for (name, values) in names.iter().zip(average) {
            add(&format!("{name}.average"), Array::Floats(values));
        }
        let names = names.iter().map(String::as_str).chain(["adjacency.weight"]);
        for (name, values) in names.zip(best) {
            add(&format!("{name}.best"), Array::Floats(values));
        }
        if !n_averaged.is_empty() {
            add("n_averaged", Array::Counts(n_averaged));
        }
        if !best_ndcg.is_empty() {
            add("best_ndcg", Array::Floats(best_ndcg));
        }
    }
}
