//! The configuration from Python: defaults, preset, encoder, file, single values; later ones win.

use std::path::PathBuf;

use elias::Config;
use elias::config::EncoderKind;
use pyo3::prelude::*;

use crate::errors::Failure;

/// What a training is configured with.
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
            config.stage1.rates.encoder = default.stage1.rates.encoder;
            config.stage2.rates.encoder = default.stage2.rates.encoder;
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

/// The dotted keys of all settings, in the order of `elias config`, which shows those without a value, too.
#[pyfunction]
pub(crate) fn setting_keys() -> Vec<String> {
    let text = Config::default().to_commented_toml();
    let mut section = "";
    let mut keys = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            continue;
        }
        // `key = value`, or `# key =` where it is unset; explanations do not end in `=`.
        let unset = line
            .strip_prefix("# ")
            .and_then(|line| line.strip_suffix(" ="));
        let set = line.split_once(" = ").filter(|_| !line.starts_with('#'));
        if let Some(key) = unset.or(set.map(|(key, _)| key)) {
            keys.push(format!("{section}.{key}"));
        }
    }
    keys
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
