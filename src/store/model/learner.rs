//! A model in a directory that goes on learning.
//!
//! Corrections are in the journal, and synced, before an answer heeds them. Several processes may learn into one
//! directory: each takes the lock for as long as it appends, after it has learned what the others appended.

use std::path::{Path, PathBuf};

use super::change::in_locked;
use super::corrections::Journal;
use super::load;
use crate::error::{Error, Result};
use crate::predict::{Correction, Predictor};
use crate::store::format::open::Depth;

/// Corrections that are learned at once.
const BATCH: usize = 4096;

/// A model in a directory, and its journal of corrections.
///
/// Invariant: the predictor has learned what the journal has up to its place.
pub struct Learner {
    directory: PathBuf,
    predictor: Predictor,
    journal: Journal,
}

impl Learner {
    /// Loads a model as [`Predictor::load`] does.
    ///
    /// # Errors
    /// As there.
    pub fn load(directory: impl AsRef<Path>) -> Result<Self> {
        let load = |directory: &Path| load::mapped(directory, Depth::Quick);
        Learner::of(directory.as_ref(), load)
    }

    /// Loads a model as [`Predictor::load_into_memory`] does.
    ///
    /// # Errors
    /// As there.
    pub fn load_into_memory(directory: impl AsRef<Path>, max_bytes: u64) -> Result<Self> {
        let load = |directory: &Path| load::in_memory(directory, max_bytes);
        Learner::of(directory.as_ref(), load)
    }

    /// Loads a model and learns what its journal has.
    ///
    /// # Errors
    /// Those of loading; [`Error::BadFile`] if the journal is damaged.
    pub(super) fn of(directory: &Path, load: impl Fn(&Path) -> Result<Predictor>) -> Result<Self> {
        loop {
            let journal = Journal::of(directory);
            let predictor = load(directory)?;
            let journal = journal?;
            // Another version came while this one was read.
            if !journal.is_of(directory)? {
                continue;
            }
            let mut learner = Learner {
                directory: directory.into(),
                predictor,
                journal,
            };
            learner.follow()?;
            return Ok(learner);
        }
    }

    /// The model as it has learned so far; a clone of it goes on answering so.
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }

    /// The model as it has learned so far.
    pub fn into_predictor(self) -> Predictor {
        self.predictor
    }

    /// Learns what other processes have appended to the journal; returns whether there was something.
    ///
    /// # Errors
    /// [`Error::BadFile`] if the journal is damaged, [`Error::Io`], and as [`Predictor::learn`].
    pub fn follow(&mut self) -> Result<bool> {
        if !self.journal.has_more() {
            return Ok(false);
        }
        let (mut predictor, mut journal) = (self.predictor.clone(), self.journal.clone());
        let corrections = journal.read_on()?;
        let mut batches = corrections.chunks(BATCH);
        batches.try_for_each(|batch| predictor.learn(batch))?;
        (self.predictor, self.journal) = (predictor, journal);
        Ok(!corrections.is_empty())
    }

    /// Learns from corrections and keeps them in the journal, on the disk when this returns: they are heeded by this
    /// predictor, and by everybody who loads the model from now on.
    ///
    /// # Errors
    /// As [`Predictor::learn`]; [`Error::InUse`] if another process is writing there or another version of the model
    /// has come; [`Error::BadFile`] if the journal is damaged or too long; [`Error::Io`]. Nothing is learned then.
    pub fn learn(&mut self, corrections: &[Correction]) -> Result<()> {
        let directory = self.directory.clone();
        in_locked(&directory, |_| self.learn_locked(corrections))
    }

    fn learn_locked(&mut self, corrections: &[Correction]) -> Result<()> {
        if !self.journal.is_of(&self.directory)? {
            return Err(Error::InUse {
                path: self.directory.clone(),
                problem: "another version of the model was written there: load it anew".into(),
            });
        }
        self.follow()?;
        let mut predictor = self.predictor.clone();
        predictor.learn(corrections)?;
        self.journal.append(corrections)?;
        self.predictor = predictor;
        Ok(())
    }
}

impl Predictor {
    /// Learns from corrections and keeps them in the journal of the model in a directory, of which this is the state.
    ///
    /// # Errors
    /// As [`Predictor::load`] and [`Learner::learn`].
    pub fn learn_in(directory: impl AsRef<Path>, corrections: &[Correction]) -> Result<Predictor> {
        let mut learner = Learner::load(directory)?;
        learner.learn(corrections)?;
        Ok(learner.predictor)
    }
}
