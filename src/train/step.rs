//! One step: φ, the head, the encoder's gradient, and the updates.

use rayon::prelude::*;

use super::head::{
    Batch, BatchCounts, Filling, Head, HeadLoss, HeadMut, HeadOptions, LabelState, LossWeights,
};
use super::stage::Stage;
use super::state::TrainState;
use crate::config::{Parents, Reduction, Searched};
use crate::encoder::StepSeed;
use crate::matrix::Matrix;
use crate::optim::StepRates;
use crate::random::Random;

impl Stage<'_> {
    /// One step; returns the mean loss per point.
    pub(super) fn step(
        &self,
        job: &StepJob<'_>,
        state: &mut TrainState,
        head: &mut Head,
        buffers: &mut StepBuffers,
    ) -> f64 {
        let TrainState {
            model,
            encoder,
            optimiser,
            parents,
            ..
        } = state;
        let (config, recipe) = (self.plan.config(), self.plan.recipe());
        let points = self.data.points;
        encoder.forward(points, job.rows, job.seed, &mut buffers.embeddings);
        buffers.drop_out(config.encoder.dropout, job.seed);

        let lambda = job.lambda;
        let weights = |counts: &BatchCounts| loss_weights(recipe.reduction, lambda, counts);
        let options = HeadOptions {
            shortlist: self.shortlist_options(recipe.score_floor),
            gradient_floor: recipe.gradient_floor,
            weights: &weights,
        };
        let mut batch = Batch {
            embeddings: &buffers.embeddings,
            targets: self.targets,
            point_weights: self.data.point_weights,
            rows: job.rows,
            parents,
            filling: None,
        };
        if recipe.searched == Searched::Filled {
            batch.filling = Some(Filling {
                seed: job.seed,
                n_clusters: self.plan.n_clusters(),
                most_positives: batch.most_targets(),
            });
        }
        let parts = HeadMut {
            clusters: &model.clusters,
            adjacency: &model.adjacency,
            classifiers: &mut model.classifiers,
        };
        let mut label_state = match &mut optimiser.waiting.labels {
            None => LabelState::Apply(&mut optimiser.labels, job.rates),
            Some(waiting) => LabelState::Collect(waiting),
        };
        let edge_state = optimiser.edges.as_mut();
        buffers.loss = head.step(parts, batch, &options, &mut label_state, edge_state);

        buffers.undo_drop_out(&mut head.gradients.embeddings);
        encoder.backward(points, job.rows, &head.gradients.embeddings);
        optimiser.update_encoder(encoder.as_mut(), &job.rates);
        let is_due = job.is_due(recipe.update_every);
        optimiser.update_clusters(&mut model.clusters, &head.gradients, is_due, &job.rates);
        if is_due {
            optimiser.update_waiting(model, &job.rates, self.data.communicator);
            if recipe.parents == Parents::Update && model.adjacency.weights().is_some() {
                *parents = self.parents(model);
            }
        }
        let n_points = job.rows.len() as f64;
        (buffers.loss.classification + f64::from(lambda) * buffers.loss.shortlist) / n_points
    }
}

/// One step's points and rates.
pub(super) struct StepJob<'a> {
    pub(super) rows: &'a [u32],
    pub(super) rates: StepRates,
    /// λ.
    pub(super) lambda: f32,
    pub(super) seed: StepSeed,
    /// Steps done in the stage, this one counted.
    pub(super) n_done: usize,
    /// Steps of the stage.
    pub(super) n_steps: usize,
}

impl StepJob<'_> {
    /// Whether a group that is updated every few steps is updated in this one; the last step updates all.
    fn is_due(&self, every: usize) -> bool {
        self.n_done.is_multiple_of(every) || self.n_done == self.n_steps
    }
}

/// Multipliers of L_c and L_s.
pub(super) fn loss_weights(reduction: Reduction, lambda: f32, counts: &BatchCounts) -> LossWeights {
    let share = |count: usize| 1.0 / count.max(1) as f32;
    match reduction {
        Reduction::Sum => LossWeights {
            classification: share(counts.n_points),
            shortlist: lambda * share(counts.n_points),
        },
        Reduction::Mean => LossWeights {
            classification: share(counts.n_points * counts.shortlist_size),
            shortlist: lambda * share(counts.n_points * counts.most_targets),
        },
    }
}

/// Buffers of a step outside the head.
#[derive(Default)]
pub(super) struct StepBuffers {
    /// φ, after dropout.
    embeddings: Matrix,
    /// Factors by which dropout multiplied the entries.
    mask: Matrix,
    pub(super) loss: HeadLoss,
}

impl StepBuffers {
    fn drop_out(&mut self, dropout: f32, seed: StepSeed) {
        let dim = self.embeddings.n_cols();
        self.mask.reshape(self.embeddings.n_rows(), dim);
        let scale = 1.0 / (1.0 - dropout);
        let threshold = (dropout * 65536.0) as u64;
        let masks = self.mask.values_mut().par_chunks_mut(dim);
        let rows = self.embeddings.values_mut().par_chunks_mut(dim).zip(masks);
        rows.enumerate().for_each(|(point, (row, mask))| {
            let mut random = Random::new(seed.seed, "dropout", seed.step << 16 | point as u64);
            // Four draws of 16 bits from each random number.
            for (values, mask) in row.chunks_mut(4).zip(mask.chunks_mut(4)) {
                let mut bits = random.u64();
                for (value, mask) in values.iter_mut().zip(mask) {
                    *mask = if bits & 0xFFFF < threshold {
                        0.0
                    } else {
                        scale
                    };
                    *value *= *mask;
                    bits >>= 16;
                }
            }
        });
    }

    fn undo_drop_out(&self, gradient: &mut Matrix) {
        for (gradient, mask) in gradient.values_mut().iter_mut().zip(self.mask.values()) {
            *gradient *= mask;
        }
    }
}
