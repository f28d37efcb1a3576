//! What training told, arranged by stage: losses, validations, learning rates.

use serde::{Deserialize, Serialize};

use crate::config::{Config, LearningRates, StageConfig};
use crate::events::{Event, Phase};
use crate::optim::Schedule;

/// The course of one stage of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingCurves {
    /// The member, from 0.
    pub member: usize,
    /// The name of the stage.
    pub phase: String,
    /// L_c, λ L_s counted in the total, and labels scored, an entry an epoch: total, L_c, L_s, labels a point.
    pub losses: Vec<[f64; 4]>,
    /// Epoch, P@1, P@5 and R@100 on watched points, in percent.
    pub validations: Vec<(usize, [f64; 3])>,
}

impl TrainingCurves {
    /// Arranges what a training told.
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
    let is_it = |curve: &TrainingCurves| curve.member == member && curve.phase == phase.name();
    let at = curves.iter().position(is_it).unwrap_or_else(|| {
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

/// Where in a stage, and the rates of encoder, labels and clusters there.
pub type RatePoints = Vec<(f64, [f32; 3])>;

/// Learning rates of encoder, labels and clusters at `n_samples` even places of each stage, with the epoch of each.
pub fn rates_by_epoch(config: &Config, n_samples: usize) -> Vec<(&'static str, RatePoints)> {
    let sample = |(name, stage): (&'static str, StageConfig)| {
        let schedule = Schedule::new(n_samples);
        let rates = (0..n_samples).map(|step| {
            let factor = schedule.factor(step);
            let LearningRates {
                encoder,
                labels,
                clusters,
            } = stage.rates;
            let epoch = stage.epochs as f64 * (step as f64 + 0.5) / n_samples as f64;
            (epoch, [encoder, labels, clusters].map(|rate| rate * factor))
        });
        (name, rates.collect())
    };
    let names = ["stage 1", "stage 2"].into_iter();
    names.zip(config.stages()).map(sample).collect()
}
