//! Copies of all parameters that training keeps beside the current ones.
//!
//! The average over the last epochs of stage 2 (`optim.averaging`; everything but A, as in the released code), or
//! the parameters of the epoch with the best validation (`train.keep_best`; A included). How many epochs an average
//! holds follows from the epoch, and the best value so far from the history, so that neither needs a place of its
//! own in a checkpoint. The parameters of stage 1 (`train.keep_stage1`) are kept through stage 2 for the final model.

use super::TrainState;
use crate::config::Config;
use crate::events::{Event, Phase};
use crate::kernels::Kernels;

/// Which copies are kept, an array for each parameter; empty where none is.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) average: Vec<Vec<f32>>,
    pub(super) best: Vec<Vec<f32>>,
    pub(super) stage1: Vec<Vec<f32>>,
}

impl TrainState {
    /// Makes room for the copies that a configuration asks for in stage 2.
    pub(super) fn make_room_for_copies(&mut self, config: &Config) {
        self.copies = Copies::default();
        if self.position.phase != Phase::Stage2 {
            return;
        }
        if 0.0 < config.optim.averaging {
            self.copies.average = zeros_like(&self.parameters());
        }
        if config.train.keep_best {
            self.copies.best = zeros_like(&self.parameters());
            self.copies.best.push(vec![0.0; self.edge_weights().len()]);
        }
        if config.train.keep_stage1 {
            self.copies.stage1 = zeros_like(&self.parameters());
        }
    }

    /// Takes part in the average, if the epoch (from 0) is among those averaged.
    pub(super) fn average_epoch(&mut self, epoch: usize, n_epochs: usize, share: f32) {
        let n_averaged = ((n_epochs as f32 * share).ceil() as usize).clamp(1, n_epochs.max(1));
        let first = n_epochs - n_averaged.min(n_epochs);
        if self.copies.average.is_empty() || epoch < first {
            return;
        }
        let weight = 1.0 / (epoch - first + 1) as f32;
        let mut average = std::mem::take(&mut self.copies.average);
        for (average, current) in average.iter_mut().zip(self.parameters()) {
            // average += (current − average)/n
            average.iter_mut().for_each(|value| *value *= 1.0 - weight);
            Kernels::detect().axpy(weight, current, average);
        }
        self.copies.average = average;
    }

    /// Keeps a copy if the validation just pushed to the history is the best of the stage.
    pub(super) fn keep_if_best(&mut self) {
        if self.copies.best.is_empty() {
            return;
        }
        let precision = |event: &Event| match event {
            Event::Validation {
                phase: Phase::Stage2,
                precision_at_1,
                ..
            } => Some(*precision_at_1),
            _ => None,
        };
        let mut values = self.history.iter().filter_map(precision).rev();
        let Some(last) = values.next() else { return };
        if values.all(|earlier| earlier < last) {
            let mut best = std::mem::take(&mut self.copies.best);
            for (best, current) in best.iter_mut().zip(self.parameters()) {
                best.copy_from_slice(current);
            }
            if let Some(edges) = best.last_mut() {
                edges.copy_from_slice(self.edge_weights());
            }
            self.copies.best = best;
        }
    }

    /// Puts the copy that was asked for in the place of the parameters; doing it twice changes nothing.
    pub(super) fn use_copies(&mut self) {
        let average = std::mem::take(&mut self.copies.average);
        for (current, average) in self.parameters().into_iter().zip(&average) {
            current.copy_from_slice(average);
        }
        self.copies.average = average;
        let best = std::mem::take(&mut self.copies.best);
        let has_best = best.iter().flatten().any(|&value| value != 0.0);
        if has_best {
            for (current, best) in self.parameters().into_iter().zip(&best) {
                current.copy_from_slice(best);
            }
            if let Some(edges) = best.last() {
                self.model.adjacency.replace_weights(edges);
            }
        }
        self.copies.best = best;
    }

    /// A copy of every parameter, in the order of [`TrainState::parameters`].
    pub(super) fn copy_parameters(&mut self) -> Vec<Vec<f32>> {
        let copies = self.parameters().into_iter().map(|values| values.to_vec());
        copies.collect()
    }

    /// W_L, b_L, W_C, b_C and the parameters of the encoder.
    fn parameters(&mut self) -> Vec<&mut [f32]> {
        let model = &mut self.model;
        let mut parameters = vec![
            model.classifiers.weights.values_mut(),
            model.classifiers.bias.as_mut_slice(),
            model.clusters.weights.values_mut(),
            model.clusters.bias.as_mut_slice(),
        ];
        let encoder = self.encoder.parameters().into_iter();
        parameters.extend(encoder.map(|parameter| parameter.values));
        parameters
    }

    fn edge_weights(&self) -> &[f32] {
        self.model.adjacency.weights().unwrap_or(&[])
    }
}

fn zeros_like(parameters: &[&mut [f32]]) -> Vec<Vec<f32>> {
    let zeros = parameters.iter().map(|values| vec![0.0; values.len()]);
    zeros.collect()
}
