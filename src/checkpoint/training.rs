//! The folder of a training that has not finished: a lock and the last two snapshots of its state.
//!
//! Snapshots go by turns into two slots. While one is being written the other, which is whole, stays; a snapshot
//! that a power loss tore is known by its hash, and the other is used. The folder `checkpoint` stands inside of the
//! model's directory and goes when the model stands.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::lock::Lock;
use super::v1_training::Snapshot;
use super::{
    DataSummary, Existing, SaveInfo, describe, files, load, save, snapshot, verify, written_by,
};
use crate::config::{Config, Plan};
use crate::data::Dataset;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result, shortened};
use crate::events::Event;
use crate::predict::{Member, Predictor};
use crate::train::{Array, Boundary, TrainState};

/// The folder's name inside of a model's directory.
const FOLDER: &str = "checkpoint";
/// The slots' names inside of the folder.
const SLOTS: [&str; 2] = ["slot-0", "slot-1"];
/// The folder of finished members inside of the folder.
const MEMBERS: &str = "members";
/// Bytes a second that the first snapshot is expected to be written with; later ones know better.
const EXPECTED_SPEED: f64 = 200e6;
/// Settings that are named when a training cannot be resumed.
const MAX_TOLD: usize = 6;

/// Where a trained model goes, and how its training is kept from being lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// The directory of the model.
    pub directory: PathBuf,
    /// What to do with a model, or an unfinished training, that is there already.
    pub existing: Existing,
    /// Where to begin.
    pub start: Start,
    /// When snapshots are taken.
    pub pace: SnapshotPace,
}

/// Where a training begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the beginning.
    #[default]
    Afresh,
    /// Where the last one in this directory was interrupted, or at the beginning if it left nothing.
    Resume,
}

/// When snapshots are taken: at the ends of phases and so many seconds apart, as far as the share of time allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotPace {
    /// The least time from one to the next within a phase.
    pub interval: Duration,
    /// The share of the training time that all of them together may take.
    pub max_share: f64,
}

impl Default for SnapshotPace {
    fn default() -> Self {
        SnapshotPace {
            interval: Duration::from_secs(60),
            max_share: 0.02,
        }
    }
}

impl Destination {
    /// A directory in which nothing is replaced.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Destination {
            directory: directory.into(),
            existing: Existing::default(),
            start: Start::default(),
            pace: SnapshotPace::default(),
        }
    }
}

/// What must not change between the begin and the end of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The configuration.
    pub config: Config,
    /// The data.
    pub data: DataSummary,
    /// SHA-256 of the data that is watched.
    pub watched: Option<String>,
    /// SHA-256 of the pretrained encoder.
    pub encoder: Option<String>,
}

impl Identity {
    /// What a training is known by.
    pub fn new(config: &Config, data: &Dataset, watched: Option<&Dataset>) -> Self {
        Identity {
            config: config.clone(),
            data: DataSummary::of(data),
            watched: watched.map(|data| DataSummary::of(data).sha256),
            encoder: None,
        }
    }

    /// The same, with the hash of a pretrained encoder.
    pub fn with_encoder(self, encoder: Option<String>) -> Self {
        Identity { encoder, ..self }
    }

    /// What differs from a snapshot, in words.
    fn differences(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut differences = Vec::new();
        let program = written_by();
        if snapshot.written_by != program {
            let before = shortened(&snapshot.written_by);
            differences.push(format!("the program was {before:?} and is {program:?}"));
        }
        if snapshot.data != self.data.sha256 {
            differences.push("the data is another".into());
        }
        if snapshot.watched != self.watched {
            differences.push("the data for validation is another".into());
        }
        if snapshot.encoder != self.encoder {
            differences.push("the pretrained encoder is another".into());
        }
        let settings = snapshot.config.differences(&self.config);
        let n_left = settings.len().saturating_sub(MAX_TOLD);
        differences.extend(settings.iter().take(MAX_TOLD).map(|told| shortened(told)));
        if 0 < n_left {
            differences.push(format!("{n_left} more settings differ"));
        }
        differences
    }
}

/// Whether a directory holds a training that can be resumed.
pub fn is_unfinished(directory: &Path) -> bool {
    let holds = |name: &&str| directory.join(FOLDER).join(name).exists();
    SLOTS.iter().chain([&MEMBERS]).any(holds)
}

