//! An unfinished training: where it is kept, and how it is resumed.
//!
//! The code that trains sees a [`Store`] alone. [`InMemory`] keeps nothing, [`TrainingFolder`] keeps a training in the
//! directory of its model, [`Follower`](super::Follower) is what the other processes see of that folder.

mod folder;
mod identity;
mod kept_member;
mod lock;
mod pace;
mod snapshot;

pub use folder::is_unfinished;
pub use lock::check_not_in_use;

pub(crate) use folder::{Destination, Start, TrainingFolder};
pub(crate) use identity::Identity;
pub(crate) use kept_member::FinishedMember;
pub(crate) use pace::SnapshotPace;

pub(super) use folder::{FoundSnapshot, find_snapshots, folder_in, member_folder};
pub(super) use lock::WriteLock;
pub(super) use {kept_member::read as read_member, kept_member::write as write_member};
pub(super) use {snapshot::read as read_snapshot, snapshot::send as send_snapshot};

use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::Result;
use crate::train::{Boundary, TrainState};

/// Which processes need a whole member of which each has trained a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// The first alone.
    OnFirst,
    /// Every one.
    Everywhere,
}

/// Where the training of a member is kept until it is finished. Trainings of members are counted from 0, one per member
/// and pass.
pub(crate) trait Store {
    /// The state in which this training was interrupted; none if it starts at the beginning.
    ///
    /// # Errors
    /// [`Error::BadFile`](crate::Error::BadFile) if another training was interrupted here;
    /// [`Error::Stopped`](crate::Error::Stopped) if the observer asks for it.
    fn resume(
        &mut self,
        run: usize,
        plan: &Plan,
        origin: &EncoderOrigin,
    ) -> Result<Option<TrainState>>;

    /// Keeps the state at a boundary, if that is due.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); [`Error::Stopped`](crate::Error::Stopped) if the observer asks for it.
    fn keep(&mut self, state: &mut TrainState, boundary: Boundary) -> Result<()>;

    /// Joins the parts of a member that the processes have trained.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::BadFile`](crate::Error::BadFile).
    fn join(
        &mut self,
        run: usize,
        part: FinishedMember,
        plan: &Plan,
        whole: Whole,
    ) -> Result<FinishedMember>;
}

/// A store that also keeps members, once they are finished.
pub(crate) trait MemberStore: Store {
    /// A member that was finished before the training was interrupted.
    fn finished_member(&mut self, run: usize, plan: &Plan) -> Option<FinishedMember>;

    /// Keeps a finished member.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn keep_member(&mut self, run: usize, finished: &FinishedMember) -> Result<()>;
}

/// Keeps nothing: what is interrupted is lost.
pub(crate) struct InMemory;

impl Store for InMemory {
    fn resume(&mut self, _: usize, _: &Plan, _: &EncoderOrigin) -> Result<Option<TrainState>> {
        Ok(None)
    }

    fn keep(&mut self, _: &mut TrainState, _: Boundary) -> Result<()> {
        Ok(())
    }

    fn join(
        &mut self,
        _: usize,
        part: FinishedMember,
        _: &Plan,
        _: Whole,
    ) -> Result<FinishedMember> {
        Ok(part)
    }
}

impl MemberStore for InMemory {
    fn finished_member(&mut self, _: usize, _: &Plan) -> Option<FinishedMember> {
        None
    }

    fn keep_member(&mut self, _: usize, _: &FinishedMember) -> Result<()> {
        Ok(())
    }
}
