//! The configuration from the command line: defaults, preset, file, single values; later ones win.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use elias::{Config, Error};

use crate::ui::console::Misuse;

/// Options of every verb with a configuration.
#[derive(Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct Settings {
    /// Preset to start from, such as amazon-670k
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = preset_parser())]
    pub(crate) preset: Option<String>,
    /// TOML file with settings; `elias config` prints all keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one key; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Random seed
    #[arg(long, value_name = "N", hide_short_help = true,
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
}

impl Settings {
    /// The configuration.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        self.over(Config::default())
    }

    /// The configuration, with `base` in place of the defaults.
    pub(crate) fn over(&self, base: Config) -> anyhow::Result<Config> {
        let mut config = match &self.preset {
            Some(name) => preset(name)?,
            None => base,
        };
        if let Some(path) = &self.config {
            let name = path.display();
            config = config.with_file(path).map_err(|error| match error {
                Error::Config { .. } => {
                    anyhow::Error::new(error).context(format!("while reading {name}"))
                }
                error => error.into(),
            })?;
        }
        for assignment in &self.assignments {
            config = config
                .with_value(assignment)
                .map_err(|error| Misuse(format!("--set: {error}")))?;
        }
        if let Some(seed) = self.seed {
            config.train.seed = seed;
        }
        Ok(config)
    }
}

/// The names of presets, which shells complete; an unknown one is reported later.
fn preset_parser() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(Config::preset_names())
}

/// The defaults with a preset applied on top.
pub(crate) fn preset(name: &str) -> anyhow::Result<Config> {
    Config::preset(name).map_err(|error| match error {
        Error::Config { expected, .. } => Misuse(format!(
            "unknown preset {name:?}; the presets are {expected}"
        ))
        .into(),
        error => error.into(),
    })
}
