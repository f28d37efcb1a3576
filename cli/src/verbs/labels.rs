//! `elias labels`: lists and renames the labels of a model, and changes which it has.

mod change;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

pub(super) use change::DestinationArgs;

use clap::{Args, Subcommand};
use elias::data::{escape_label, read_label_renames};
use elias::{LabelId, LabelRef};

use crate::ui::console::Console;
use crate::ui::count::count;
use crate::{models, outputs};

/// List, rename, add, remove or merge the labels of a model
#[derive(Args)]
pub(crate) struct Labels {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    List(List),
    Rename(Rename),
    Add(change::Add),
    Remove(change::Remove),
    Merge(change::Merge),
}

/// Print the names of all labels, one per line, in the order of their numbers
///
/// The output, or part of it, can be given to `elias predict --labels-only` and `--deny`. A line feed, a carriage return
/// and a backslash in a name are written as \n, \r and \\.
#[derive(Args)]
struct List {
    /// The model
    model: PathBuf,
    /// Print the number of training points of each label, too, after a tab; and, after another, "name only" for labels
    /// that are known by their names, synonyms and descriptions alone
    #[arg(long)]
    counts: bool,
}

/// Write a model with other names for some of its labels
///
/// A renamed label keeps its number, its answers and everything that was learned of it.
#[derive(Args)]
struct Rename {
    /// The model
    model: PathBuf,
    /// The label to rename
    #[arg(requires = "new", required_unless_present = "file")]
    old: Option<String>,
    /// Its new name
    new: Option<String>,
    /// Rename the labels of a file: old name, tab, new name per line
    #[arg(long, value_name = "FILE", conflicts_with = "old")]
    file: Option<PathBuf>,
    /// Directory to write the renamed model to
    #[arg(short, long, value_name = "MODEL2")]
    out: PathBuf,
    /// Replace an existing model
    #[arg(long)]
    overwrite: bool,
}

impl Labels {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        match &self.what {
            What::List(list) => list.run(),
            What::Rename(rename) => rename.run(console),
            What::Add(add) => add.run(console),
            What::Remove(remove) => remove.run(console),
            What::Merge(merge) => merge.run(console),
        }
    }
}

impl List {
    fn run(&self) -> anyhow::Result<()> {
        let predictor = models::load(&self.model)?;
        let mut out = BufWriter::new(io::stdout().lock());
        let names = predictor.labels().names().iter();
        let labels = names.zip(predictor.label_counts()).zip(0..);
        for ((name, n_points), id) in labels {
            if predictor.is_retired(LabelId(id)) {
                continue;
            }
            let name = escape_label(name);
            let is_trained = (id as usize) < predictor.n_trained_labels();
            if self.counts && !is_trained && *n_points == 0 {
                writeln!(out, "{name}\t{n_points}\tname only")?;
            } else if self.counts {
                writeln!(out, "{name}\t{n_points}")?;
            } else {
                writeln!(out, "{name}")?;
            }
        }
        out.flush()?;
        Ok(())
    }
}

impl Rename {
    fn run(&self, console: &Console) -> anyhow::Result<()> {
        outputs::check(&self.out, true, &[&self.model])?;
        let renames = match (&self.file, &self.old, &self.new) {
            (Some(path), _, _) => read_label_renames(path)?,
            (None, Some(old), Some(new)) => vec![(old.clone(), new.clone())],
            _ => Vec::new(),
        };
        let renames = renames.into_iter();
        let renames: Vec<_> = renames
            .map(|(old, new)| (LabelRef::Name(old), new))
            .collect();
        let mut predictor = models::load(&self.model)?;
        predictor.rename_labels(&renames)?;
        predictor.check_files()?;
        models::save(&predictor, &self.out, self.overwrite)?;
        console.info(format_args!(
            "renamed {}, model written to {}",
            count(renames.len(), "label"),
            self.out.display()
        ));
        Ok(())
    }
}
