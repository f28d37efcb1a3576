//! Doors to models and trainings on disk: checking, merging, and places for new models.

use std::path::{Path, PathBuf};

use super::Trainer;
use super::recalibrate::{self, GivenHoldOut};
use crate::data::{Dataset, missing};
use crate::error::{Contents, Error, Result};
use crate::predict::Predictor;
use crate::store::{self, Existing, Start};

impl Predictor {
    /// Checks that a directory holds a model, by its manifest alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such directory, [`Error::NotAModel`] if it has no manifest, else as
    /// [`Predictor::load`], for the manifest.
    pub fn check_model(directory: impl AsRef<Path>) -> Result<()> {
        store::describe(directory.as_ref()).map(drop)
    }

    /// Loads a model after reading and checking every byte of it.
    ///
    /// # Errors
    /// As [`Predictor::load`].
    pub fn verify(directory: impl AsRef<Path>) -> Result<Predictor> {
        store::verify(directory.as_ref())
    }

    /// Loads the members of several models as one ensemble, after reading and checking every byte of them.
    ///
    /// Its configuration is that of the first model with the number of members. It has no probabilities until
    /// [`Predictor::calibrate`] fits them.
    ///
    /// # Errors
    /// As [`Predictor::load`]; [`Error::BadFile`] naming the model that does not fit the first one, and what differs;
    /// [`Error::InvalidModel`] for fewer than two models.
    pub fn merge(directories: &[impl AsRef<Path>]) -> Result<Predictor> {
        let directories: Vec<PathBuf> = directories
            .iter()
            .map(|directory| directory.as_ref().into())
            .collect();
        store::merge(&directories)
    }

    /// Checks that models are there and that their ensemble can be written to `out`, which is none of them.
    ///
    /// # Errors
    /// As [`Predictor::check_model`]; [`Error::BadFile`] if `out` is one of the models, or inside one.
    pub fn check_merge(directories: &[impl AsRef<Path>], out: impl AsRef<Path>) -> Result<()> {
        let out = out.as_ref();
        let parent = out.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new("."));
        let places = [out.canonicalize(), parent.canonicalize()];
        for directory in directories {
            let directory = directory.as_ref();
            let own = directory.canonicalize();
            let is_it = |place: &std::io::Result<PathBuf>| {
                let both = place.as_ref().ok().zip(own.as_ref().ok());
                both.is_some_and(|(place, own)| place == own)
            };
            if places.iter().any(is_it) {
                return Err(Error::BadFile {
                    path: out.into(),
                    problem: "it is an input and an output: choose another output".into(),
                });
            }
            Predictor::check_model(directory)?;
        }
        Ok(())
    }

    /// Fits the probabilities of its scores on points that none of its members was trained on.
    ///
    /// Labels of the data have the ids of the model's: read it with `known_labels`.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if the data is the model's training data, numbers its labels in another way, or has
    /// fewer usable points than `calibration.hold_out.min_points`; [`Error::CannotPredict`] if the model cannot answer
    /// it.
    pub fn calibrate(&mut self, data: &Dataset) -> Result<GivenHoldOut> {
        recalibrate::calibrate(self, data)
    }
}

impl Trainer<'_> {
    /// Checks that a model can be written to a directory, before anything is computed.
    ///
    /// # Errors
    /// [`Error::Taken`] if something is there that this trainer neither resumes nor overwrites,
    /// [`Error::NotFound`] if the parent of the directory is missing, [`Error::BadFile`] if another process trains there.
    pub fn check_directory(&self, directory: impl AsRef<Path>) -> Result<()> {
        let directory = directory.as_ref();
        store::check_not_in_use(directory)?;
        let keeps = self.existing == Existing::Keep && self.start != Start::Resume;
        if keeps && !is_free(directory) {
            let holds = if store::is_unfinished(directory) {
                Contents::UnfinishedTraining
            } else {
                Contents::Files
            };
            return Err(Error::Taken {
                path: directory.into(),
                holds,
            });
        }
        let parent = directory.parent().filter(|parent| *parent != Path::new(""));
        match parent {
            Some(parent) if !parent.is_dir() => {
                Err(missing(directory, std::io::ErrorKind::NotFound.into()))
            }
            _ => Ok(()),
        }
    }
}

/// Whether there is nothing, or an empty directory.
fn is_free(path: &Path) -> bool {
    match path.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !path.exists(),
    }
}
