//! The configuration from Python: defaults, preset, encoder, file, single values; later ones win.

use std::path::PathBuf;

use elias::Config;
use elias::config::EncoderKind;
use pyo3::prelude::*;

use crate::errors::Failure;

/// The settings of a training.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    preset: Option<String>,
    encoder: Option<String>,
    file: Option<PathBuf>,
    /// `key=value`, the value as TOML writes it.
    assignments: Vec<String>,
}

impl Settings {
    /// The configuration.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let transformer = self.encoder.as_deref().filter(|name| *name != "bag");
        let mut config = match (&self.preset, transformer) {
            (Some(name), _) => Config::preset(name)?,
            // The learning rates of a transformer are much lower than those of a bag.
            (None, Some(_)) => Config::preset("transformer")?,
            (None, None) => Config::default(),
        };
        if let Some(path) = &self.file {
            config = config.with_file(path)?;
        }
        for assignment in &self.assignments {
            config = config.with_value(assignment)?;
        }
        if let Some(directory) = transformer {
            if config.encoder.kind == EncoderKind::Bag {
                return Err(Failure::value(
                    "these settings are for the bag encoder: leave out encoder",
                ));
            }
            config.encoder.pretrained = Some(directory.to_owned());
        } else if self.encoder.is_some() && config.encoder.kind == EncoderKind::Transformer {
            let default = Config::default();
            config.rates.encoder = default.rates.encoder;
            config.encoder = default.encoder;
        }
        if config.encoder.kind == EncoderKind::Transformer && config.encoder.pretrained.is_none() {
            return Err(Failure::value(
                "these settings need a transformer: give its directory as encoder",
            ));
        }
        Ok(config)
    }
}

/// The dotted keys of all settings, in the order of `elias config`.
#[pyfunction]
pub(crate) fn setting_keys() -> Vec<String> {
    Config::keys()
}

/// All settings with their explanations, as TOML.
#[pyfunction]
#[pyo3(signature = (preset=None))]
pub(crate) fn commented_config(preset: Option<&str>) -> PyResult<String> {
    let config = match preset {
        Some(name) => Config::preset(name).map_err(Failure::from)?,
        None => Config::default(),
    };
    Ok(config.to_commented_toml())
}
