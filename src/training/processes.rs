//! A training that several processes share, and what they cannot do.

use std::path::Path;

use super::prepare::PreparedTraining;
use super::run::Run;
use crate::communicator::{Communicator, MAX_PROCESSES};
use crate::config::Plan;
use crate::error::{Error, Result};
use crate::predict::Predictor;
use crate::store::Follower;

/// Trains this process's part of the members of a model that process 0 saves.
///
/// # Errors
/// As [`Trainer::train_to`](super::Trainer::train_to).
pub(super) fn follow(prepared: PreparedTraining<'_>, directory: &Path) -> Result<Predictor> {
    let mut follower = Follower::open(directory, prepared.communicator())?;
    if !follower.is_finished() {
        let mut run = Run::split(prepared.features()?, &mut follower)?;
        for member_run in run.member_runs() {
            if !run.store.is_member_finished() {
                let plan = run.plan.of_member(member_run.member);
                run.train_member(member_run, &plan)?;
            }
        }
    }
    follower.model()
}

/// Checks that there is one process.
///
/// # Errors
/// [`Error::CannotTrain`] with this problem.
pub(super) fn check_alone(communicator: &dyn Communicator, problem: &str) -> Result<()> {
    match communicator.n_processes() {
        1 => Ok(()),
        _ => Err(Error::CannotTrain(problem.into())),
    }
}

/// Checks that this many processes can share the labels.
///
/// # Errors
/// [`Error::CannotTrain`] if they cannot.
pub(super) fn check_shared(communicator: &dyn Communicator, plan: &Plan) -> Result<()> {
    let (n_processes, n_labels) = (communicator.n_processes(), plan.counts().n_labels);
    let cannot = |problem: String| Err(Error::CannotTrain(problem));
    if n_processes == 1 {
        Ok(())
    } else if n_processes > MAX_PROCESSES {
        cannot(format!(
            "{n_processes} processes were started, labels are shared by at most {MAX_PROCESSES}"
        ))
    } else if n_labels < MAX_PROCESSES {
        cannot(format!(
            "{n_labels} labels are too few to be shared, expected at least {MAX_PROCESSES}: start one process"
        ))
    } else if plan.config().train.keep_stage1 {
        cannot("train.keep_stage1 needs all labels in one process: turn it off".into())
    } else {
        Ok(())
    }
}
