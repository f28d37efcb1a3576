//! The learning-rate schedule: linear warm-up, then linear to zero, once a stage.

use crate::config::{LearningRates, OptimConfig};
use crate::matrix::AdamWStep;

/// A schedule over the steps of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    n_steps: usize,
    n_warmup: usize,
}

/// The rates of one step, with what AdamW needs besides.
#[derive(Clone, Copy, Debug)]
pub struct StepRates {
    /// Rates of this step.
    pub rates: LearningRates,
    /// Updates of W_L and A so far, this one counted.
    pub label_updates: u32,
    /// Updates of the encoder so far, this one counted.
    pub encoder_updates: u32,
    template: AdamWStep,
}

impl Schedule {
    /// A schedule over `n_steps` steps, of which the share `warmup` rises.
    pub fn new(n_steps: usize, warmup: f32) -> Self {
        Schedule {
            n_steps,
            n_warmup: (n_steps as f32 * warmup).round() as usize,
        }
    }

    /// Steps of the stage.
    pub fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// What the rates of step `step` (from 0) are multiplied by.
    pub fn factor(&self, step: usize) -> f32 {
        if step < self.n_warmup {
            return (step + 1) as f32 / self.n_warmup as f32;
        }
        let n_left = self.n_steps.saturating_sub(step);
        n_left as f32 / (self.n_steps - self.n_warmup).max(1) as f32
    }

    /// The rates of step `step`.
    pub fn rates(&self, step: usize, rates: &LearningRates, config: &OptimConfig) -> StepRates {
        let factor = self.factor(step);
        let template = AdamWStep {
            learning_rate: 0.0,
            beta1: config.beta1,
            beta2: config.beta2,
            gain2: 1.0 - config.beta2,
            epsilon: config.epsilon,
            weight_decay: config.weight_decay,
            bias_correction1: 1.0,
            bias_correction2: 1.0,
        };
        let rates = LearningRates {
            encoder: rates.encoder * factor,
            labels: rates.labels * factor,
            clusters: rates.clusters * factor,
        };
        let updates = |every: usize| (step / every + 1) as u32;
        StepRates {
            rates,
            label_updates: updates(config.update_every_labels),
            encoder_updates: updates(config.update_every_encoder),
            template,
        }
    }
}

impl StepRates {
    /// The `n_updates`-th update (from 1) of something, at this rate.
    #[inline]
    pub fn adamw(&self, learning_rate: f32, n_updates: u32) -> AdamWStep {
        AdamWStep {
            learning_rate,
            bias_correction1: 1.0 - self.template.beta1.powi(n_updates as i32),
            bias_correction2: 1.0 - self.template.beta2.powi(n_updates as i32),
            ..self.template
        }
    }

    /// The update number `now` of a row that was last updated by number `last`, at this rate.
    ///
    /// The second moment decays over the updates that passed the row by, as it would in a dense AdamW, so that a row
    /// seldom touched moves further at each touch. The first forgets the same way, and the new gradient takes all of
    /// the place that becomes free: momentum that a dense AdamW would spend on later steps is spent at once.
    #[inline]
    pub fn adamw_of_row(&self, learning_rate: f32, last: u32, now: u32) -> AdamWStep {
        let passed = now.saturating_sub(last).max(1) as i32;
        AdamWStep {
            beta1: self.template.beta1.powi(passed),
            beta2: self.template.beta2.powi(passed),
            ..self.adamw(learning_rate, now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_touched_in_every_update_moves_like_a_dense_parameter() {
        let config = OptimConfig::default();
        let rates = Schedule::new(10, 0.0).rates(4, &LearningRates::default(), &config);
        let (dense, row) = (rates.adamw(0.1, 5), rates.adamw_of_row(0.1, 4, 5));
        assert_eq!(
            (dense.beta1, dense.beta2, dense.gain2),
            (row.beta1, row.beta2, row.gain2)
        );
        let seldom = rates.adamw_of_row(0.1, 1, 5);
        assert!(
            (seldom.beta1 - 0.9f32.powi(4)).abs() < 1e-6
                && (seldom.beta2 - 0.999f32.powi(4)).abs() < 1e-6
        );
        assert_eq!(seldom.gain2, dense.gain2);
    }

    #[test]
    fn rates_rise_to_one_and_fall_towards_zero() {
        let schedule = Schedule::new(20, 0.1);
        assert_eq!(schedule.factor(0), 0.5);
        assert_eq!(schedule.factor(1), 1.0);
        assert_eq!(schedule.factor(2), 1.0);
        assert!((schedule.factor(19) - 1.0 / 18.0).abs() < 1e-6);
        assert_eq!(schedule.factor(20), 0.0);
        assert_eq!(Schedule::new(0, 0.1).factor(0), 0.0);
    }
}
