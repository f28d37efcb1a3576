//! Models on disk: the one place of the command that knows how they are kept.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use elias::checkpoint::{self, DataSummary, SaveInfo};
use elias::data::{Dataset, missing};
use elias::predict::{Predictor, Stage};
use elias::train::Event;

pub(crate) use elias::checkpoint::Existing;

use crate::ui::console::Misuse;

/// Writes a model with what it was trained on and what training told.
pub(crate) fn save(
    predictor: &Predictor,
    path: &Path,
    (data, history, existing): (&Dataset, Vec<Event>, Existing),
) -> anyhow::Result<()> {
    let info = SaveInfo {
        history,
        data: DataSummary::of(data),
        existing,
    };
    checkpoint::save(predictor, path, &info).context("while saving the model")
}

/// Where the times of a training are written, beside the model and no part of it.
pub(crate) fn times_of(model: &Path) -> PathBuf {
    let mut name = model.file_name().unwrap_or_default().to_os_string();
    name.push("-times.json");
    model.with_file_name(name)
}

/// Reads a model.
pub(crate) fn load(path: &Path) -> anyhow::Result<Predictor> {
    let name = path.display();
    if let Err(error) = fs::metadata(path) {
        let problem = missing(path, error);
        anyhow::bail!("{problem}; `elias train DATA --out {name}` makes a model");
    }
    if !path.join("manifest.json").exists() {
        anyhow::bail!("{name} is not a model: it has no manifest.json");
    }
    checkpoint::load(path).context("while loading the model")
}

/// Reads a model that shall answer as a part of it would, where one is named.
pub(crate) fn load_stage(path: &Path, stage: Option<&str>) -> anyhow::Result<Predictor> {
    let stage = match stage {
        None => Stage::default(),
        Some(name) => {
            let parsed = name.parse();
            parsed.map_err(|problem| Misuse(format!("--stage: {problem}")))?
        }
    };
    Ok(load(path)?.at_stage(stage)?)
}
