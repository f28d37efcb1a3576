//! Updates of the encoder, and of the head at once or after its gradients have been added up over some steps.

use std::ops::Range;

use super::head::HeadGradients;
use super::state::Optimiser;
use crate::communicator::Communicator;
use crate::encoder::TrainableEncoder;
use crate::index::ClusterClassifiers;
use crate::kernels::Kernels;
use crate::model::Model;
use crate::optim::{StepRates, update_parameter};

impl Optimiser {
    /// Updates the encoder.
    pub(super) fn update_encoder(&mut self, encoder: &mut dyn TrainableEncoder, rates: &StepRates) {
        let parameters = encoder.parameters().into_iter().zip(&mut self.encoder);
        let updates = self.row_updates;
        parameters.for_each(|(parameter, moments)| {
            update_parameter(parameter, moments, rates, updates);
        });
    }

    /// Updates W_L where its gradients were added up, and A.
    pub(super) fn update_waiting(
        &mut self,
        model: &mut Model,
        rates: &StepRates,
        communicator: &dyn Communicator,
    ) {
        if let Some(waiting) = &mut self.waiting.labels {
            let classifiers = &mut model.classifiers;
            waiting.apply(classifiers, &mut self.labels, *rates, self.row_updates);
        }
        if let Some(edges) = &mut self.edges {
            edges.apply(&mut model.adjacency, rates, self.row_updates, communicator);
        }
    }

    /// Adds up the gradients of W_C and b_C, and updates them if that is due.
    pub(super) fn update_clusters(
        &mut self,
        clusters: &mut ClusterClassifiers,
        gradients: &HeadGradients,
        is_due: bool,
        rates: &StepRates,
    ) {
        let dim = clusters.weights.n_cols();
        let ranges = &gradients.cluster_ranges[..];
        let of_weights: Vec<Range<usize>> = ranges
            .iter()
            .map(|range| range.start * dim..range.end * dim)
            .collect();
        let parts = [
            (
                clusters.weights.values_mut(),
                &gradients.cluster_weights,
                &mut self.cluster_weights,
                &mut self.waiting.cluster_weights,
                &of_weights[..],
                true,
            ),
            (
                clusters.bias.as_mut_slice(),
                &gradients.cluster_bias,
                &mut self.cluster_bias,
                &mut self.waiting.cluster_bias,
                ranges,
                false,
            ),
        ];
        for (values, gradient, moments, waiting, ranges, decays) in parts {
            let pace = rates.clusters.decaying_if(decays);
            if waiting.is_empty() {
                moments.update_ranges(rates, pace, values, gradient, ranges);
                continue;
            }
            for range in ranges {
                let waiting = &mut waiting[range.clone()];
                Kernels::detect().axpy(1.0, &gradient[range.clone()], waiting);
            }
            if is_due {
                moments.update_ranges(rates, pace, values, waiting, ranges);
                waiting.fill(0.0);
            }
        }
    }
}
