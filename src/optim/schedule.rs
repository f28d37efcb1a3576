//! The learning-rate schedule: linear warm-up, then linear decay to zero, once per stage.

use crate::config::{LearningRates, Recipe};
use crate::kernels::AdamWStep;

/// Share of a stage's steps over which the rates rise, as in the released code.
const WARMUP: f32 = 0.1;
/// AdamW's usual constants: decays of the two moments, and the ε added to the root of the second.
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// A schedule over the steps of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Schedule {
    n_steps: usize,
    n_warmup: usize,
}

/// The learning rate and weight decay of a parameter in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    /// Learning rate.
    pub rate: f32,
    /// Decoupled weight decay, multiplied by the rate.
    pub decay: f32,
}

impl Pace {
    /// The same rate; without decay unless `decays`.
    pub(crate) fn decaying_if(self, decays: bool) -> Pace {
        let decay = if decays { self.decay } else { 0.0 };
        Pace { decay, ..self }
    }
}

/// The paces of one step, and the other parameters of AdamW.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRates {
    /// φ.
    pub encoder: Pace,
    /// W_L.
    pub labels: Pace,
    /// A.
    pub edges: Pace,
    /// W_C.
    pub clusters: Pace,
    template: AdamWStep,
}

impl Schedule {
    /// A schedule over `n_steps` steps.
    pub(crate) fn new(n_steps: usize) -> Self {
        Schedule {
            n_steps,
            n_warmup: (n_steps as f32 * WARMUP).round() as usize,
        }
    }

    /// Steps of the stage.
    pub(crate) fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// The factor of the rates at step `step` (from 0).
    pub(crate) fn factor(&self, step: usize) -> f32 {
        if step < self.n_warmup {
            return (step + 1) as f32 / self.n_warmup as f32;
        }
        let n_left = self.n_steps.saturating_sub(step);
        n_left as f32 / (self.n_steps - self.n_warmup).max(1) as f32
    }

    /// The rates of step `step`.
    pub(crate) fn rates(&self, step: usize, rates: &LearningRates, recipe: &Recipe) -> StepRates {
        let factor = self.factor(step);
        let template = AdamWStep {
            learning_rate: 0.0,
            beta1: BETA1,
            beta2: BETA2,
            epsilon: EPSILON,
            weight_decay: 0.0,
            bias_correction1: 1.0,
            bias_correction2: 1.0,
        };
        let pace = |rate: f32, decay: f32| Pace {
            rate: rate * factor,
            decay,
        };
        StepRates {
            encoder: pace(rates.encoder, recipe.weight_decay),
            labels: pace(rates.labels, recipe.weight_decay),
            edges: pace(rates.edges, recipe.index_weight_decay),
            clusters: pace(rates.clusters, recipe.index_weight_decay),
            template,
        }
    }
}

impl StepRates {
    /// The `n_updates`-th update (from 1) at this pace.
    #[inline]
    pub(crate) fn adamw(&self, pace: Pace, n_updates: u32) -> AdamWStep {
        AdamWStep {
            learning_rate: pace.rate,
            weight_decay: pace.decay,
            bias_correction1: 1.0 - self.template.beta1.powi(n_updates as i32),
            bias_correction2: 1.0 - self.template.beta2.powi(n_updates as i32),
            ..self.template
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_to_one_and_fall_towards_zero() {
        let schedule = Schedule::new(20);
        assert_eq!(schedule.factor(0), 0.5);
        assert_eq!(schedule.factor(1), 1.0);
        assert_eq!(schedule.factor(2), 1.0);
        assert!((schedule.factor(19) - 1.0 / 18.0).abs() < 1e-6);
        assert_eq!(schedule.factor(20), 0.0);
        assert_eq!(Schedule::new(0).factor(0), 0.0);
    }
}
