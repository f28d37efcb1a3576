//! Loading and saving models, and choosing the level that answers.

use std::fs;
use std::path::Path;

use anyhow::Context;
use elias::data::missing;
use elias::{Level, Predictor};

use crate::ui::console::Misuse;

/// Loads a model.
pub(crate) fn load(path: &Path) -> anyhow::Result<Predictor> {
    check(path)?;
    Predictor::load(path).context("while loading the model")
}

/// Checks that there is a model.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    let name = path.display();
    if let Err(error) = fs::metadata(path) {
        let problem = missing(path, error);
        anyhow::bail!("{problem}; train a model with `elias train DATA --out {name}`");
    }
    if !path.join("manifest.json").exists() {
        anyhow::bail!("{name} is not a model: it has no manifest.json");
    }
    Ok(())
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
