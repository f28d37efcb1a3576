//! The folder of an unfinished training: a lock, the last two snapshots of its state, and its finished members.
//!
//! Snapshots alternate between two slots: while one is written, the other stays whole. A snapshot torn by a power loss
//! is recognised by its hash, and the other is used. The folder `checkpoint` is inside the model's directory and is
//! removed when the model is complete.

use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::identity::Identity;
use super::kept_member::{self, FinishedMember};
use super::lock::WriteLock;
use super::pace::{SnapshotClock, SnapshotPace};
use super::snapshot::{self, Turn};
use super::{MemberStore, Store, Whole};
use crate::communicator::{Communicator, SingleProcess};
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, emit};
use crate::predict::Predictor;
use crate::store::format::files;
use crate::store::format::snapshot_manifest::Snapshot;
use crate::store::model::{describe, save_locked};
use crate::store::{Existing, processes, written_by};
use crate::train::{Boundary, TrainState};

/// The folder's name inside a model's directory.
const FOLDER: &str = "checkpoint";
/// The slots' names inside the folder.
const SLOTS: [&str; 2] = ["slot-0", "slot-1"];
/// The folder of finished members inside the folder.
const MEMBERS: &str = "members";

/// Where a model goes, and how its training is kept safe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    /// The directory of the model.
    pub(crate) directory: PathBuf,
    /// Directories of other trainings, where finished members of this one may be.
    pub(crate) elsewhere: Vec<PathBuf>,
    /// Treatment of a model, or an unfinished training, that is there already.
    pub(crate) existing: Existing,
    /// Where to begin.
    pub(crate) start: Start,
    /// When snapshots are taken.
    pub(crate) pace: SnapshotPace,
}

/// Where a training begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the beginning.
    #[default]
    Afresh,
    /// Where the last one in this directory was interrupted, or at the beginning if it left nothing.
    Resume,
}

/// The folder inside a model's directory.
pub(crate) fn folder_in(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// The folder of a finished member of this name inside a model's directory.
pub(crate) fn member_folder(directory: &Path, name: &str) -> PathBuf {
    folder_in(directory).join(MEMBERS).join(name)
}

/// Whether a directory holds a training that can be resumed.
pub fn is_unfinished(directory: &Path) -> bool {
    let folder = folder_in(directory);
    SLOTS
        .iter()
        .chain([&MEMBERS])
        .any(|name| folder.join(name).exists())
}

/// A snapshot that was found in a slot.
pub(crate) struct FoundSnapshot {
    /// The slot.
    pub(crate) path: PathBuf,
    /// Its manifest.
    pub(crate) manifest: Snapshot,
}

/// The snapshots in a model's directory, the newest first. A damaged manifest is as good as none: the other slot, or the
/// beginning, leads to the same model.
pub(crate) fn find_snapshots(directory: &Path) -> Vec<FoundSnapshot> {
    let mut found: Vec<FoundSnapshot> = SLOTS
        .iter()
        .filter_map(|slot| {
            let path = folder_in(directory).join(slot);
            let manifest = snapshot::read_manifest(&path).ok()??;
            Some(FoundSnapshot { path, manifest })
        })
        .collect();
    found.sort_by_key(|snapshot| Reverse(snapshot.manifest.generation));
    found
}

/// A training's place on the disk, locked against others.
pub(crate) struct TrainingFolder<'a> {
    destination: Destination,
    identity: Identity,
    observer: &'a dyn Observer,
    communicator: &'a dyn Communicator,
    folder: PathBuf,
    lock: WriteLock,
    generation: u64,
    /// The training of a member that is under way.
    run: usize,
    clock: SnapshotClock,
}

