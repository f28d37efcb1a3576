//! An unfinished training of several processes: process 0 has the folder, the others send what it writes and read what it names.

use std::path::{Path, PathBuf};

use super::kept_member::{self, FinishedMember};
use super::training::{MEMBERS, SLOTS, TrainingFolder, folder_in};
use super::{save_member, snapshot};
use crate::candidates::Member;
use crate::communicator::{Communicator, gather, is_told};
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::predict::Predictor;
use crate::train::TrainState;

impl TrainingFolder {
    /// The whole member of which each process has trained a part. It is mapped from a file, so that W_L need not fit into
    /// the memory of this process.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn gather_member(
        &self,
        member: usize,
        part: &FinishedMember,
        plan: &Plan,
        communicator: &dyn Communicator,
    ) -> Result<FinishedMember> {
        let folder = self.network_folder(member);
        kept_member::write(&folder, part, communicator)?;
        communicator.all_gather(folder_name(&folder).as_bytes());
        kept_member::read(&folder, plan)
    }
}

/// The last part of a folder's path.
fn folder_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Tells the other processes which snapshot was restored, as the number of snapshots up to it.
pub(super) fn tell_restored(n_snapshots: u64, communicator: &dyn Communicator) {
    gather(communicator, &[n_snapshots]);
}

/// The folder as a process other than 0 sees it, on storage that all processes see.
pub(crate) struct Follower {
    directory: PathBuf,
}

impl Follower {
    /// The folder inside a model's directory, which process 0 has opened.
    ///
    /// # Errors
    /// [`Error::BadFile`] if this process does not see it.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let follower = Follower {
            directory: directory.into(),
        };
        match folder_in(directory).exists() {
            true => Ok(follower),
            false => Err(follower.not_shared("it is not here")),
        }
    }

    /// The process's part of the snapshot that process 0 has restored, if it has.
    ///
    /// # Errors
    /// [`Error::BadFile`] if this process cannot read it.
    pub(crate) fn restore(
        &self,
        plan: &Plan,
        origin: &EncoderOrigin,
        communicator: &dyn Communicator,
    ) -> Result<Option<TrainState>> {
        let n_snapshots = gather(communicator, &[0u64])[0][0];
        if n_snapshots == 0 {
            return Ok(None);
        }
        for slot in SLOTS {
            let path = folder_in(&self.directory).join(slot);
            if let Ok(Some(snapshot)) = snapshot::read_manifest(&path)
                && snapshot.generation + 1 == n_snapshots
            {
                return snapshot::read(&path, &snapshot, plan, origin, communicator).map(Some);
            }
        }
        Err(self.not_shared("the checkpoint that process 0 continues is not here"))
    }

    /// Sends the state to process 0 if that writes a snapshot; returns whether it does.
    pub(crate) fn keep(&self, state: &mut TrainState, communicator: &dyn Communicator) -> bool {
        let is_due = is_told(communicator, false);
        if is_due {
            state.gather_cluster_state(communicator);
            snapshot::tell(state, communicator);
        }
        is_due
    }

    /// Sends a trained member to process 0; returns the name of the folder that process 0 has written it to.
    pub(crate) fn tell_member(&self, member: &Member, communicator: &dyn Communicator) -> String {
        save_member::tell(member, communicator);
        String::from_utf8_lossy(&communicator.all_gather(&[])[0]).into_owned()
    }

    /// The whole member in a folder of process 0, mapped from its files.
    ///
    /// # Errors
    /// [`Error::BadFile`] or [`Error::Io`] if this process cannot read it.
    pub(crate) fn read_member(&self, folder: &str, plan: &Plan) -> Result<FinishedMember> {
        let folder = folder_in(&self.directory).join(MEMBERS).join(folder);
        kept_member::read(&folder, plan)
    }

    /// The model that process 0 has written.
    ///
    /// # Errors
    /// As [`Predictor::load`].
    pub(crate) fn finished(&self) -> Result<Predictor> {
        Predictor::load(&self.directory)
    }

    fn not_shared(&self, problem: &str) -> Error {
        Error::BadFile {
            path: self.directory.clone(),
            problem: format!("{problem}: the model must go to storage that all communicator see"),
        }
    }
}
