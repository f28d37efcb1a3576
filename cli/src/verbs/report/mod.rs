//! `elias report`: writes the paper's tables and figures for a model as one self-contained page.

mod cache;
mod data;
mod figures;
mod gather;
mod maps;
mod observations;
mod page;
mod sections;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use elias::Dataset;
use elias::data::{Part, Sink};

use self::data::ReportData;
use crate::ui::console::{Console, Verbosity};
use crate::ui::svg;
use crate::{memory, models, outputs, reading};

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

/// Writes the report on a model to a file, without messages.
pub(crate) fn write(
    model: &Path,
    test: &Dataset,
    train: Option<&Dataset>,
    out: &Path,
) -> anyhow::Result<()> {
    let gatherer = gather::Gatherer {
        model,
        fixed: None,
        test,
        train,
        is_cached: true,
        console: &Console::new(Verbosity::Quiet),
    };
    write_page(&gatherer.gather(&models::load(model)?)?, out)?;
    Ok(())
}

/// Writes the page and returns its size in bytes.
fn write_page(report: &ReportData, out: &Path) -> anyhow::Result<usize> {
    let html = page::write(report);
    let mut sink = Sink::create(out)?;
    sink.write_all(html.as_bytes())
        .with_context(|| format!("cannot write {}", out.display()))?;
    sink.finish()?;
    Ok(html.len())
}

impl Report {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        outputs::check(&self.out, self.overwrite, &[&self.data])?;
        outputs::check_outside(&self.out, &self.model)?;
        let started = Instant::now();
        let predictor = models::load(&self.model)?;
        let read = |path: &Path, part| {
            let options = self.data_args.options(part, Some(predictor.labels()));
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
        let gatherer = gather::Gatherer {
            model: &self.model,
            fixed: self.fixed.as_deref(),
            test: &test,
            train: train.as_ref(),
            is_cached: !self.no_cache,
            console,
        };
        let report = gatherer.gather(&predictor)?;
        let n_bytes = write_page(&report, &self.out)?;
        if let Some(directory) = &self.figures {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            for figures::NamedPlot { name, svg } in figures::all(&report) {
                let path = directory.join(format!("{name}.svg"));
                fs::write(&path, svg::standalone(&svg))
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        console.info(format_args!(
            "report written to {} ({}, {:.1} s)",
            self.out.display(),
            memory::size(n_bytes),
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }
}
