//! What training tells while it runs.

use std::ops::ControlFlow;

use super::tell;
use crate::error::Result;

/// A part of the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// tf-idf features.
    Features,
    /// What a frozen encoder makes of the texts, once; its steps are points.
    Embeddings,
    /// Initial clusters.
    Clustering,
    /// Fixed clusters, trained to make better ones.
    WarmUp,
    /// Stage 1.
    Stage1,
    /// From stage 1 to the adjacency of stage 2; its steps are points.
    Adjacency,
    /// Stage 2.
    Stage2,
    /// The best candidates of the training points; its steps are points.
    Candidates,
    /// The sparse ranker; its steps are labels.
    Ranker,
    /// Calibration on the points held out.
    Calibration,
}

impl Phase {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Features => "features",
            Phase::Embeddings => "embeddings",
            Phase::Clustering => "clustering",
            Phase::WarmUp => "warm-up",
            Phase::Stage1 => "stage 1",
            Phase::Adjacency => "adjacency",
            Phase::Stage2 => "stage 2",
            Phase::Candidates => "candidates",
            Phase::Ranker => "ranker",
            Phase::Calibration => "calibration",
        }
    }
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A phase begins; it has this many steps, 0 if it is one piece.
    PhaseStarted {
        /// The phase.
        phase: Phase,
        /// Its steps.
        n_steps: usize,
    },
    /// A step is done.
    Step {
        /// The phase.
        phase: Phase,
        /// Steps done in the phase.
        step: usize,
        /// Points of the step.
        n_points: usize,
        /// Mean loss a point, smoothed; 0 in phases without one.
        loss: f64,
    },
    /// An epoch is done.
    Epoch {
        /// The phase.
        phase: Phase,
        /// Epochs done in the phase.
        epoch: usize,
        /// Mean L_c + λ L_s a point.
        loss: f64,
        /// Mean L_c a point.
        classification_loss: f64,
        /// Mean L_s a point.
        shortlist_loss: f64,
        /// Labels scored a point.
        labels_scored: f64,
    },
    /// The held-out points were predicted.
    Validation {
        /// The phase.
        phase: Phase,
        /// Epochs done in the phase.
        epoch: usize,
        /// P@1, in percent.
        precision_at_1: f64,
        /// P@5, in percent.
        precision_at_5: f64,
        /// R@100, in percent.
        recall_at_100: f64,
    },
    /// The adjacency of stage 2 stands.
    AdjacencyReady {
        /// Edges.
        n_edges: usize,
        /// Labels that no row had kept and that got their stage-1 edge back.
        n_repaired: usize,
    },
    /// A member of an ensemble begins; told only if there are several.
    MemberStarted {
        /// Its number, from 0.
        member: usize,
        /// Members of the ensemble.
        n_members: usize,
    },
    /// A checkpoint was written; never part of a model's history, which tells no times.
    Checkpoint {
        /// How long that took.
        seconds: f64,
    },
    /// Scores are calibrated.
    CalibrationReady {
        /// Points held out for it.
        n_points: usize,
        /// P@1 on them by the final score, in percent.
        precision_at_1: f64,
    },
    /// Scores stay as they are: too few points can be spared.
    CalibrationSkipped {
        /// Points that could be held out.
        n_points: usize,
        /// Points that calibration needs.
        n_needed: usize,
    },
}

/// Whoever watches a training.
///
/// `Break` stops it at once; what was trained so far is returned as an error of its own.
pub trait Observer: Sync {
    /// Called from the training thread.
    fn on_event(&self, event: &Event) -> ControlFlow<()>;
}

/// An observer that sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn on_event(&self, _event: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Points between two events of a phase whose steps are points.
pub(crate) const POINTS_AN_EVENT: usize = 1024;

/// A phase of counted steps.
pub(crate) struct Steps<'a> {
    phase: Phase,
    /// Steps done.
    pub(crate) done: usize,
    observer: &'a dyn Observer,
}

impl<'a> Steps<'a> {
    pub(crate) fn start(phase: Phase, n_steps: usize, observer: &'a dyn Observer) -> Result<Self> {
        tell(observer, Event::PhaseStarted { phase, n_steps })?;
        Ok(Steps {
            phase,
            done: 0,
            observer,
        })
    }

    pub(crate) fn advance(&mut self, n_more: usize) -> Result<()> {
        self.done += n_more;
        let event = Event::Step {
            phase: self.phase,
            step: self.done,
            n_points: n_more,
            loss: 0.0,
        };
        tell(self.observer, event)
    }
}
