//! `elias bench sweep`: trains and measures a grid of settings, and continues where it was stopped.
//!
//! Each cell is trained in its own directory, resumed if it was interrupted, measured, written as one line to
//! `results.jsonl`, and removed. Cells that already have a line are not trained again. The table and the plot show all
//! cells of the grid.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use elias::data::{Part, ReadOptions};
use elias::internals::svg::{Axis, Marks, Plot, Point, standalone};
use elias::{Config, Evaluation, Level, Trainer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::bundled;
use crate::measuring;
use crate::reading::{self, Split};
use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::ui::interrupt::{Interrupt, unless_stopped};
use crate::ui::table::Table;
use crate::ui::training::TrainingProgress;

/// Metrics of a cell.
const METRICS: [&str; 6] = ["p@1", "p@3", "p@5", "r@10", "r@20", "r@100"];

/// Train and measure a grid of settings
///
/// Every --set KEY=V1,V2,... is one axis of the grid; a single value applies to all cells. Table 6 of the paper is
/// --set train.lambda=0,0.01,0.05,0.1,0.5 with --set index.kappa=100,200,500. After an interruption the same command
/// continues. Results are written to DIR/results.jsonl, a plot to DIR/sweep.svg.
#[derive(Args)]
pub(super) struct BenchSweep {
    /// Directory with train and test data [default: the bundled set]
    data: Option<PathBuf>,
    /// Axis of the grid; can be repeated
    #[arg(long = "set", value_name = "KEY=V1,V2,...", required = true)]
    axes: Vec<String>,
    /// Directory to write results to
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Part of the models to measure: stage2, networks, ranker, calibrated or ensemble
    #[arg(long, value_name = "NAME", default_value = "ensemble")]
    stage: Level,
    /// Keep the models in DIR
    #[arg(long)]
    keep_models: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One cell of the grid, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cell {
    /// `key=value` of every key that was set, in the order of the command.
    settings: Vec<String>,
    stage: String,
    metrics: [f64; METRICS.len()],
    seconds: f64,
}

impl BenchSweep {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let axes = self
            .axes
            .iter()
            .map(|axis| parse_axis(axis))
            .collect::<Result<Vec<_>, _>>()?;
        let grid = grid(&axes);
        // Unknown settings are reported before anything is trained.
        let configs = grid
            .iter()
            .map(|settings| config(settings))
            .collect::<anyhow::Result<Vec<_>>>()?;
        fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot create {}", self.out.display()))?;
        let mut cells = self.read_results()?;
        let to_train = grid
            .iter()
            .filter(|settings| self.find(&cells, settings).is_none());
        let n_to_train = to_train.count();
        let n_cells = count(grid.len(), "cell");
        console.info(format_args!("{n_cells}, {n_to_train} to train"));
        if n_to_train > 0 {
            let data = self.read_data(console)?;
            let interrupt = Interrupt::listen(console)?;
            for (settings, config) in grid.iter().zip(configs) {
                if self.find(&cells, settings).is_some() {
                    continue;
                }
                console.info(format_args!("cell {}", settings.join(" ")));
                let progress = TrainingProgress::new(console, &config, interrupt.clone());
                let cell = self.measure(settings, config, &data, &progress, console)?;
                self.append(&cell)?;
                cells.push(cell);
            }
        }
        let cells: Vec<&Cell> = grid
            .iter()
            .filter_map(|settings| self.find(&cells, settings))
            .collect();
        let svg = plot(&axes, &cells);
        fs::write(self.out.join("sweep.svg"), standalone(&svg))
            .context("while writing sweep.svg")?;
        self.print(&axes, &cells)
    }

    /// The latest result for these settings.
    fn find<'a>(&self, cells: &'a [Cell], settings: &[String]) -> Option<&'a Cell> {
        cells
            .iter()
            .rfind(|cell| cell.settings == settings && cell.stage == self.stage.name())
    }

    fn read_data(&self, console: &Console) -> anyhow::Result<Split> {
        let Some(path) = &self.data else {
            return bundled::read();
        };
        let options = ReadOptions {
            part: Part::Train,
            ..ReadOptions::default()
        };
        let train = reading::read(console, path, options)?;
        let options = ReadOptions {
            part: Part::Test,
            known_labels: Some(train.label_set()),
            ..options
        };
        let test = reading::read(console, path, options)?;
        Ok(Split { train, test })
    }

    fn measure(
        &self,
        settings: &[String],
        config: Config,
        data: &Split,
        progress: &TrainingProgress,
        console: &Console,
    ) -> anyhow::Result<Cell> {
        let directory = self.out.join(directory_name(settings));
        let started = Instant::now();
        let trainer = Trainer::new(config).observer(progress).resume();
        let trained = trainer.prepare(&data.train).and_then(|prepared| {
            progress.expect(&prepared);
            prepared.train_to(&directory)
        });
        progress.finish();
        let predictor = unless_stopped(trained, "stopped; the same command continues")?;
        let seconds = started.elapsed().as_secs_f64();
        let evaluation = Evaluation {
            level: self.stage,
            ..Evaluation::default()
        };
        let measured = measuring::evaluate(&predictor, &data.test, evaluation, console)?;
        let named: HashMap<String, f64> = measured.metrics.iter().collect();
        if !self.keep_models {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        Ok(Cell {
            settings: settings.to_vec(),
            stage: self.stage.name().to_owned(),
            metrics: METRICS.map(|name| named[name]),
            seconds,
        })
    }

    fn results(&self) -> PathBuf {
        self.out.join("results.jsonl")
    }

    /// Cells of earlier runs; a truncated line is ignored.
    fn read_results(&self) -> anyhow::Result<Vec<Cell>> {
        let text = match fs::read_to_string(self.results()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.with_context(|| format!("cannot read {}", self.results().display()))?,
        };
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    fn append(&self, cell: &Cell) -> anyhow::Result<()> {
        let path = self.results();
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        // A line feed first, in case the last line was truncated.
        let written = file.and_then(|mut file| {
            file.write_all(format!("\n{}\n", serde_json::to_string(cell)?).as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn print(&self, axes: &[GridAxis], cells: &[&Cell]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let rows = cells.iter().map(|cell| {
                let metrics = METRICS.iter().zip(cell.metrics);
                let metrics: serde_json::Map<_, _> = metrics.map(|(name, value)| (name.to_string(), json!(value))).collect();
                json!({"settings": cell.settings, "stage": cell.stage, "metrics": metrics, "seconds": cell.seconds})
            });
            serde_json::to_writer_pretty(&mut out, &rows.collect::<Vec<_>>())?;
            writeln!(out)?;
        } else {
            let heading = varying_keys(axes);
            let names = METRICS.map(str::to_uppercase);
            let mut table = Table::new(
                [heading]
                    .into_iter()
                    .chain(names)
                    .chain(["seconds".to_string()]),
            );
            for cell in cells {
                let values = cell.metrics.map(|value| format!("{value:.2}"));
                let name = varying_values(axes, &cell.settings);
                table.row(
                    [name]
                        .into_iter()
                        .chain(values)
                        .chain([format!("{:.0}", cell.seconds)]),
                );
            }
            table.write(&mut out)?;
        }
        out.flush()?;
        Ok(())
    }
}

/// A key and its values.
struct GridAxis {
    key: String,
    values: Vec<String>,
}

fn parse_axis(text: &str) -> Result<GridAxis, Misuse> {
    let misuse = || Misuse(format!("--set: expected KEY=V1,V2,..., found {text:?}"));
    let (key, values) = text.split_once('=').ok_or_else(misuse)?;
    // A list is one value.
    let values: Vec<String> = if values.trim().starts_with('[') {
        vec![values.trim().to_owned()]
    } else {
        let values = values.split(',');
        values.map(|value| value.trim().to_owned()).collect()
    };
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(misuse());
    }
    Ok(GridAxis {
        key: key.trim().to_owned(),
        values,
    })
}

/// All combinations; the last axis varies fastest.
fn grid(axes: &[GridAxis]) -> Vec<Vec<String>> {
    let mut cells: Vec<Vec<String>> = vec![Vec::new()];
    for axis in axes {
        let grow = |cell: &Vec<String>| {
            let values = axis.values.iter();
            let cells =
                values.map(|value| [&cell[..], &[format!("{}={value}", axis.key)]].concat());
            cells.collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(grow).collect();
    }
    cells
}

fn config(settings: &[String]) -> anyhow::Result<Config> {
    let mut config = Config::default();
    for setting in settings {
        config = config
            .with_value(setting)
            .map_err(|error| Misuse(format!("--set: {error}")))?;
    }
    Ok(config)
}

/// File names are limited to 255 bytes; files beside the directory add a suffix to its name.
const MAX_NAME_LEN: usize = 200;

fn directory_name(settings: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_=".contains(c);
    let all = settings.join("_");
    let plain = all.chars().map(|c| if is_plain(c) { c } else { '-' });
    let mut name: String = "cell-".chars().chain(plain).collect();
    if name.len() > MAX_NAME_LEN {
        // FNV-1a: the same name in every run.
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = all.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
        name = format!("{}-{hash:016x}", &name[..MAX_NAME_LEN - 17]);
    }
    name
}

/// The keys with several values.
fn varying_keys(axes: &[GridAxis]) -> String {
    let varying = axes.iter().filter(|axis| axis.values.len() > 1);
    let keys = varying.map(|axis| &axis.key[..]);
    keys.collect::<Vec<_>>().join(", ")
}

/// The values that these settings give to those keys.
fn varying_values(axes: &[GridAxis], settings: &[String]) -> String {
    let all = axes.iter().zip(settings);
    let varying = all.filter(|(axis, _)| axis.values.len() > 1);
    let values = varying.map(|(_, setting)| setting.split_once('=').map_or("", |(_, value)| value));
    values.collect::<Vec<_>>().join(", ")
}

/// All metrics of every cell.
fn plot(axes: &[GridAxis], cells: &[&Cell]) -> String {
    let label = varying_keys(axes);
    let names = cells
        .iter()
        .map(|cell| varying_values(axes, &cell.settings));
    let all = cells.iter().flat_map(|cell| cell.metrics);
    let low = all.clone().fold(100.0, f64::min);
    let high = all.fold(0.0, f64::max);
    let mut plot = Plot::new(
        &format!("metrics by {label}"),
        Axis::names(&label, names),
        Axis::linear("%", (low / 5.0).floor() * 5.0, (high / 5.0).ceil() * 5.0),
    );
    for (at, name) in METRICS.iter().enumerate() {
        let points = cells
            .iter()
            .enumerate()
            .map(|(x, cell)| Point::new(x as f64, cell.metrics[at]));
        plot = plot.with(&name.to_uppercase(), Marks::Line(points.collect()));
    }
    plot.draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_all_combinations() {
        let axes: Vec<GridAxis> = ["a.b=1,2", "c.d=x", "e.f=[1, 2]", "g.h=3,4"]
            .iter()
            .map(|axis| parse_axis(axis).ok().unwrap())
            .collect();
        let cells = grid(&axes);
        assert_eq!(cells.len(), 4);
        assert_eq!(cells[1], ["a.b=1", "c.d=x", "e.f=[1, 2]", "g.h=4"]);
        assert_eq!(varying_values(&axes, &cells[1]), "1, 4");
        assert_eq!(directory_name(&cells[0][2..]), "cell-e.f=-1--2-_g.h=3");
        let long = |end: &str| directory_name(&[format!("a={}{end}", "1".repeat(300))]);
        assert_eq!(long("2").len(), MAX_NAME_LEN);
        assert_ne!(long("2"), long("3"));
        assert!(parse_axis("no value").is_err() && parse_axis("a=1,").is_err());
    }
}
