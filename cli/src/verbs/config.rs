//! `elias config`: prints all settings with their meaning.

use std::io::{self, Write};

use clap::Args;

use crate::settings::Settings;

/// Print a complete configuration with comments
///
/// The output is TOML for `elias train --config FILE`: the defaults with --preset, --config and --set applied.
/// Keys that are commented out follow from the recipe or from the data.
#[derive(Args)]
pub(crate) struct ShowConfig {
    #[command(flatten)]
    settings: Settings,
}

impl ShowConfig {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let text = self.settings.config()?.to_commented_toml();
        io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
