//! The folder of an unfinished training: a lock, the last two snapshots of its state, and its finished members.
//!
//! Snapshots alternate between two slots: while one is written, the other stays whole. A snapshot torn by a power loss
//! is recognised by its hash, and the other is used. The folder `checkpoint` is inside the model's directory and is
//! removed when the model is complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::identity::Identity;
use super::kept_member::{self, FinishedMember};
use super::lock::Lock;
use super::save::save_locked;
use super::snapshot::Turn;
use super::together::tell_restored;
use super::{Existing, describe, files, snapshot, written_by};
use crate::communicator::{Communicator, SingleProcess, is_told};
use crate::config::Plan;
use crate::data::DataSummary;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::predict::Predictor;
use crate::train::{Array, Boundary, TrainState};

/// The folder's name inside a model's directory.
const FOLDER: &str = "checkpoint";
/// The file in it that the writer holds.
const LOCK: &str = "lock";
/// The slots' names inside the folder.
pub(super) const SLOTS: [&str; 2] = ["slot-0", "slot-1"];
/// The folder of finished members inside the folder.
pub(super) const MEMBERS: &str = "members";
/// Assumed bytes per second of the first snapshot; later ones use the measured rate.
const EXPECTED_SPEED: f64 = 200e6;

/// Where a model goes, and how its training is kept safe.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    /// The directory of the model.
    pub(crate) directory: PathBuf,
    /// Directories of other trainings, where finished members of this one may be.
    pub(crate) elsewhere: Vec<PathBuf>,
    /// What to do with a model, or an unfinished training, that is there already.
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

/// When snapshots are taken: at the ends of phases and so many seconds apart, as far as the share of time allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SnapshotPace {
    /// The least time from one to the next within a phase.
    pub(crate) interval: Duration,
    /// The share of the training time that all of them together may take.
    pub(crate) max_share: f64,
}

impl Default for SnapshotPace {
    fn default() -> Self {
        SnapshotPace {
            interval: Duration::from_secs(60),
            max_share: 0.02,
        }
    }
}

