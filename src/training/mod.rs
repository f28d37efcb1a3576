//! From a data set to a predictor: prepare, hold out, train the members, calibrate, train again on all points.
//!
//! [`Trainer`] is the front door. [`PreparedTraining`] knows the plan and the memory it will take before anything is
//! trained. `run` is the training itself, `members` that of one member, `final_fit` what is fitted on held-out points.

mod by_text;
mod curriculum;
mod cut;
mod directories;
mod final_fit;
mod members;
mod memory;
mod memory_limit;
mod prepare;
mod processes;
mod recalibrate;
mod rerank;
mod run;
mod split;
mod transformer;
mod update;
mod workload;

#[cfg(test)]
mod process_tests;

pub use memory::MemoryEstimate;
pub use memory_limit::size;
pub use prepare::PreparedTraining;
pub use recalibrate::GivenHoldOut;
pub use update::Updated;
pub use workload::Workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::communicator::{Communicator, SingleProcess};
use crate::config::Config;
use crate::data::Dataset;
use crate::error::Result;
use crate::events::{Observer, Silent};
use crate::predict::Predictor;
use crate::store::{Destination, Existing, SnapshotPace, Start};

/// Trains predictors.
///
/// ```no_run
/// # fn main() -> elias::Result<()> {
/// # let (train, test) = (elias::Dataset::from_texts([("", [""])]), elias::Dataset::from_texts([("", [""])]));
/// use elias::{Config, Trainer};
///
/// let predictor = Trainer::new(Config::default())
///     .validation(&test)
///     .train_to("my-model", &train)?; // interrupted, it can be resumed
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Trainer<'a> {
    config: Config,
    validation: Option<&'a Dataset>,
    observer: &'a dyn Observer,
    existing: Existing,
    start: Start,
    pace: SnapshotPace,
    communicator: &'a dyn Communicator,
    elsewhere: Vec<PathBuf>,
}

impl<'a> Trainer<'a> {
    /// A trainer with this configuration.
    pub fn new(config: Config) -> Self {
        Trainer {
            config,
            validation: None,
            observer: &Silent,
            existing: Existing::default(),
            start: Start::default(),
            pace: SnapshotPace::default(),
            communicator: &SingleProcess,
            elsewhere: Vec::new(),
        }
    }

    /// Predicts this data every few epochs; the metrics go to the observer and into the model's history.
    pub fn validation(mut self, data: &'a Dataset) -> Self {
        self.validation = Some(data);
        self
    }

    /// Sends the events of the training to an observer, which can also stop it.
    pub fn observer(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = observer;
        self
    }

    /// Continues an interrupted training of the same directory, if there is one.
    pub fn resume(mut self) -> Self {
        self.start = Start::Resume;
        self
    }

    /// Replaces a model, or an unfinished training, that is already in the directory.
    pub fn overwrite(mut self) -> Self {
        self.existing = Existing::Replace;
        self
    }

    /// Writes a checkpoint at least this often; by default every minute, if that takes less than 2 % of the time.
    pub fn checkpoint_every(mut self, interval: Duration) -> Self {
        self.pace = SnapshotPace {
            interval,
            max_share: f64::INFINITY,
        };
        self
    }

    /// Trains together with other processes, which share the labels among them.
    ///
    /// Every process makes the same calls with the same configuration and data, and [`Trainer::train_to`] a directory that
    /// all of them see. The model is that of one process. An error of one process does not reach the others: the caller
    /// ends them.
    pub fn communicator(mut self, communicator: &'a dyn Communicator) -> Self {
        self.communicator = communicator;
        self
    }

    /// Takes finished trainings of members from these directories, where [`PreparedTraining::train_run`] left them.
    ///
    /// Those of other data or settings, and damaged ones, are not taken: those members are trained.
    pub fn take_runs_from(mut self, directories: Vec<PathBuf>) -> Self {
        self.elsewhere = directories;
        self
    }

    /// Trains on a data set.
    ///
    /// # Errors
    /// As [`Trainer::prepare`]; [`Error::Diverged`](crate::Error::Diverged);
    /// [`Error::Stopped`](crate::Error::Stopped) if the observer asks for it.
    pub fn train(&self, data: &Dataset) -> Result<Predictor> {
        self.prepare(data)?.train()
    }

    /// Trains on a data set and saves the model, with checkpoints on the way.
    ///
    /// Interrupted at any instant and resumed, it ends in the same bytes as if it had not been.
    ///
    /// # Errors
    /// As [`Trainer::train`]; [`Error::BadFile`](crate::Error::BadFile) if the directory is taken or cannot be
    /// resumed; [`Error::Io`](crate::Error::Io).
    pub fn train_to(&self, directory: impl AsRef<Path>, data: &Dataset) -> Result<Predictor> {
        self.prepare(data)?.train_to(directory)
    }

    /// Computes the features of a data set and decides the plan; trains nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) and [`Error::CannotTrain`](crate::Error::CannotTrain).
    pub fn prepare<'t>(&'t self, data: &'t Dataset) -> Result<PreparedTraining<'t>> {
        PreparedTraining::new(self, data)
    }

    fn destination(&self, directory: &Path) -> Destination {
        Destination {
            directory: directory.into(),
            elsewhere: self.elsewhere.clone(),
            existing: self.existing,
            start: self.start,
            pace: self.pace,
        }
    }
}
