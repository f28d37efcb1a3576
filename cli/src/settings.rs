//! The configuration as the command line gives it: defaults, a preset, a file, single values, in this order.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use elias::config::Config;
use elias::data::missing;

use crate::presets;
use crate::ui::console::Misuse;

/// Options that every verb with a configuration has.
#[derive(Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct Settings {
    /// Start from the settings of one of the paper's data sets
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Settings in TOML; `elias config` prints them all
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one key; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", hide_short_help = true,
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
}

impl Settings {
    /// The configuration asked for.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        self.over(Config::default())
    }

    /// The configuration asked for, where `base` takes the place of the defaults.
    pub(crate) fn over(&self, base: Config) -> anyhow::Result<Config> {
        let mut config = match &self.preset {
            Some(name) => presets::config(name)?,
            None => base,
        };
        if let Some(path) = &self.config {
            let name = path.display();
            let text = fs::read_to_string(path).map_err(|error| missing(path, error))?;
            config = config
                .with_toml(&text)
                .with_context(|| format!("while reading {name}"))?;
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
