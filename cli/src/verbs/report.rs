//! `elias report`: writes the paper's tables and figures for a model as one self-contained page.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use elias::data::Part;
use elias::insight::{Figure, ReportCache, ReportOptions};
use elias::internals::size;

use crate::ui::console::Console;
use crate::ui::progress::{Progress, Unit};
use crate::{models, outputs, reading};

/// Write a report on a model: the paper's tables and figures
///
/// One HTML file that needs no network: metrics of every stage, recall, edge scores, calibration, pruning, what
/// remains of stage 1, maps of training points, searchable clusters and labels, training curves, the hardest points.
/// Slow results are cached in MODEL/report. --fixed names a model of the same data that was trained with
/// --set index.mode=fixed: what the learned index brings is then measured at equal budgets.
#[derive(Args)]
pub(crate) struct Report {
    /// The model
    model: PathBuf,
    /// Data: a directory with a test part (and a train part, for words and maps), or a file with test points
    data: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Replace the page if it exists
    #[arg(long)]
    overwrite: bool,
    /// Model of the same data with fixed clusters, to compare with
    #[arg(long, value_name = "MODEL2")]
    fixed: Option<PathBuf>,
    /// Training data, if it is not the train part of DATA
    #[arg(long, value_name = "DATA")]
    train: Option<PathBuf>,
    #[command(flatten)]
    data_args: reading::DataArgs,
    /// Also write every plot to this directory, as SVG
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Recompute everything and cache nothing
    #[arg(long)]
    no_cache: bool,
}

impl Report {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        outputs::check(&self.out, self.overwrite, &[&self.data])?;
        outputs::check_outside(&self.out, &self.model)?;
        let started = Instant::now();
        let predictor = models::load(&self.model)?;
        let read = |path: &Path, part| {
            let options = self.data_args.options_of(part, &predictor);
            reading::read(console, path, options)
        };
        let test = read(&self.data, Part::Test)?;
        let train = match reading::find_train(self.train.as_deref(), &self.data)? {
            Some(path) => Some(read(path, Part::Train)?),
            None => {
                console.info("no training data, so no words and no maps; give it with --train");
                None
            }
        };
        let progress = Steps::new(console);
        let options = ReportOptions {
            test: &test,
            train: train.as_ref(),
            fixed: self.fixed.as_deref(),
            cache: if self.no_cache {
                ReportCache::Off
            } else {
                ReportCache::Kept
            },
            on_progress: Some(&|step, done, total| progress.set(step, done, total)),
        };
        let report = predictor.report(&self.model, &options)?;
        drop(progress);
        let n_bytes = report.write(&self.out)?;
        if let Some(directory) = &self.figures {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            for Figure { name, svg } in report.figures() {
                let path = directory.join(format!("{name}.svg"));
                fs::write(&path, svg)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        console.info(format_args!(
            "report written to {} ({}, {:.1} s)",
            self.out.display(),
            size(n_bytes),
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }
}

/// A progress bar for one step after the other.
struct Steps<'a> {
    console: &'a Console,
    current: Mutex<Option<(String, Progress)>>,
}

impl<'a> Steps<'a> {
    fn new(console: &'a Console) -> Self {
        Steps {
            console,
            current: Mutex::new(None),
        }
    }

    fn set(&self, step: &str, done: u64, total: u64) {
        let current = self.current.lock();
        let mut current = current.unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|(name, _)| name != step) {
            // The bar of the step before ends first.
            *current = None;
            let bar = Progress::start(self.console, step, Unit::Items);
            *current = Some((step.to_owned(), bar));
        }
        if let Some((_, bar)) = &*current {
            bar.set(done, total);
        }
    }
}
