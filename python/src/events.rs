//! Training events as Python dictionaries.

use elias::{Event, Phase};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The event as a dictionary: `"event"` is its kind, the other keys are its fields.
pub(crate) fn to_dict<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let name = |kind: &str, phase: Phase| {
        dict.set_item("event", kind)?;
        dict.set_item("phase", phase.name())
    };
    match *event {
        Event::PhaseStarted { phase, n_steps } => {
            name("phase", phase)?;
            dict.set_item("n_steps", n_steps)?;
        }
        Event::Step {
            phase,
            step,
            n_points,
            loss,
        } => {
            name("step", phase)?;
            dict.set_item("step", step)?;
            dict.set_item("n_points", n_points)?;
            dict.set_item("loss", loss)?;
        }
        Event::Epoch {
            phase,
            epoch,
            loss,
            classification_loss,
            shortlist_loss,
            labels_scored,
        } => {
            name("epoch", phase)?;
            dict.set_item("epoch", epoch)?;
            dict.set_item("loss", loss)?;
            dict.set_item("classification_loss", classification_loss)?;
            dict.set_item("shortlist_loss", shortlist_loss)?;
            dict.set_item("labels_scored", labels_scored)?;
        }
        Event::Validation {
            phase,
            epoch,
            precision_at_1,
            precision_at_5,
            recall_at_100,
        } => {
            name("validation", phase)?;
            dict.set_item("epoch", epoch)?;
            dict.set_item("p@1", precision_at_1)?;
            dict.set_item("p@5", precision_at_5)?;
            dict.set_item("r@100", recall_at_100)?;
        }
        _ => return milestone_to_dict(py, event),
    }
    Ok(dict)
}

/// An event that comes once per training or member.
fn milestone_to_dict<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let name = |kind: &str| dict.set_item("event", kind);
    match *event {
        Event::AdjacencyReady {
            n_edges,
            n_repaired,
        } => {
            name("adjacency")?;
            dict.set_item("n_edges", n_edges)?;
            dict.set_item("n_repaired", n_repaired)?;
        }
        Event::Recounting { n_points } => {
            name("recounting")?;
            dict.set_item("phase", Phase::Stage2.name())?;
            dict.set_item("n_points", n_points)?;
        }
        Event::MemberStarted { member, n_members } => {
            name("member")?;
            dict.set_item("member", member)?;
            dict.set_item("n_members", n_members)?;
        }
        Event::AlreadyTrained => name("already_trained")?,
        Event::CheckpointsDamaged => name("checkpoints_damaged")?,
        Event::Checkpoint { seconds } => {
            name("checkpoint")?;
            dict.set_item("seconds", seconds)?;
        }
        Event::CalibrationReady {
            n_points,
            precision_at_1,
        } => {
            name("calibration")?;
            dict.set_item("n_points", n_points)?;
            dict.set_item("p@1", precision_at_1)?;
        }
        Event::CalibrationSkipped { n_points, n_needed } => {
            name("calibration_skipped")?;
            dict.set_item("n_points", n_points)?;
            dict.set_item("n_needed", n_needed)?;
        }
        Event::CrossFitting { n_points, n_folds } => {
            name("cross_fitting")?;
            dict.set_item("n_points", n_points)?;
            dict.set_item("n_folds", n_folds)?;
        }
        Event::NearDuplicatesRelaxed {
            n_before,
            n_points,
            cosine,
        } => {
            name("near_duplicates_relaxed")?;
            dict.set_item("n_before", n_before)?;
            dict.set_item("n_points", n_points)?;
            dict.set_item("cosine", cosine)?;
        }
        // A later version of the library may have more.
        _ => name("other")?,
    }
    Ok(dict)
}
