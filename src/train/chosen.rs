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

/// nDCG before an epoch was looked at: every other is higher.
const NONE: f32 = -1.0;

/// Weights beside those that are trained, in the order of [`TrainState::parameters`]; empty where the recipe has none.
#[derive(Default)]
pub(super) struct Chosen {
    /// The mean over steps.
    average: Vec<Vec<f32>>,
    /// How many steps it is of: one number.
    n_averaged: Vec<u32>,
    /// Those of the best epoch.
    best: Vec<Vec<f32>>,
    /// A's of the best epoch, where A is learned.
    best_edges: Option<Vec<f32>>,
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
            chosen.best_edges = self.edge_weights();
            chosen.best_ndcg = vec![NONE];
        }
        self.chosen = chosen;
    }

    /// Forgets the best epoch: its edges of A are no more.
    pub(super) fn forget_best_epoch(&mut self) {
        if !self.chosen.best_ndcg.is_empty() {
            self.chosen.best_edges = self.edge_weights();
            self.chosen.best_ndcg = vec![NONE];
        }
    }

    fn edge_weights(&self) -> Option<Vec<f32>> {
        self.model.adjacency.weights().map(<[f32]>::to_vec)
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
        chosen.best_edges = self.edge_weights();
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
            let edges = self
                .optimiser
                .edges
                .as_mut()
                .zip(chosen.best_edges.as_ref());
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
            best_edges,
            best_ndcg,
        } = self;
        for (name, values) in names.iter().zip(average) {
            add(&format!("{name}.average"), Array::Floats(values));
        }
        for (name, values) in names.iter().zip(best) {
            add(&format!("{name}.best"), Array::Floats(values));
        }
        if let Some(weights) = best_edges {
            add("adjacency.weight.best", Array::Floats(weights));
        }
        if !n_averaged.is_empty() {
            add("n_averaged", Array::Counts(n_averaged));
        }
        if !best_ndcg.is_empty() {
            add("best_ndcg", Array::Floats(best_ndcg));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::SingleProcess;
    use crate::config::{Config, DataCounts, Plan};
    use crate::encoder::EncoderOrigin;
    use crate::features::Points;
    use crate::ids::LabelRow;
    use crate::index::{Adjacency, Edges};
    use crate::matrix::CsrBuilder;
    use crate::train::{TrainingData, begin};

    /// A state at the start of stage 2 with two clusters, one of which has two edges.
    fn state(settings: &[&str]) -> (TrainState, Plan) {
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..4 {
            words.push_row([(point, 1.0)]);
            labels.push_row([(point % 3, 1.0)]);
        }
        let (words, labels) = (words.finish(4).unwrap(), labels.finish(3).unwrap());
        let settings = settings
            .iter()
            .chain(&["encoder.dim=2", "index.n_clusters=2"]);
        let config = settings.fold(Config::default(), |config, one| {
            config.with_value(one).unwrap()
        });
        let plan = config
            .resolve(DataCounts {
                n_points: 4,
                n_labels: 3,
                n_features: 4,
                n_pairs: 0,
                n_parts: 0,
                embedding_dim: 0,
            })
            .unwrap();
        let data = TrainingData {
            points: Points {
                features: &words,
                pairs: None,
                tokens: None,
                embedded: None,
                unseen: None,
            },
            n_texts: 4,
            labels: &labels,
            targets: None,
            point_weights: &[1.0; 4],
            validation: None,
            held_out: None,
            origin: &EncoderOrigin::Bag,
            communicator: &SingleProcess,
            max_steps: None,
        };
        let mut state = begin(data, &plan, &|_: &crate::Event| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        state.model.adjacency = Adjacency::learned(edges(), vec![0.0; 4], 1.5).unwrap();
        state.enter(Phase::Stage2, plan.recipe());
        (state, plan)
    }

    fn edges() -> Edges {
        let rows = |rows: &[u32]| rows.iter().map(|&row| LabelRow(row)).collect();
        Edges::from_lists(vec![rows(&[0, 1]), rows(&[1, 2])], 3).unwrap()
    }

    fn fill(state: &mut TrainState, value: f32) {
        state
            .parameters()
            .into_iter()
            .for_each(|values| values.fill(value));
    }

    #[track_caller]
    fn check(state: &mut TrainState, expected: f32) {
        for values in state.parameters() {
            assert!(
                values.iter().all(|value| (value - expected).abs() < 1e-6),
                "{values:?}"
            );
        }
    }

    #[test]
    fn a_stage_ends_with_the_mean_of_its_weights() {
        let (mut state, _) = state(&["ablation.average_every=1"]);
        fill(&mut state, 5.0);
        state.swap_average();
        check(&mut state, 5.0);
        for value in [1.0, 2.0, 6.0] {
            fill(&mut state, value);
            state.add_to_average();
        }
        state.swap_average();
        check(&mut state, 3.0);
        state.swap_average();
        check(&mut state, 6.0);
        for _ in 0..2 {
            state.end_with_chosen(&SingleProcess);
            check(&mut state, 3.0);
        }
    }

    #[test]
    fn a_stage_ends_with_the_best_epoch_and_its_edges() {
        let (mut state, _) = state(&["ablation.best_epoch=true"]);
        let weights = [[0.5, 1.0, 0.0, 2.0], [3.0, 0.0, 1.0, 0.0], [9.0; 4]];
        for ((value, ndcg), weights) in [(1.0, 10.0), (2.0, 30.0), (3.0, 30.0)]
            .into_iter()
            .zip(weights)
        {
            fill(&mut state, value);
            state.model.adjacency = Adjacency::learned(edges(), weights.to_vec(), 1.5).unwrap();
            state.keep_if_best(ndcg);
        }
        for _ in 0..2 {
            state.end_with_chosen(&SingleProcess);
            check(&mut state, 2.0);
            let expected = Adjacency::learned(edges(), weights[1].to_vec(), 1.5).unwrap();
            assert_eq!(state.model.adjacency, expected);
        }
    }

    #[test]
    fn weights_are_averaged_from_a_part_of_the_stage_on() {
        let (_, plan) = state(&["ablation.average_every=0.5", "ablation.average_from=0.25"]);
        let averaged = (1..=80).filter(|&step| is_averaged(plan.recipe(), step, 10, 8));
        let expected = [21].into_iter().chain((25..=80).step_by(5));
        assert_eq!(averaged.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        let looked_at = (1..=8).filter(|&epoch| is_looked_at(epoch, 8));
        assert_eq!(looked_at.collect::<Vec<_>>(), [3, 6, 8]);
    }
}