/// A training's place on the disk, locked against others.
#[derive(Debug)]
pub struct TrainingFolder {
    destination: Destination,
    identity: Identity,
    folder: PathBuf,
    lock: Lock,
    generation: u64,
    /// The member that is being trained.
    member: usize,
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
    pub fn open(destination: &Destination, identity: Identity) -> Result<Self> {
        let directory = &destination.directory;
        let folder = directory.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, "create", error))?;
        let lock = Lock::take(&folder.join("lock"))?;
        let now = Instant::now();
        let place = TrainingFolder {
            destination: destination.clone(),
            identity,
            folder,
            lock,
            generation: 0,
            member: 0,
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
            problem: format!("it holds {what}, or ask to replace it"),
        };
        let is_model = directory.join(files::MANIFEST).exists();
        if is_model && keeps && !place.is_finished() {
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

    /// The model, if this very training had finished already when it was to be resumed.
    ///
    /// # Errors
    /// As [`load`].
    pub fn finished(&self) -> Result<Option<Predictor>> {
        match self.is_finished() {
            true => load(&self.destination.directory).map(Some),
            false => Ok(None),
        }
    }

    fn is_finished(&self) -> bool {
        let is_same = describe(&self.destination.directory).is_ok_and(|description| {
            description.data == self.identity.data
                && description.written_by == written_by()
                && description.plan.config() == &self.identity.config
        });
        self.destination.start == Start::Resume && is_same
    }

    /// The last whole snapshot of a member; none if its training starts at the beginning.
    ///
    /// # Errors
    /// [`Error::BadFile`] with what differs, if this is not the training that was interrupted.
    pub fn restore(
        &mut self,
        (plan, origin): (&Plan, &EncoderOrigin),
        member: usize,
    ) -> Result<Option<TrainState>> {
        self.member = member;
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
                        "the interrupted training cannot be resumed: {}; undo that, or start afresh",
                        differences.join("; ")
                    ),
                });
            }
            if snapshot.member != member {
                continue;
            }
            if let Ok(state) = snapshot::read(path, snapshot, (plan, origin)) {
                self.generation = snapshot.generation + 1;
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Writes a snapshot if one is due; what it took.
    ///
    /// # Errors
    /// [`Error::Io`]; the last snapshot is unharmed.
    pub fn keep(&mut self, state: &mut TrainState, boundary: Boundary) -> Result<Option<Duration>> {
        if !self.clock.is_due(&self.destination.pace, state, boundary) {
            return Ok(None);
        }
        let begun = Instant::now();
        let slot = self.folder.join(SLOTS[(self.generation % 2) as usize]);
        remove_folder(&slot)?;
        let turn = (self.generation, self.member);
        snapshot::write(&slot, turn, &self.identity, state)?;
        files::sync_directory(&self.folder)?;
        self.generation += 1;
        self.clock.note(begun);
        Ok(self.clock.last_cost)
    }

    /// Keeps a member of an ensemble that has been trained, as a model of its own.
    ///
    /// # Errors
    /// As [`save`].
    pub fn keep_member(
        &self,
        member: usize,
        predictor: &Predictor,
        history: Vec<Event>,
    ) -> Result<()> {
        let info = SaveInfo {
            history,
            data: self.identity.data.clone(),
            existing: Existing::Replace,
        };
        save(predictor, &self.member_folder(member), &info)
    }

    /// A member that this very training had finished before it was interrupted, and what its training told.
    ///
    /// One that is damaged is as good as none: it is trained again, to the same bytes.
    pub fn finished_member(&self, member: usize) -> Option<(Member, Vec<Event>)> {
        let folder = self.member_folder(member);
        let description = describe(&folder).ok()?;
        let member = verify(&folder).ok()?.into_parts().members.pop()?;
        Some((member, description.history))
    }

    /// Its name holds all that a member depends on.
    fn member_folder(&self, member: usize) -> PathBuf {
        let Identity {
            config,
            data,
            watched,
            encoder,
        } = &self.identity;
        let (program, config) = (written_by(), config.to_toml());
        let mut whole = vec![&program[..], &config, &data.sha256];
        whole.push(watched.as_deref().unwrap_or_default());
        whole.extend(encoder.as_deref());
        let whole = whole.join("\n");
        let hash = files::sha256(whole.as_bytes());
        self.folder
            .join(MEMBERS)
            .join(format!("{member}-{}", &hash[..16]))
    }

    /// Saves the model and removes the folder.
    ///
    /// # Errors
    /// As [`save`]; the snapshots stay then.
    pub fn finish(self, predictor: &Predictor, history: Vec<Event>) -> Result<()> {
        let info = SaveInfo {
            history,
            data: self.identity.data.clone(),
            existing: self.destination.existing,
        };
        save(predictor, &self.destination.directory, &info)?;
        self.remove()
    }

    /// Removes the folder of a training whose model stands.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(self) -> Result<()> {
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

    /// Lets go of the lock, and of the folder if nothing is in it.
    fn leave(self) {
        self.lock.remove();
        let _ = fs::remove_dir(&self.folder);
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
            let n_bytes = arrays.iter().map(|(_, array)| n_bytes(array));
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
