//! Version 1 of the history of a training, as manifests keep it.

use serde::{Deserialize, Serialize};

use crate::events::{Event, Phase};

/// An event worth keeping.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WireEvent {
    Epoch {
        phase: WirePhase,
        epoch: usize,
        loss: f64,
        classification_loss: f64,
        shortlist_loss: f64,
        labels_scored: f64,
    },
    Validation {
        phase: WirePhase,
        epoch: usize,
        precision_at_1: f64,
        precision_at_5: f64,
        recall_at_100: f64,
    },
    Adjacency {
        n_edges: usize,
        n_repaired: usize,
    },
    Member {
        member: usize,
        n_members: usize,
    },
    Calibration {
        n_points: usize,
        precision_at_1: f64,
    },
    CalibrationSkipped {
        n_points: usize,
        n_needed: usize,
    },
    CrossFitting {
        n_points: usize,
        n_folds: usize,
    },
    NearDuplicatesRelaxed {
        n_before: usize,
        n_points: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        cosine: Option<f32>,
    },
    Updated {
        n_points: usize,
        n_corrections: usize,
        n_new_labels: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WirePhase {
    #[serde(rename = "features")]
    Features,
    #[serde(rename = "embeddings")]
    Embeddings,
    #[serde(rename = "hold-out")]
    HoldOut,
    #[serde(rename = "clustering")]
    Clustering,
    #[serde(rename = "warm-up")]
    WarmUp,
    #[serde(rename = "stage 1")]
    Stage1,
    #[serde(rename = "adjacency")]
    Adjacency,
    #[serde(rename = "stage 2")]
    Stage2,
    #[serde(rename = "candidates")]
    Candidates,
    #[serde(rename = "ranker")]
    Ranker,
    #[serde(rename = "neighbours")]
    Neighbours,
    #[serde(rename = "calibration")]
    Calibration,
    #[serde(rename = "saving")]
    Saving,
}

impl From<Phase> for WirePhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Features => WirePhase::Features,
            Phase::Embeddings => WirePhase::Embeddings,
            Phase::HoldOut => WirePhase::HoldOut,
            Phase::Clustering => WirePhase::Clustering,
            Phase::WarmUp => WirePhase::WarmUp,
            Phase::Stage1 => WirePhase::Stage1,
            Phase::Adjacency => WirePhase::Adjacency,
            Phase::Stage2 => WirePhase::Stage2,
            Phase::Candidates => WirePhase::Candidates,
            Phase::Ranker => WirePhase::Ranker,
            Phase::Neighbours => WirePhase::Neighbours,
            Phase::Calibration => WirePhase::Calibration,
            Phase::Saving => WirePhase::Saving,
        }
    }
}

impl From<WirePhase> for Phase {
    fn from(phase: WirePhase) -> Self {
        match phase {
            WirePhase::Features => Phase::Features,
            WirePhase::Embeddings => Phase::Embeddings,
            WirePhase::HoldOut => Phase::HoldOut,
            WirePhase::Clustering => Phase::Clustering,
            WirePhase::WarmUp => Phase::WarmUp,
            WirePhase::Stage1 => Phase::Stage1,
            WirePhase::Adjacency => Phase::Adjacency,
            WirePhase::Stage2 => Phase::Stage2,
            WirePhase::Candidates => Phase::Candidates,
            WirePhase::Ranker => Phase::Ranker,
            WirePhase::Neighbours => Phase::Neighbours,
            WirePhase::Calibration => Phase::Calibration,
            WirePhase::Saving => Phase::Saving,
        }
    }
}

/// The events worth keeping.
pub(crate) fn wire_history(history: &[Event]) -> Vec<WireEvent> {
    let keep = |event: &Event| match *event {
        Event::Epoch {
            phase,
            epoch,
            loss,
            classification_loss,
            shortlist_loss,
            labels_scored,
        } => Some(WireEvent::Epoch {
            phase: phase.into(),
            epoch,
            loss,
            classification_loss,
            shortlist_loss,
            labels_scored,
        }),
        Event::Validation {
            phase,
            epoch,
            precision_at_1,
            precision_at_5,
            recall_at_100,
        } => Some(WireEvent::Validation {
            phase: phase.into(),
            epoch,
            precision_at_1,
            precision_at_5,
            recall_at_100,
        }),
        Event::AdjacencyReady {
            n_edges,
            n_repaired,
        } => Some(WireEvent::Adjacency {
            n_edges,
            n_repaired,
        }),
        Event::MemberStarted { member, n_members } => Some(WireEvent::Member { member, n_members }),
        Event::CalibrationReady {
            n_points,
            precision_at_1,
        } => Some(WireEvent::Calibration {
            n_points,
            precision_at_1,
        }),
        Event::CalibrationSkipped { n_points, n_needed } => {
            Some(WireEvent::CalibrationSkipped { n_points, n_needed })
        }
        Event::CrossFitting { n_points, n_folds } => {
            Some(WireEvent::CrossFitting { n_points, n_folds })
        }
        Event::NearDuplicatesRelaxed {
            n_before,
            n_points,
            cosine,
        } => Some(WireEvent::NearDuplicatesRelaxed {
            n_before,
            n_points,
            cosine,
        }),
        Event::Updated {
            n_points,
            n_corrections,
            n_new_labels,
        } => Some(WireEvent::Updated {
            n_points,
            n_corrections,
            n_new_labels,
        }),
        Event::PhaseStarted { .. }
        | Event::Step { .. }
        | Event::Recounting { .. }
        | Event::Checkpoint { .. }
        | Event::AlreadyTrained
        | Event::CheckpointsDamaged => None,
    };
    history.iter().filter_map(keep).collect()
}

impl From<&WireEvent> for Event {
    fn from(event: &WireEvent) -> Self {
        match *event {
            WireEvent::Epoch {
                phase,
                epoch,
                loss,
                classification_loss,
                shortlist_loss,
                labels_scored,
            } => Event::Epoch {
                phase: phase.into(),
                epoch,
                loss,
                classification_loss,
                shortlist_loss,
                labels_scored,
            },
            WireEvent::Validation {
                phase,
                epoch,
                precision_at_1,
                precision_at_5,
                recall_at_100,
            } => Event::Validation {
                phase: phase.into(),
                epoch,
                precision_at_1,
                precision_at_5,
                recall_at_100,
            },
            WireEvent::Adjacency {
                n_edges,
                n_repaired,
            } => Event::AdjacencyReady {
                n_edges,
                n_repaired,
            },
            WireEvent::Member { member, n_members } => Event::MemberStarted { member, n_members },
            WireEvent::Calibration {
                n_points,
                precision_at_1,
            } => Event::CalibrationReady {
                n_points,
                precision_at_1,
            },
            WireEvent::CalibrationSkipped { n_points, n_needed } => {
                Event::CalibrationSkipped { n_points, n_needed }
            }
            WireEvent::CrossFitting { n_points, n_folds } => {
                Event::CrossFitting { n_points, n_folds }
            }
            WireEvent::NearDuplicatesRelaxed {
                n_before,
                n_points,
                cosine,
            } => Event::NearDuplicatesRelaxed {
                n_before,
                n_points,
                cosine,
            },
            WireEvent::Updated {
                n_points,
                n_corrections,
                n_new_labels,
            } => Event::Updated {
                n_points,
                n_corrections,
                n_new_labels,
            },
        }
    }
}
