//! `elias report`: one self-contained page with the paper's tables and figures for a model.

mod cache;
mod data;
mod figures;
mod gather;
mod maps;
mod observations;
mod page;
mod sections;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use elias::data::{self as dataset, Format, Part, ReadOptions};

use crate::ui::console::Console;
use crate::ui::svg;
use crate::{memory, models, reading};

pub(crate) use data::{Checkpoints, PhaseTime, Times};

/// Write a page with the paper's tables and figures for a model
///
/// One HTML file that needs no network: metrics of every stage, recall, edge scores, calibration, pruning, what is
/// left of stage 1, maps of training points, clusters and labels to search, training curves, the hardest points.
/// What takes long is kept in MODEL/report and not computed again. Train with --set train.keep_stage1=true to see
/// stage 1 beside the rest.
#[derive(Args)]
pub(crate) struct Report {
    /// The model
    model: PathBuf,
    /// Its data: a directory with a test part and, for words and maps, a train part; or a file of test points
    data: PathBuf,
    /// Where the page goes
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Training data, if it is not the train part of DATA
    #[arg(long, value_name = "DATA")]
    train: Option<PathBuf>,
    /// Format of the data, if not to be recognised by content
    #[arg(long, hide_short_help = true, value_parser = reading::format_parser())]
    format: Option<Format>,
    #[command(flatten)]
    columns: reading::ColumnArgs,
    /// Write every plot as an SVG file into this directory too
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Compute everything anew and keep nothing
    #[arg(long)]
    no_cache: bool,
}

impl Report {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let started = Instant::now();
        let predictor = models::load(&self.model)?;
        let read = |path: &PathBuf, part| {
            let options = ReadOptions {
                format: self.format,
                columns: self.columns.columns(),
                part,
                known_labels: Some(predictor.labels()),
                ..ReadOptions::default()
            };
            reading::read(console, path, options)
        };
        let test = read(&self.data, Part::Test)?;
        let train = match &self.train {
            Some(path) => Some(read(path, Part::Train)?),
            None if self.data.is_dir() && dataset::parts(&self.data)?.contains(&Part::Train) => {
                Some(read(&self.data, Part::Train)?)
            }
            None => {
                console
                    .say("no training data: words of clusters and maps are left out; see --train");
                None
            }
        };
        let gatherer = gather::Gatherer {
            model: &self.model,
            test: &test,
            train: train.as_ref(),
            is_cached: !self.no_cache,
            console,
        };
        let report = gatherer.gather(&predictor)?;
        let html = page::write(&report);
        let partial = self.out.with_extension("html.partial");
        fs::write(&partial, &html)
            .and_then(|()| fs::rename(&partial, &self.out))
            .with_context(|| format!("cannot write {}", self.out.display()))?;
        if let Some(folder) = &self.figures {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            for (name, svg) in figures::all(&report) {
                let path = folder.join(format!("{name}.svg"));
                fs::write(&path, svg::on_paper(&svg))
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        console.say(format_args!(
            "the report is in {} ({}, {:.1} s)",
            self.out.display(),
            memory::size(html.len()),
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }
}
