//! `elias card`: writes the README.md with which a model is published.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use elias::data::Part;
use elias::insight::CardOptions;
use elias::{Evaluation, Measurements};

use crate::ui::console::Console;
use crate::{measuring, models, outputs, reading};

/// Write the card of a model: its README.md for the Hugging Face hub
///
/// Data, labels, settings, intended use and hash, and with DATA its quality there. The directory of the model can be
/// uploaded with it as it is, and a copy that is downloaded loads again.
#[derive(Args)]
pub(crate) struct Card {
    /// The model
    model: PathBuf,
    /// Test data to measure the model on: a file, or a directory with a test part
    data: Option<PathBuf>,
    /// File to write [default: README.md in the model's directory]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the card if it exists
    #[arg(long)]
    overwrite: bool,
    /// Name of the model [default: that of its directory]
    #[arg(long)]
    name: Option<String>,
    /// Its licence, as the hub abbreviates it: mit, apache-2.0, cc-by-4.0
    #[arg(long, value_name = "ID")]
    license: Option<String>,
    #[command(flatten)]
    data_args: reading::DataArgs,
}

impl Card {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => self.model.join("README.md"),
        };
        outputs::check(&out, self.overwrite, &[])?;
        let predictor = models::load(&self.model)?;
        let mut measured: Option<(String, Measurements)> = None;
        if let Some(data) = &self.data {
            let options = self.data_args.options(Part::Test, Some(predictor.labels()));
            let test = reading::read(console, data, options)?;
            let figures = measuring::evaluate(&predictor, &test, Evaluation::default(), console)?;
            let name = data.file_name().unwrap_or(data.as_os_str());
            measured = Some((name.to_string_lossy().into_owned(), figures));
        }
        let card = predictor.card(
            &self.model,
            &CardOptions {
                name: self.name.as_deref(),
                license: self.license.as_deref(),
                measured: measured
                    .as_ref()
                    .map(|(name, figures)| (name.as_str(), figures)),
            },
        )?;
        predictor.check_files()?;
        fs::write(&out, card).with_context(|| format!("cannot write {}", out.display()))?;
        console.info(format_args!("card written to {}", out.display()));
        Ok(())
    }
}