/// The folder inside a model's directory.
pub(super) fn folder_in(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// Whether a directory holds a training that can be resumed.
pub fn is_unfinished(directory: &Path) -> bool {
    let holds = |name: &&str| directory.join(FOLDER).join(name).exists();
    SLOTS.iter().chain([&MEMBERS]).any(holds)
}

/// That no process is writing into a directory.
///
/// # Errors
/// [`Error::BadFile`] naming the lock of the process that is.
pub(crate) fn check_not_in_use(directory: &Path) -> Result<()> {
    let path = directory.join(FOLDER).join(LOCK);
    if path.exists() {
        Lock::take(&path)?;
    }
    Ok(())
}

/// The right to write into a directory, which one process has at a time.
#[derive(Debug)]
pub(super) struct WriteLock {
    folder: PathBuf,
    lock: Lock,
}

impl WriteLock {
    /// Takes the right; the directory is made if need be.
    ///
    /// # Errors
    /// [`Error::BadFile`] if another process has it; [`Error::Io`].
    pub(super) fn take(directory: &Path) -> Result<Self> {
        let is_new = !directory.exists();
        let folder = directory.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| {
            if is_new {
                let _ = fs::remove_dir(directory);
            }
            Error::io(&folder, "create", error)
        })?;
        let lock = Lock::take(&folder.join(LOCK))?;
        Ok(WriteLock { folder, lock })
    }

    /// Gives it back, and removes the folder if nothing else is in it.
    pub(super) fn release(self) {
        self.lock.remove();
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A training's place on the disk, locked against others.
#[derive(Debug)]
pub(crate) struct TrainingFolder {
    destination: Destination,
    identity: Identity,
    folder: PathBuf,
    lock: WriteLock,
    generation: u64,
    /// The member that is being trained.
    member: usize,
    /// Whether [`TrainingFolder::restore`] found checkpoints of which none could be read.
    pub(crate) is_damaged: bool,
    clock: Clock,
}

/// What snapshots cost so far.
#[derive(Debug)]
struct Clock {
    begun: Instant,
    last: Instant,
    spent: Duration,
    last_cost: Option<Duration>,
}

impl TrainingFolder {
    /// Takes the directory for a training.
    ///
    /// # Errors
    /// [`Error::BadFile`] if another training has it, or if it holds what must be kept; [`Error::Io`].
    pub(crate) fn open(destination: &Destination, identity: Identity) -> Result<Self> {
        let directory = &destination.directory;
        let lock = WriteLock::take(directory)?;
        let now = Instant::now();
        let mut place = TrainingFolder {
            destination: destination.clone(),
            identity,
            folder: directory.join(FOLDER),
            lock,
            generation: 0,
            member: 0,
            is_damaged: false,
            clock: Clock {
                begun: now,
                last: now,
                spent: Duration::ZERO,
                last_cost: None,
            },
        };
        let keeps = destination.existing == Existing::Keep;
        let holds = |what: &str| Error::BadFile {
            path: directory.clone(),
            problem: format!("it holds {what}, or overwrite it"),
        };
        let is_model = directory.join(files::MANIFEST).exists();
        // A training beside a model was started to replace it, and may do so once it is resumed.
        let is_resumed = destination.start == Start::Resume && is_unfinished(directory);
        if is_resumed {
            place.destination.existing = Existing::Replace;
        }
        if is_model && keeps && !is_resumed && !place.is_finished() {
            place.leave();
            return Err(holds("a model already: choose another directory"));
        }
        if destination.start == Start::Afresh {
            if is_unfinished(directory) && keeps {
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
        if !self.is_finished() {
            return Ok(None);
        }
        Predictor::load(&self.destination.directory).map(Some)
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
        let slots = SLOTS.iter().map(|slot| self.folder.join(slot));
        let mut snapshots = slots.filter_map(|slot| snapshot::read_manifest(&slot).ok()?);
        snapshots.any(|snapshot| !self.identity.differences(&snapshot).is_empty())
    }

    /// The last whole snapshot of a member; none if its training starts at the beginning.
    ///
    /// # Errors
    /// [`Error::BadFile`] with what differs, if this is not the training that was interrupted.
    pub(crate) fn restore(
        &mut self,
        plan: &Plan,
        origin: &EncoderOrigin,
        member: usize,
        communicator: &dyn Communicator,
    ) -> Result<Option<TrainState>> {
        let state = self.restore_own(plan, origin, member, communicator)?;
        let n_snapshots = if state.is_some() { self.generation } else { 0 };
        tell_restored(n_snapshots, communicator);
        Ok(state)
    }

    fn restore_own(
        &mut self,
        plan: &Plan,
        origin: &EncoderOrigin,
        member: usize,
        communicator: &dyn Communicator,
    ) -> Result<Option<TrainState>> {
        self.member = member;
        self.is_damaged = SLOTS.iter().any(|slot| self.folder.join(slot).exists());
        let mut snapshots = Vec::new();
        for slot in SLOTS {
            let path = self.folder.join(slot);
            // A damaged manifest is as good as none: the other slot, or the beginning, leads to the same model.
            if let Ok(Some(snapshot)) = snapshot::read_manifest(&path) {
                snapshots.push((path, snapshot));
            }
        }
        snapshots.sort_by_key(|(_, snapshot)| std::cmp::Reverse(snapshot.generation));
        if let Some((_, newest)) = snapshots.first() {
            self.generation = self.generation.max(newest.generation + 1);
        }
        for (path, snapshot) in &snapshots {
            let differences = self.identity.differences(snapshot);
            if !differences.is_empty() {
                return Err(Error::BadFile {
                    path: self.folder.clone(),
                    problem: format!(
                        "the interrupted training cannot be resumed: {}; undo that, or overwrite it",
                        differences.join("; ")
                    ),
                });
            }
            if snapshot.member != member {
                self.is_damaged = false;
                continue;
            }
            if let Ok(state) = snapshot::read(path, snapshot, plan, origin, communicator) {
                self.generation = snapshot.generation + 1;
                self.is_damaged = false;
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Writes a snapshot if one is due, and returns the time it took.
    ///
    /// # Errors
    /// [`Error::Io`]; the last snapshot is unharmed.
    pub(crate) fn keep(
        &mut self,
        state: &mut TrainState,
        boundary: Boundary,
        communicator: &dyn Communicator,
    ) -> Result<Option<Duration>> {
        let is_due = self.clock.is_due(&self.destination.pace, state, boundary);
        if !is_told(communicator, is_due) {
            return Ok(None);
        }
        let begun = Instant::now();
        state.gather_cluster_state(communicator);
        let slot = self.folder.join(SLOTS[(self.generation % 2) as usize]);
        remove_folder(&slot)?;
        let turn = Turn {
            generation: self.generation,
            member: self.member,
        };
        snapshot::write(&slot, turn, &self.identity, state, communicator)?;
        files::sync_directory(&self.folder)?;
        self.generation += 1;
        self.clock.note(begun);
        Ok(self.clock.last_cost)
    }

    /// Keeps a finished member.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn keep_member(&self, member: usize, finished: &FinishedMember) -> Result<()> {
        kept_member::write(
            &self.folder.join(self.member_name(member)),
            finished,
            &SingleProcess,
        )
    }

    /// A member that this same training had finished before it was interrupted, here or elsewhere.
    ///
    /// A damaged one counts as none: it is trained again, to the same bytes.
    pub(crate) fn finished_member(&self, member: usize, plan: &Plan) -> Option<FinishedMember> {
        let name = self.member_name(member);
        let elsewhere = self.destination.elsewhere.iter();
        let mut folders = std::iter::once(self.folder.clone())
            .chain(elsewhere.map(|directory| directory.join(FOLDER)));
        folders.find_map(|folder| kept_member::read(&folder.join(&name), plan).ok())
    }

    /// Where the network of a member is that several processes trained.
    pub(super) fn network_folder(&self, member: usize) -> PathBuf {
        let mut folder = self.folder.join(self.member_name(member)).into_os_string();
        folder.push("-network");
        folder.into()
    }

    /// Where a member is in the folder of a training; the name holds everything that the member depends on.
    fn member_name(&self, member: usize) -> PathBuf {
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
        let whole = whole.join("\n");
        let hash = files::sha256(whole.as_bytes());
        Path::new(MEMBERS).join(format!("{member}-{}", &hash[..16]))
    }

    /// Counts and fingerprint of the training data.
    pub(crate) fn data(&self) -> &DataSummary {
        &self.identity.data
    }

    /// Saves the model and removes the folder.
    ///
    /// # Errors
    /// [`Error::Io`]; the snapshots stay then.
    ///
    /// If a model has appeared there that must be kept, the trained one goes beside it, and the error says where.
    pub(crate) fn finish(self, predictor: &Predictor) -> Result<()> {
        let Destination {
            directory,
            existing,
            ..
        } = self.destination.clone();
        let is_taken = existing == Existing::Keep && directory.join(files::MANIFEST).exists();
        if !is_taken {
            save_locked(predictor, &directory, existing)?;
            return self.remove();
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
    pub(crate) fn remove(self) -> Result<()> {
        self.clear()?;
        self.leave();
        Ok(())
    }

    /// Removes snapshots and finished members.
    fn clear(&self) -> Result<()> {
        for name in SLOTS.iter().chain([&MEMBERS]) {
            remove_folder(&self.folder.join(name))?;
        }
        Ok(())
    }

    /// Releases the lock, and removes the folder if nothing is in it.
    fn leave(self) {
        self.lock.release();
    }
}

impl Clock {
    fn is_due(&self, pace: &SnapshotPace, state: &mut TrainState, boundary: Boundary) -> bool {
        match boundary {
            Boundary::Stop => return true,
            Boundary::Step if self.last.elapsed() < pace.interval => return false,
            Boundary::Step | Boundary::PhaseEnd => {}
        }
        let expected = self.last_cost.unwrap_or_else(|| {
            let arrays = state.arrays();
            let n_bytes = arrays.iter().map(|named| n_bytes(&named.array));
            Duration::from_secs_f64(n_bytes.sum::<usize>() as f64 / EXPECTED_SPEED)
        });
        let allowed = self.begun.elapsed().as_secs_f64() * pace.max_share;
        (self.spent + expected).as_secs_f64() <= allowed
    }

    fn note(&mut self, begun: Instant) {
        let cost = begun.elapsed();
        self.spent += cost;
        self.last_cost = Some(cost);
        self.last = Instant::now();
    }
}

fn n_bytes(array: &Array<'_>) -> usize {
    match array {
        Array::Floats(values) => 4 * values.len(),
        Array::Counts(values) => 4 * values.len(),
        Array::Flags(values) => values.len(),
    }
}

fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(path, "remove", error))
        }
        _ => Ok(()),
    }
}
