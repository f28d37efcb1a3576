//! Loading and saving models, and choosing the level that answers.

use std::path::Path;

use anyhow::{Context, anyhow};
use elias::{Error, Level, Predictor, Uncalibrated};

use crate::ui::console::Misuse;

/// Loads a model.
pub(crate) fn load(path: &Path) -> anyhow::Result<Predictor> {
    Predictor::load(path).map_err(|error| not_loaded(error, path))
}

/// Checks that there is a model.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    Predictor::check_model(path).map_err(|error| not_loaded(error, path))
}

fn not_loaded(error: Error, path: &Path) -> anyhow::Error {
    match error {
        Error::NotFound { .. } => {
            let name = path.display();
            anyhow!("{error}; train a model with `elias train DATA --out {name}`")
        }
        Error::NotAModel { .. } => error.into(),
        error => anyhow!(error).context("while loading the model"),
    }
}

/// Why answers have no probabilities, and what to do about it; `None` if they have.
pub(crate) fn why_uncalibrated(predictor: &Predictor) -> Option<String> {
    let reason = predictor.why_uncalibrated()?;
    let remedy = match reason {
        Uncalibrated::Merged => "; `elias merge --calibrate DATA` fits them",
        _ => "",
    };
    Some(format!("{reason}{remedy}"))
}

/// Saves a model; an existing one is replaced only with `overwrite`.
pub(crate) fn save(predictor: &Predictor, path: &Path, overwrite: bool) -> anyhow::Result<()> {
    let saved = if overwrite {
        predictor.replace(path)
    } else {
        predictor.save(path)
    };
    saved.context("while saving the model")
}

/// The level named by `--stage`, which the model must have.
pub(crate) fn parse_level(predictor: &Predictor, stage: Option<&str>) -> anyhow::Result<Level> {
    let Some(name) = stage else {
        return Ok(Level::default());
    };
    let level: Level = name
        .parse()
        .map_err(|problem| Misuse(format!("--stage: {problem}")))?;
    predictor.check_level(level)?;
    Ok(level)
}
