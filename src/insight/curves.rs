//! The events of a training by stage: losses, validations, learning rates.

use serde::{Deserialize, Serialize};

use crate::config::{LearningRates, Plan, StagePlan};
use crate::events::{Event, Phase};
use crate::optim::Schedule;

/// The curves of one stage of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingCurves {
    /// The member, from 0.
    pub member: usize,
    /// The name of the stage.
    pub phase: String,
    /// Per epoch: L_c + λ L_s, L_c, L_s, and labels scored per point.
    pub losses: Vec<[f64; 4]>,
    /// Epoch, and P@1, P@5 and R@100 on the validation points, in percent.
    pub validations: Vec<(usize, [f64; 3])>,
}

impl TrainingCurves {
    /// The stage, with its run if there are several: ensemble members, or training again on all points.
    pub fn name(&self, all: &[TrainingCurves]) -> String {
        if all.iter().all(|other| other.member == 0) {
            self.phase.clone()
        } else {
            format!("{}, run {}", self.phase, self.member + 1)
        }
    }

    /// The curves of a training, from its events.
    pub fn of(history: &[Event]) -> Vec<TrainingCurves> {
        let mut curves: Vec<TrainingCurves> = Vec::new();
        let mut member_idx = 0;
        for event in history {
            match *event {
                Event::MemberStarted { member, .. } => member_idx = member,
                Event::Epoch {
                    phase,
                    loss,
                    classification_loss,
                    shortlist_loss,
                    labels_scored,
                    ..
                } => {
                    let losses = [loss, classification_loss, shortlist_loss, labels_scored];
                    stage(&mut curves, member_idx, phase).losses.push(losses);
                }
                Event::Validation {
                    phase,
                    epoch,
                    precision_at_1,
                    precision_at_5,
                    recall_at_100,
                } => {
                    let values = [precision_at_1, precision_at_5, recall_at_100];
                    let curves = stage(&mut curves, member_idx, phase);
                    curves.validations.push((epoch, values));
                }
                _ => {}
            }
        }
        curves
    }
}

fn stage(curves: &mut Vec<TrainingCurves>, member: usize, phase: Phase) -> &mut TrainingCurves {
    let is_same = |curve: &TrainingCurves| curve.member == member && curve.phase == phase.name();
    let at = curves.iter().position(is_same).unwrap_or_else(|| {
        curves.push(TrainingCurves {
            member,
            phase: phase.name().to_owned(),
            losses: Vec::new(),
            validations: Vec::new(),
        });
        curves.len() - 1
    });
    &mut curves[at]
}

/// The learning rates of one stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StageRates {
    /// The name of the stage.
    pub stage: &'static str,
    /// Samples, by epoch.
    pub points: Vec<RatePoint>,
}

/// The learning rates at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RatePoint {
    /// The epoch, with its fraction.
    pub epoch: f64,
    /// The rates of encoder, labels and clusters.
    pub rates: [f32; 3],
}

/// The learning rates at `n_samples` evenly spaced times of each stage.
pub(crate) fn rates_by_epoch(plan: &Plan, n_samples: usize) -> Vec<StageRates> {
    let sample = |(name, stage): (&'static str, StagePlan)| {
        let schedule = Schedule::new(n_samples);
        let points = (0..n_samples).map(|step| {
            let factor = schedule.factor(step);
            let LearningRates {
                encoder,
                labels,
                clusters,
                ..
            } = stage.rates;
            let epoch = stage.epochs as f64 * (step as f64 + 0.5) / n_samples as f64;
            RatePoint {
                epoch,
                rates: [encoder, labels, clusters].map(|rate| rate * factor),
            }
        });
        StageRates {
            stage: name,
            points: points.collect(),
        }
    };
    ["stage 1", "stage 2"]
        .into_iter()
        .zip(plan.stages())
        .map(sample)
        .collect()
}
