//! Loading and saving models, and choosing the level that answers.

use std::fs;
use std::path::Path;

use anyhow::Context;
use elias::data::missing;
use elias::{Event, Level, Predictor};

use crate::ui::console::Misuse;
use crate::ui::count::count;

/// Loads a model.
pub(crate) fn load(path: &Path) -> anyhow::Result<Predictor> {
    check(path)?;
    Predictor::load(path).context("while loading the model")
}

/// Checks that a directory looks like a model.
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

/// Why the answers of a model have no probabilities; nothing if they have.
pub(crate) fn why_no_probabilities(predictor: &Predictor) -> Option<String> {
    if predictor.probability(0.0).is_some() {
        return None;
    }
    let skipped = predictor.history().iter().find_map(|event| match event {
        Event::CalibrationSkipped { n_points, n_needed } => Some((*n_points, *n_needed)),
        _ => None,
    });
    Some(match skipped {
        Some((n_points, n_needed)) => format!(
            "the training data is too small to calibrate the model ({} could be held out, {n_needed} are needed)",
            count(n_points, "point")
        ),
        // Only a merged model has calibrated scores without probabilities.
        None if predictor.check_level(Level::Calibrated).is_ok() => {
            "the model was merged, and probabilities of its members are not those of the whole; `elias merge --calibrate DATA` fits them".into()
        }
        None => "the model was trained without calibration".into(),
    })
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
