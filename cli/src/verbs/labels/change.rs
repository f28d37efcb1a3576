//! `elias labels add`, `remove` and `merge`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use elias::data::{Part, read_label_names, read_label_renames, read_others};
use elias::{LabelRef, Predictor};

use crate::ui::console::Console;
use crate::ui::count::count;
use crate::{models, outputs, reading};

/// Add labels that are known by their names, synonyms and descriptions
///
/// Nothing is trained: the new labels are answers where a text has their words, with probabilities that were learned from
/// other labels, as if those had had no training text. Labels of the file that the model has stay as they are. A label
/// that was removed or merged comes back.
#[derive(Args)]
pub(super) struct Add {
    /// The model
    model: PathBuf,
    /// Names, synonyms and descriptions of the new labels, in a format of `elias train --labels`
    #[arg(long, value_name = "FILE")]
    labels: PathBuf,
    /// Texts with labels, old and new, that similar texts are compared with from now on
    #[arg(long)]
    data: Option<PathBuf>,
    #[command(flatten)]
    data_args: reading::DataArgs,
    #[command(flatten)]
    destination: DestinationArgs,
}

/// Remove labels: they are no answers any more
#[derive(Args)]
pub(super) struct Remove {
    /// The model
    model: PathBuf,
    /// The labels to remove
    #[arg(required_unless_present = "file")]
    labels: Vec<String>,
    /// Remove the labels of a file: a name per line
    #[arg(long, value_name = "FILE", conflicts_with = "labels")]
    file: Option<PathBuf>,
    #[command(flatten)]
    destination: DestinationArgs,
}

/// Merge labels into others, which take over their training texts and, where they are higher, their scores
#[derive(Args)]
pub(super) struct Merge {
    /// The model
    model: PathBuf,
    /// The label to merge
    #[arg(requires = "into", required_unless_present = "file")]
    old: Option<String>,
    /// The label that it is merged into
    into: Option<String>,
    /// Merge the labels of a file: old label, tab, label that it is merged into per line
    #[arg(long, value_name = "FILE", conflicts_with = "old")]
    file: Option<PathBuf>,
    #[command(flatten)]
    destination: DestinationArgs,
}

/// Where the changed model goes.
#[derive(Args)]
struct DestinationArgs {
    /// Directory to write the changed model to, instead of the place of the old one
    #[arg(short, long, value_name = "MODEL2")]
    out: Option<PathBuf>,
    /// Replace another model that is there
    #[arg(long, requires = "out")]
    overwrite: bool,
}

impl DestinationArgs {
    fn check(&self, model: &Path) -> anyhow::Result<()> {
        let out = self.out.as_deref();
        out.map_or(Ok(()), |out| outputs::check(out, true, &[model]))
    }

    /// Writes the changed model; a service that reads the old one sees the old one or the new one.
    fn save(
        &self,
        predictor: &Predictor,
        model: &Path,
        done: &str,
        console: &Console,
    ) -> anyhow::Result<()> {
        // The files are read once more, before they are replaced.
        predictor.check_files()?;
        let out = self.out.as_deref().unwrap_or(model);
        models::save(predictor, out, self.overwrite || self.out.is_none())?;
        console.info(format_args!("{done}, model written to {}", out.display()));
        Ok(())
    }
}

impl Add {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        self.destination.check(&self.model)?;
        let mut predictor = models::load(&self.model)?;
        let present = predictor.labels().names().iter().zip(0..);
        let present = present.filter(|&(_, id)| !predictor.is_retired(elias::LabelId(id)));
        let present = present.map(|(name, _)| name).collect();
        let labels = read_others(&self.labels, &present).context("while reading the labels")?;
        predictor.add_labels(&labels)?;
        if let Some(path) = &self.data {
            let options = self.data_args.options(Part::Test, Some(predictor.labels()));
            let data = reading::read(console, path, options)?;
            predictor.learn_data(&data)?;
        }
        let done = format!("added {}", count(labels.len(), "label"));
        self.destination
            .save(&predictor, &self.model, &done, console)
    }
}

impl Remove {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        self.destination.check(&self.model)?;
        let names = match &self.file {
            Some(path) => read_label_names(path)?,
            None => self.labels.clone(),
        };
        let mut predictor = models::load(&self.model)?;
        let n_removed = names.len();
        let labels: Vec<LabelRef> = names.into_iter().map(LabelRef::Name).collect();
        predictor.remove_labels(&labels)?;
        let done = format!("removed {}", count(n_removed, "label"));
        self.destination
            .save(&predictor, &self.model, &done, console)
    }
}

impl Merge {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        self.destination.check(&self.model)?;
        let merges = match (&self.file, &self.old, &self.into) {
            (Some(path), _, _) => read_label_renames(path)?,
            (None, Some(old), Some(into)) => vec![(old.clone(), into.clone())],
            _ => Vec::new(),
        };
        let mut predictor = models::load(&self.model)?;
        let merges = merges.into_iter();
        let merges: Vec<_> = merges
            .map(|(old, into)| (LabelRef::Name(old), LabelRef::Name(into)))
            .collect();
        predictor.merge_labels(&merges)?;
        let done = format!("merged {}", count(merges.len(), "label"));
        self.destination
            .save(&predictor, &self.model, &done, console)
    }
}
