//! Models on disk: the one place of the command that knows how they are kept.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use elias::data::missing;
use elias::{Level, Predictor};

use crate::ui::console::Misuse;

/// Where the times of a training are written, beside the model and not part of it.
pub(crate) fn times_of(model: &Path) -> PathBuf {
    let mut name = model.file_name().unwrap_or_default().to_os_string();
    name.push("-times.json");
    model.with_file_name(name)
}

/// Loads a model.
pub(crate) fn load(path: &Path) -> anyhow::Result<Predictor> {
    let name = path.display();
    if let Err(error) = fs::metadata(path) {
        let problem = missing(path, error);
        anyhow::bail!("{problem}; `elias train DATA --out {name}` makes a model");
    }
    if !path.join("manifest.json").exists() {
        anyhow::bail!("{name} is not a model: it has no manifest.json");
    }
    Predictor::load(path).context("while loading the model")
}

/// Saves a model, in the place of one that is there if that was asked for.
pub(crate) fn save(predictor: &Predictor, path: &Path, overwrite: bool) -> anyhow::Result<()> {
    let saved = if overwrite {
        predictor.replace(path)
    } else {
        predictor.save(path)
    };
    saved.context("while saving the model")
}

/// The level that `--stage` names; it must be one the model has.
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
