//! `elias labels add`, `remove` and `merge`.

use std::path::{Path, PathBuf};

use clap::Args;
use elias::data::{Part, read_label_names, read_label_renames};
use elias::{LabelRef, Predictor};

use crate::ui::console::Console;
use crate::ui::count::count;
use crate::verbs::update::unknown_labels;
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
pub(in crate::verbs) struct DestinationArgs {
    /// Directory to write the changed model to, instead of the place of the old one
    #[arg(short, long, value_name = "MODEL2")]
    out: Option<PathBuf>,
    /// Replace another model that is there
    #[arg(long, requires = "out")]
    overwrite: bool,
}

impl DestinationArgs {
    /// Changes a model where it is, while no other process writes there, or as it is written elsewhere. A service that
    /// reads it sees the old one or the new one.
    pub(in crate::verbs) fn change<T>(
        &self,
        model: &Path,
        change: impl FnOnce(Predictor) -> anyhow::Result<(Predictor, T)>,
    ) -> anyhow::Result<T> {
        let Some(out) = &self.out else {
            models::check(model)?;
            return Predictor::change_in(model, change);
        };
        outputs::check(out, true, &[model])?;
        let (changed, value) = change(models::load(model)?)?;
        // The files are read once more, before they are written elsewhere.
        changed.check_files()?;
        models::save(&changed, out, self.overwrite)?;
        Ok(value)
    }

    /// Says what was done, and where it is.
    pub(in crate::verbs) fn report(&self, model: &Path, done: &str, console: &Console) {
        let out = self.out.as_deref().unwrap_or(model);
        console.info(format_args!("{done}, model written to {}", out.display()));
    }
}

impl Add {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let n_added = self.destination.change(&self.model, |mut model| {
            let labels = unknown_labels(&model, &self.labels)?;
            model.add_labels(&labels)?;
            if let Some(path) = &self.data {
                let options = self.data_args.options(Part::Test, Some(model.labels()));
                let data = reading::read(console, path, options)?;
                model.learn_data(&data)?;
            }
            Ok((model, labels.len()))
        })?;
        let done = format!("added {}", count(n_added, "label"));
        self.destination.report(&self.model, &done, console);
        Ok(())
    }
}

impl Remove {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let names = match &self.file {
            Some(path) => read_label_names(path)?,
            None => self.labels.clone(),
        };
        let labels: Vec<LabelRef> = names.into_iter().map(LabelRef::Name).collect();
        self.destination.change(&self.model, |mut model| {
            model.remove_labels(&labels)?;
            Ok((model, ()))
        })?;
        let done = format!("removed {}", count(labels.len(), "label"));
        self.destination.report(&self.model, &done, console);
        Ok(())
    }
}

impl Merge {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let merges = match (&self.file, &self.old, &self.into) {
            (Some(path), _, _) => read_label_renames(path)?,
            (None, Some(old), Some(into)) => vec![(old.clone(), into.clone())],
            _ => Vec::new(),
        };
        let merges = merges.into_iter();
        let merges: Vec<_> = merges
            .map(|(old, into)| (LabelRef::Name(old), LabelRef::Name(into)))
            .collect();
        self.destination.change(&self.model, |mut model| {
            model.merge_labels(&merges)?;
            Ok((model, ()))
        })?;
        let done = format!("merged {}", count(merges.len(), "label"));
        self.destination.report(&self.model, &done, console);
        Ok(())
    }
}
