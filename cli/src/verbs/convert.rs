//! `elias convert`: writes a data set in another format.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use elias::TfIdf;
use elias::data::{ConversionLoss, Dataset, Format, Part};

use crate::outputs;
use crate::reading;
use crate::ui::console::Console;

/// Convert a data set to another format
///
/// SOURCE is a file or a directory; all parts of a directory are converted.
/// PATH is a file (compressed if it ends in .gz or .zst) for one part in a single-file format, else a directory.
/// Anything that the format cannot represent is reported on stderr. Formats with sparse features get tf-idf if SOURCE has only
/// texts.
#[derive(Args)]
pub(crate) struct Convert {
    /// Data set: a file, or a directory with a train or test part
    source: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = reading::format_parser(), hide_possible_values = true)]
    #[arg(long_help = format!("Format to write: {}", reading::format_names()))]
    to: Format,
    /// File or directory to write
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    data_args: reading::DataArgs,
    /// Cut at most N points, and never more than a tenth, from the training part and write them as test part
    ///
    /// To choose settings without looking at test data. Near duplicates of these points are in neither part.
    #[arg(long, value_name = "N")]
    cut_validation: Option<usize>,
    /// Overwrite PATH if it exists
    #[arg(long)]
    overwrite: bool,
}

/// A validation part is the same whoever cuts it; other than the points a training holds out with its default seed.
const CUT_SEED: u64 = 1;

/// A part of the data set.
struct PartData {
    part: Part,
    dataset: Dataset,
}

impl Convert {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        self.check_target()?;
        let mut parts = match self.cut_validation {
            Some(n_points) => self.cut_validation(n_points, console)?,
            None => self.read_parts(console)?,
        };
        if needs_vectors(self.to, &parts) {
            console.info("computing tf-idf features from the texts");
            vectorize(&mut parts).context("while computing features")?;
        }
        self.write_parts(&parts, console)
    }

    fn check_target(&self) -> anyhow::Result<()> {
        let is_taken = match fs::read_dir(&self.out) {
            Ok(mut entries) => entries.next().is_some(),
            Err(_) => self.out.exists(),
        };
        if is_taken {
            outputs::check(&self.out, true, &[&self.source])?;
        }
        if is_taken && !self.overwrite {
            bail!(
                "{} exists already: choose another path, or add --overwrite",
                self.out.display()
            );
        }
        Ok(())
    }

    /// The parts of the source; a stream is read once, as training data.
    fn parts(&self) -> anyhow::Result<Vec<Part>> {
        let is_stream =
            self.source == Path::new("-") || !(self.source.is_file() || self.source.is_dir());
        if is_stream && (self.source.exists() || self.source == Path::new("-")) {
            return Ok(vec![Part::Train]);
        }
        Ok(Part::find(&self.source)?)
    }

    /// The training part, in two.
    fn cut_validation(&self, n_points: usize, console: &Console) -> anyhow::Result<Vec<PartData>> {
        let options = self.data_args.options(Part::Train, None);
        let dataset = reading::read(console, &self.source, options)?;
        let cut = dataset.cut_validation(n_points, CUT_SEED)?;
        let parts = [Part::Train, Part::Test].into_iter().zip(cut);
        Ok(parts
            .map(|(part, dataset)| PartData { part, dataset })
            .collect())
    }

    /// All parts, with the same label ids: labels of the first part, then labels only the second has.
    fn read_parts(&self, console: &Console) -> anyhow::Result<Vec<PartData>> {
        let mut read: Vec<PartData> = Vec::new();
        for part in self.parts()? {
            let known_labels = read.first().map(|first| first.dataset.label_set());
            let options = self.data_args.options(part, known_labels);
            let dataset = reading::read(console, &self.source, options)?;
            read.push(PartData { part, dataset });
        }
        let Some(label_set) = read.last().map(|last| last.dataset.label_set().clone()) else {
            return Ok(read);
        };
        let widened = read.into_iter().map(|PartData { part, dataset }| {
            let dataset = dataset.with_label_set(label_set.clone())?;
            Ok(PartData { part, dataset })
        });
        widened.collect()
    }

    fn write_parts(&self, parts: &[PartData], console: &Console) -> anyhow::Result<()> {
        if parts.len() > 1 || ends_with_separator(&self.out) {
            fs::create_dir_all(&self.out)
                .with_context(|| format!("while creating {}", self.out.display()))?;
        }
        for PartData { part, dataset } in parts {
            let written = dataset
                .write(self.to, &self.out, *part)
                .with_context(|| format!("while writing the {part} data as {}", self.to))?;
            for file in &written.files {
                console.info(format_args!("wrote {}", file.display()));
            }
            // A label that one part lacks is not lost if another part has it.
            let is_lost = |loss: &&ConversionLoss| {
                !matches!(loss, ConversionLoss::UnusedLabels(_)) || parts.len() == 1
            };
            for loss in written.losses.iter().filter(is_lost) {
                console.info(format_args!("warning: {part} as {}: {loss}", self.to));
            }
        }
        Ok(())
    }
}

fn ends_with_separator(path: &Path) -> bool {
    path.to_string_lossy()
        .ends_with(['/', std::path::MAIN_SEPARATOR])
}

fn needs_vectors(format: Format, parts: &[PartData]) -> bool {
    let has_features = format.needs_features() || format == Format::Pecos;
    let lacks_features = parts.iter().any(|part| part.dataset.features().is_none());
    has_features && lacks_features
}

/// Fits tf-idf on the first part and adds features to every part.
fn vectorize(parts: &mut [PartData]) -> anyhow::Result<()> {
    let mut words: Option<TfIdf> = None;
    for PartData { part, dataset } in parts {
        let texts = dataset
            .texts()
            .with_context(|| format!("the {part} data has no texts, unlike the other part"))?;
        let features = match &words {
            Some(words) => words.transform(texts),
            None => {
                let (fitted, features) = TfIdf::fit_transform(texts)?;
                words = Some(fitted);
                features
            }
        };
        *dataset = dataset.clone().with_features(features)?;
    }
    Ok(())
}
