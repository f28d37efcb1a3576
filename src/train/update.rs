//! Updates of the encoder, and of W_C at once or after its gradients have been added up over some steps.

use super::head::HeadGradients;
use super::state::Optimiser;
use crate::encoder::TrainableEncoder;
use crate::index::ClusterClassifiers;
use crate::kernels::Kernels;
use crate::optim::{StepRates, update_parameter};

impl Optimiser {
    /// Updates the encoder.
    pub(super) fn update_encoder(&mut self, encoder: &mut dyn TrainableEncoder, rates: &StepRates) {
        let parameters = encoder.parameters().into_iter().zip(&mut self.encoder);
        parameters.for_each(|(parameter, moments)| update_parameter(parameter, moments, rates));
    }

    /// Adds up the gradients of W_C and b_C, and updates them if that is due.
    pub(super) fn update_clusters(
        &mut self,
        clusters: &mut ClusterClassifiers,
        gradients: &HeadGradients,
        is_due: bool,
        rates: &StepRates,
    ) {
        let parts = [
            (
                clusters.weights.values_mut(),
                &gradients.cluster_weights,
                &mut self.cluster_weights,
                &mut self.waiting.cluster_weights,
                true,
            ),
            (
                clusters.bias.as_mut_slice(),
                &gradients.cluster_bias,
                &mut self.cluster_bias,
                &mut self.waiting.cluster_bias,
                false,
            ),
        ];
        for (values, gradient, moments, waiting, decays) in parts {
            let pace = rates.clusters.decaying_if(decays);
            if waiting.is_empty() {
                moments.update(rates, pace, values, gradient);
                continue;
            }
            Kernels::detect().axpy(1.0, gradient, waiting);
            if is_due {
                moments.update(rates, pace, values, waiting);
                waiting.fill(0.0);
            }
        }
    }
}