impl<'a> TrainingFolder<'a> {
    /// Takes the directory for a training.
    ///
    /// # Errors
    /// [`Error::BadFile`] if another training has it, or if it holds what must be kept; [`Error::Io`].
    pub(crate) fn open(
        destination: Destination,
        identity: Identity,
        observer: &'a dyn Observer,
        communicator: &'a dyn Communicator,
    ) -> Result<Self> {
        let lock = WriteLock::take(&destination.directory)?;
        let mut place = TrainingFolder {
            folder: folder_in(&destination.directory),
            clock: SnapshotClock::start(destination.pace),
            destination,
            identity,
            observer,
            communicator,
            lock,
            generation: 0,
            run: 0,
        };
        let Destination {
            directory,
            existing,
            start,
            ..
        } = place.destination.clone();
        let keeps = existing == Existing::Keep;
        let holds = |what: &str| Error::BadFile {
            path: directory.clone(),
            problem: format!("it holds {what}, or overwrite it"),
        };
        let is_model = directory.join(files::MANIFEST).exists();
        // A training beside a model was started to replace it, and may do so once it is resumed.
        let is_resumed = start == Start::Resume && is_unfinished(&directory);
        if is_resumed {
            place.destination.existing = Existing::Replace;
        }
        if is_model && keeps && !is_resumed && !place.is_finished() {
            place.lock.release();
            return Err(holds("a model already: choose another directory"));
        }
        if start == Start::Afresh {
            if is_unfinished(&directory) && keeps {
                return Err(holds("an unfinished training: resume it"));
            }
            place.clear()?;
        }
        Ok(place)
    }

    /// The model, if this same training had already finished when it was to be resumed.
    ///
    /// # Errors
    /// As [`Predictor::load`].
    pub(crate) fn finished(&self) -> Result<Option<Predictor>> {
        let load = || Predictor::load(&self.destination.directory);
        let finished = self.is_finished().then(load).transpose()?;
        self.communicator.first_says(finished.is_some());
        Ok(finished)
    }

    fn is_finished(&self) -> bool {
        let is_same = describe(&self.destination.directory).is_ok_and(|description| {
            description.data == self.identity.data
                && description.written_by == written_by()
                && description.plan.config() == &self.identity.config
        });
        self.destination.start == Start::Resume && is_same && !self.holds_another()
    }

    /// Whether another training than this one was interrupted here.
    fn holds_another(&self) -> bool {
        find_snapshots(&self.destination.directory)
            .iter()
            .any(|snapshot| !self.identity.differences(&snapshot.manifest).is_empty())
    }

    /// Saves the model and removes the folder.
    ///
    /// # Errors
    /// [`Error::Io`]; the snapshots stay then.
    ///
    /// If a model has appeared there that must be kept, the trained one goes beside it, and the error says where.
    pub(crate) fn finish(self, predictor: Predictor) -> Result<Predictor> {
        let Destination {
            directory,
            existing,
            ..
        } = self.destination.clone();
        let is_taken = existing == Existing::Keep && directory.join(files::MANIFEST).exists();
        if !is_taken {
            save_locked(&predictor, &directory, existing)?;
            return self.leave(predictor);
        }
        let beside = files::free_sibling(&directory);
        predictor.save(&beside)?;
        self.remove()?;
        Err(Error::BadFile {
            path: directory,
            problem: format!(
                "another model appeared here during the training; the trained model is in {}",
                beside.display()
            ),
        })
    }

