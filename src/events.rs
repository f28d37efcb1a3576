//! Training events and the observer that receives them.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// A phase of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// tf-idf features.
    Features,
    /// Embeddings of a frozen encoder, computed once; its steps are points.
    Embeddings,
    /// Points to calibrate on, and their near duplicates.
    HoldOut,
    /// Initial clusters.
    Clustering,
    /// Epochs on the first clusters, before labels are clustered again.
    WarmUp,
    /// Stage 1.
    Stage1,
    /// The adjacency of stage 2, from the matches of stage 1; its steps are points.
    Adjacency,
    /// Stage 2.
    Stage2,
    /// The best candidates of the training points; its steps are points.
    Candidates,
    /// The sparse ranker; its steps are labels.
    Ranker,
    /// The training points by their words.
    Neighbours,
    /// Calibration on held-out points.
    Calibration,
    /// Writing the model; a stop no longer counts.
    Saving,
}

impl Phase {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Features => "features",
            Phase::Embeddings => "embeddings",
            Phase::HoldOut => "hold-out",
            Phase::Clustering => "clustering",
            Phase::WarmUp => "warm-up",
            Phase::Stage1 => "stage 1",
            Phase::Adjacency => "adjacency",
            Phase::Stage2 => "stage 2",
            Phase::Candidates => "candidates",
            Phase::Ranker => "ranker",
            Phase::Neighbours => "neighbours",
            Phase::Calibration => "calibration",
            Phase::Saving => "saving",
        }
    }
}

/// Something that happened during training.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A phase started.
    PhaseStarted {
        /// The phase.
        phase: Phase,
        /// Steps of the phase; 0 if it has no steps of its own.
        n_steps: usize,
    },
    /// A step finished.
    Step {
        /// The phase.
        phase: Phase,
        /// Steps done in the phase.
        step: usize,
        /// Points of the step.
        n_points: usize,
        /// Mean loss per point, smoothed; 0 in phases without a loss.
        loss: f64,
    },
    /// An epoch finished.
    Epoch {
        /// The phase.
        phase: Phase,
        /// Epochs done in the phase.
        epoch: usize,
        /// Mean L_c + λ L_s per point.
        loss: f64,
        /// Mean L_c per point.
        classification_loss: f64,
        /// Mean L_s per point.
        shortlist_loss: f64,
        /// Labels scored per point.
        labels_scored: f64,
    },
    /// The validation points were predicted.
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
    /// The adjacency of stage 2 is ready.
    AdjacencyReady {
        /// Edges.
        n_edges: usize,
        /// Labels that no cluster kept and that got their stage-1 edge back.
        n_repaired: usize,
    },
    /// The edges of stage 2 are counted again, between two of its epochs.
    Recounting {
        /// Points counted so far.
        n_points: usize,
    },
    /// One of several trainings started: of an ensemble's members, or again on all points.
    MemberStarted {
        /// Its number, from 0.
        member: usize,
        /// Number of trainings.
        n_members: usize,
    },
    /// The training to resume had finished: its model is loaded, nothing is trained.
    AlreadyTrained,
    /// The checkpoints of an interrupted training are damaged: it starts at the beginning.
    CheckpointsDamaged,
    /// A checkpoint was written; not part of a model's history, which has no times.
    Checkpoint {
        /// Time it took.
        seconds: f64,
    },
    /// Scores are calibrated.
    CalibrationReady {
        /// Points held out for it.
        n_points: usize,
        /// P@1 on them by the final score, in percent.
        precision_at_1: f64,
    },
    /// Too few points can be held out, so that folds of all points take turns.
    CrossFitting {
        /// Points in all folds.
        n_points: usize,
        /// Folds, each held out of a training of its own.
        n_folds: usize,
    },
    /// Too few points can be held out while all of their near duplicates are set aside, so that fewer are.
    NearDuplicatesRelaxed {
        /// Points that could be held out before.
        n_before: usize,
        /// Points that are held out.
        n_points: usize,
        /// Cosine from which points are near duplicates now; none: no point is set aside.
        cosine: Option<f32>,
    },
    /// The finished model went on learning.
    Updated {
        /// New points.
        n_points: usize,
        /// Corrections since the model was written.
        n_corrections: usize,
        /// Labels that got classifiers.
        n_new_labels: usize,
    },
    /// Scores are not calibrated: too few points can be held out.
    CalibrationSkipped {
        /// Points that could be held out.
        n_points: usize,
        /// Points that calibration needs.
        n_needed: usize,
    },
}

/// Receives the events of a training.
///
/// A closure `Fn(&Event) -> ControlFlow<()>` is an observer.
pub trait Observer: Sync {
    /// Called on the training thread. `Break` ends the training with [`Error::Stopped`] after the current step.
    fn on_event(&self, event: &Event) -> ControlFlow<()>;
}

impl<F: Fn(&Event) -> ControlFlow<()> + Sync> Observer for F {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        self(event)
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Observer for Silent {
    fn on_event(&self, _event: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Sends an event to the observer.
///
/// # Errors
/// [`Error::Stopped`] if the observer returned `Break`.
pub(crate) fn emit(observer: &dyn Observer, event: Event) -> Result<()> {
    match observer.on_event(&event) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}

/// Points between two events of a phase whose steps are points.
pub(crate) const POINTS_PER_EVENT: usize = 1024;

/// A phase of counted steps.
pub(crate) struct Steps<'a> {
    phase: Phase,
    /// Steps done.
    pub(crate) done: usize,
    observer: &'a dyn Observer,
}

impl<'a> Steps<'a> {
    /// Emits the start of the phase.
    pub(crate) fn start(phase: Phase, n_steps: usize, observer: &'a dyn Observer) -> Result<Self> {
        emit(observer, Event::PhaseStarted { phase, n_steps })?;
        Ok(Steps::new(phase, observer))
    }

    /// Steps of a phase whose start was emitted.
    pub(crate) fn new(phase: Phase, observer: &'a dyn Observer) -> Self {
        Steps {
            phase,
            done: 0,
            observer,
        }
    }

    /// Emits that more steps are done.
    pub(crate) fn advance(&mut self, n_more: usize) -> Result<()> {
        self.done += n_more;
        let event = Event::Step {
            phase: self.phase,
            step: self.done,
            n_points: n_more,
            loss: 0.0,
        };
        emit(self.observer, event)
    }
}
