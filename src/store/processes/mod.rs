//! An unfinished training of several processes: process 0 has the folder, the others send what it writes and read what it names.

pub(super) mod spread;

use std::path::{Path, PathBuf};

use super::model::send_member;
use super::unfinished::{
    FinishedMember, FoundSnapshot, Store, Whole, find_snapshots, folder_in, member_folder,
    read_member, read_snapshot, send_snapshot, write_member,
};
use crate::communicator::Communicator;
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::predict::Predictor;
use crate::train::{Boundary, TrainState};

/// Tells the other processes which snapshot was restored, as the number of snapshots up to it.
pub(super) fn tell_restored(n_snapshots: u64, communicator: &dyn Communicator) {
    communicator.gather(vec![n_snapshots]);
}

/// The whole member of which each process has trained a part. It is mapped from files in a folder, so that W_L need not fit
/// into the memory of this process.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn join(
    folder: &Path,
    part: FinishedMember,
    plan: &Plan,
    communicator: &dyn Communicator,
) -> Result<FinishedMember> {
    if communicator.n_processes() == 1 {
        return Ok(part);
    }
    write_member(folder, &part, communicator)?;
    let name = folder.file_name().unwrap_or_default();
    communicator.all_gather(name.as_encoded_bytes());
    read_member(folder, plan)
}

/// The folder as a process other than 0 sees it, on storage that all processes see.
pub(crate) struct Follower<'a> {
    directory: PathBuf,
    communicator: &'a dyn Communicator,
    is_finished: bool,
}

impl<'a> Follower<'a> {
    /// The folder inside a model's directory, once process 0 has opened it.
    ///
    /// # Errors
    /// [`Error::BadFile`] if this process does not see it.
    pub(crate) fn open(directory: &Path, communicator: &'a dyn Communicator) -> Result<Self> {
        let follower = Follower {
            directory: directory.into(),
            communicator,
            is_finished: communicator.first_says(false),
        };
        if !follower.is_finished && !folder_in(directory).exists() {
            return Err(follower.not_shared("it is not here"));
        }
        Ok(follower)
    }

    /// Whether this same training had already finished when it was to be resumed.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether process 0 has the next member from before the training was interrupted.
    pub(crate) fn is_member_finished(&self) -> bool {
        self.communicator.first_says(false)
    }

    /// The model, once process 0 has written it.
    ///
    /// # Errors
    /// As [`Predictor::load`].
    pub(crate) fn model(self) -> Result<Predictor> {
        self.communicator.first_says(false);
        Predictor::load(&self.directory)
    }

    fn not_shared(&self, problem: &str) -> Error {
        Error::BadFile {
            path: self.directory.clone(),
            problem: format!("{problem}: the model must go to storage that all processes see"),
        }
    }
}

impl Store for Follower<'_> {
    /// The process's part of the snapshot that process 0 has restored, if it has.
    fn resume(
        &mut self,
        _: usize,
        plan: &Plan,
        origin: &EncoderOrigin,
    ) -> Result<Option<TrainState>> {
        let n_snapshots = self.communicator.gather(vec![0u64])[0];
        if n_snapshots == 0 {
            return Ok(None);
        }
        let FoundSnapshot { path, manifest } = find_snapshots(&self.directory)
            .into_iter()
            .find(|snapshot| snapshot.manifest.generation + 1 == n_snapshots)
            .ok_or_else(|| {
                self.not_shared("the checkpoint that process 0 continues is not here")
            })?;
        read_snapshot(&path, &manifest, plan, origin, self.communicator).map(Some)
    }

    /// Sends the state to process 0 if that writes a snapshot.
    fn keep(&mut self, state: &mut TrainState, _: Boundary) -> Result<()> {
        if !self.communicator.first_says(false) {
            return Ok(());
        }
        state.gather_cluster_state(self.communicator);
        send_snapshot(state, self.communicator);
        self.communicator.agree(Ok(()))
    }

    /// Sends the part to process 0, and reads the whole if it is needed here.
    fn join(
        &mut self,
        _: usize,
        part: FinishedMember,
        plan: &Plan,
        whole: Whole,
    ) -> Result<FinishedMember> {
        send_member(&part.member, self.communicator);
        let name = String::from_utf8_lossy(&self.communicator.all_gather(&[])[0]).into_owned();
        match whole {
            Whole::OnFirst => Ok(part),
            Whole::Everywhere => read_member(&member_folder(&self.directory, &name), plan),
        }
    }
}