    /// Removes the folder of a training whose model is complete.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn leave(self, predictor: Predictor) -> Result<Predictor> {
        let communicator = self.communicator;
        self.remove()?;
        communicator.first_says(true);
        Ok(predictor)
    }

    fn remove(self) -> Result<()> {
        self.clear()?;
        self.lock.release();
        Ok(())
    }

    /// Removes snapshots and finished members.
    fn clear(&self) -> Result<()> {
        SLOTS
            .iter()
            .chain([&MEMBERS])
            .try_for_each(|name| remove_folder(&self.folder.join(name)))
    }

    /// The last whole snapshot of a training of a member.
    ///
    /// # Errors
    /// [`Error::BadFile`] with what differs, if this is not the training that was interrupted.
    fn restore(&mut self, plan: &Plan, origin: &EncoderOrigin) -> Result<Option<TrainState>> {
        let snapshots = find_snapshots(&self.destination.directory);
        if let Some(newest) = snapshots.first() {
            self.generation = self.generation.max(newest.manifest.generation + 1);
        }
        for FoundSnapshot { path, manifest } in &snapshots {
            let differences = self.identity.differences(manifest);
            if !differences.is_empty() {
                return Err(Error::BadFile {
                    path: self.folder.clone(),
                    problem: format!(
                        "the interrupted training cannot be resumed: {}; undo that, or overwrite it",
                        differences.join("; ")
                    ),
                });
            }
            if manifest.member == self.run
                && let Ok(state) = snapshot::read(path, manifest, plan, origin, self.communicator)
            {
                self.generation = manifest.generation + 1;
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Whether there are slots, but neither a snapshot of this run that can be read nor one of another run.
    fn is_damaged(&self) -> bool {
        SLOTS.iter().any(|slot| self.folder.join(slot).exists())
            && find_snapshots(&self.destination.directory)
                .iter()
                .all(|snapshot| snapshot.manifest.member == self.run)
    }

    /// The name of a finished member; it holds everything that the member depends on.
    fn member_name(&self, run: usize) -> String {
        let Identity {
            config,
            data,
            validation,
            encoder,
        } = &self.identity;
        let (program, config) = (written_by(), config.to_toml());
        let mut whole = vec![&program[..], &config, &data.sha256];
        whole.push(validation.as_deref().unwrap_or_default());
        whole.extend(encoder.as_deref());
        let hash = files::sha256(whole.join("\n").as_bytes());
        format!("{run}-{}", &hash[..16])
    }
}

impl Store for TrainingFolder<'_> {
    fn resume(
        &mut self,
        run: usize,
        plan: &Plan,
        origin: &EncoderOrigin,
    ) -> Result<Option<TrainState>> {
        self.run = run;
        let state = self.restore(plan, origin)?;
        let n_snapshots = state.as_ref().map_or(0, |_| self.generation);
        processes::tell_restored(n_snapshots, self.communicator);
        if state.is_none() && self.is_damaged() {
            emit(self.observer, Event::CheckpointsDamaged)?;
        }
        Ok(state)
    }

    /// Writes a snapshot if one is due; if that fails, the last snapshot is unharmed.
    fn keep(&mut self, state: &mut TrainState, boundary: Boundary) -> Result<()> {
        let is_due = self.clock.is_due(state, boundary);
        if !self.communicator.first_says(is_due) {
            return Ok(());
        }
        let begun = Instant::now();
        state.gather_cluster_state(self.communicator);
        let slot = self.folder.join(SLOTS[(self.generation % 2) as usize]);
        remove_folder(&slot)?;
        let turn = Turn {
            generation: self.generation,
            member: self.run,
        };
        snapshot::write(&slot, turn, &self.identity, state, self.communicator)?;
        files::sync_directory(&self.folder)?;
        self.generation += 1;
        let seconds = self.clock.count(begun).as_secs_f64();
        let emitted = emit(self.observer, Event::Checkpoint { seconds });
        self.communicator.agree(emitted)
    }

    fn join(
        &mut self,
        run: usize,
        part: FinishedMember,
        plan: &Plan,
        _: Whole,
    ) -> Result<FinishedMember> {
        let name = format!("{}-network", self.member_name(run));
        let folder = member_folder(&self.destination.directory, &name);
        processes::join(&folder, part, plan, self.communicator)
    }
}

impl MemberStore for TrainingFolder<'_> {
    /// A member that this same training had finished before it was interrupted, here or elsewhere. A damaged one counts
    /// as none: it is trained again, to the same bytes.
    fn finished_member(&mut self, run: usize, plan: &Plan) -> Option<FinishedMember> {
        let name = self.member_name(run);
        let finished = std::iter::once(&self.destination.directory)
            .chain(&self.destination.elsewhere)
            .find_map(|directory| kept_member::read(&member_folder(directory, &name), plan).ok());
        self.communicator.first_says(finished.is_some());
        finished
    }

    fn keep_member(&mut self, run: usize, finished: &FinishedMember) -> Result<()> {
        let folder = member_folder(&self.destination.directory, &self.member_name(run));
        kept_member::write(&folder, finished, &SingleProcess)
    }
}

fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, "remove", error)),
        _ => Ok(()),
    }
}
