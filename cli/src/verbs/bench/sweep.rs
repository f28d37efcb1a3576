//! `elias bench sweep`: trains and measures a grid of settings, and goes on where it was stopped.
//!
//! Each cell is trained in a directory of its own, resumed if it was interrupted, measured, written as one line to
//! `results.jsonl` and removed; cells that have a line already are not trained again. The table and the plot are made
//! of all lines.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use elias::data::{Part, ReadOptions};
use elias::{Config, Dataset, Level, Trainer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::read;
use crate::measuring::Measuring;
use crate::reading;
use crate::ui::console::{Console, Misuse};
use crate::ui::interrupt::{Interrupt, Interrupted};
use crate::ui::svg::{Axis, Marks, Plot, on_paper};
use crate::ui::table::Table;
use crate::ui::training::TrainingProgress;

/// Figures of a cell.
const METRICS: [&str; 6] = ["p@1", "p@3", "p@5", "r@10", "r@20", "r@100"];

/// Train and measure a grid of settings
///
/// Every --set KEY=V1,V2,... is one axis of the grid; with one value the key is set for all. The paper's Table 6 is
/// --set loss.lambda=0,0.01,0.05,0.1,0.5 and --set index.kappa=100,200,500. Stopped at any time, the same command
/// goes on. Results are in DIR/results.jsonl, the plot in DIR/sweep.svg.
#[derive(Args)]
pub(super) struct BenchSweep {
    /// Data with a train and a test part; the bundled set unless given
    data: Option<PathBuf>,
    /// An axis of the grid; may be repeated
    #[arg(long = "set", value_name = "KEY=V1,V2,...", required = true)]
    axes: Vec<String>,
    /// Where results go
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Measure a part of the models: stage2, ranker, calibrated or ensemble
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
        // Settings that do not exist are told before anything is trained.
        let configs = grid
            .iter()
            .map(|settings| config(settings))
            .collect::<anyhow::Result<Vec<_>>>()?;
        fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot create {}", self.out.display()))?;
        let mut cells = self.read_results()?;
        let is_done = |cells: &[Cell], settings: &[String]| {
            cells
                .iter()
                .any(|cell| cell.settings == settings && cell.stage == self.stage.name())
        };
        let n_left = grid
            .iter()
            .filter(|settings| !is_done(&cells, settings))
            .count();
        console.say(format_args!("{} cells, {n_left} to train", grid.len()));
        if 0 < n_left {
            let (train, test) = self.read_data(console)?;
            let interrupt = Interrupt::listen(console)?;
            for (settings, config) in grid.iter().zip(configs) {
                if is_done(&cells, settings) {
                    continue;
                }
                console.say(format_args!("cell {}", settings.join(" ")));
                let cell =
                    self.measure(settings, config, (&train, &test), (console, &interrupt))?;
                self.append(&cell)?;
                cells.push(cell);
            }
        }
        let of = |settings: &Vec<String>| {
            let found = cells.iter().rev();
            found
                .clone()
                .find(|cell| cell.settings == *settings && cell.stage == self.stage.name())
        };
        let cells: Vec<&Cell> = grid.iter().filter_map(of).collect();
        let svg = plot(&axes, &cells);
        fs::write(self.out.join("sweep.svg"), on_paper(&svg)).context("while writing sweep.svg")?;
        self.print(&axes, &cells)
    }

    fn read_data(&self, console: &Console) -> anyhow::Result<(Dataset, Dataset)> {
        let train = read(self.data.as_deref(), Part::Train, console)?;
        let test = match &self.data {
            None => read(None, Part::Test, console)?,
            Some(path) => {
                let options = ReadOptions {
                    part: Part::Test,
                    known_labels: Some(train.label_set()),
                    ..ReadOptions::default()
                };
                reading::read(console, path, options)?
            }
        };
        Ok((train, test))
    }

    fn measure(
        &self,
        settings: &[String],
        config: Config,
        (train, test): (&Dataset, &Dataset),
        (console, interrupt): (&Console, &Interrupt),
    ) -> anyhow::Result<Cell> {
        let directory = self.out.join(directory_name(settings));
        let started = Instant::now();
        let progress = TrainingProgress::new(console, &config, Some(interrupt.clone()));
        let trainer = Trainer::new(config).observer(&progress).resume();
        let trained = trainer.train_to(&directory, train);
        progress.finish();
        let predictor = match trained {
            Err(elias::Error::Stopped) => {
                return Err(Interrupted("stopped; the same command continues".into()).into());
            }
            trained => trained?,
        };
        let seconds = started.elapsed().as_secs_f64();
        let measuring = Measuring {
            level: self.stage,
            ..Measuring::default()
        };
        let figures = measuring.measure(&predictor, test, console)?;
        if !self.keep_models {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        Ok(Cell {
            settings: settings.to_vec(),
            stage: self.stage.name().to_owned(),
            metrics: METRICS.map(|name| figures.metrics.get(name).unwrap_or(0.0)),
            seconds,
        })
    }

    fn results(&self) -> PathBuf {
        self.out.join("results.jsonl")
    }

    /// Cells of earlier runs; a line that a crash cut short is as good as none.
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
        // A line feed first: a line that was cut short does not spoil this one.
        let written = file.and_then(|mut file| {
            file.write_all(format!("\n{}\n", serde_json::to_string(cell)?).as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn print(&self, axes: &[Choice], cells: &[&Cell]) -> anyhow::Result<()> {
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
            let heading = axes
                .iter()
                .filter(|axis| 1 < axis.values.len())
                .map(|axis| &axis.key[..]);
            let heading = heading.collect::<Vec<_>>().join(", ");
            let names = METRICS.map(str::to_uppercase);
            let mut table = Table::new(
                [heading]
                    .into_iter()
                    .chain(names)
                    .chain(["seconds".to_string()]),
            );
            for cell in cells {
                let values = cell.metrics.map(|value| format!("{value:.2}"));
                let name = vary(axes, &cell.settings);
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

/// A key and the values it takes.
struct Choice {
    key: String,
    values: Vec<String>,
}

fn parse_axis(text: &str) -> Result<Choice, Misuse> {
    let misused = || Misuse(format!("--set {text}: expected KEY=V1,V2,..."));
    let (key, values) = text.split_once('=').ok_or_else(misused)?;
    // A list is one value.
    let values: Vec<String> = match values.trim().starts_with('[') {
        true => vec![values.trim().to_owned()],
        false => values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect(),
    };
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(misused());
    }
    Ok(Choice {
        key: key.trim().to_owned(),
        values,
    })
}

/// Every combination, the last axis fastest.
fn grid(axes: &[Choice]) -> Vec<Vec<String>> {
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

/// No file system takes names of more than 255 bytes; what is beside the directory needs some of them.
const LONGEST_NAME: usize = 200;

fn directory_name(settings: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_=".contains(c);
    let all = settings.join("_");
    let plain = all.chars().map(|c| if is_plain(c) { c } else { '-' });
    let mut name: String = "cell-".chars().chain(plain).collect();
    if name.len() > LONGEST_NAME {
        // FNV-1a: the same name in every run.
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = all.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
        name = format!("{}-{hash:016x}", &name[..LONGEST_NAME - 17]);
    }
    name
}

/// The values of a cell on the axes that have several.
fn vary(axes: &[Choice], settings: &[String]) -> String {
    let several = axes
        .iter()
        .zip(settings)
        .filter(|(axis, _)| 1 < axis.values.len());
    let values = several.map(|(_, setting)| setting.split_once('=').map_or("", |(_, value)| value));
    values.collect::<Vec<_>>().join(", ")
}

/// P@1 and R@100 of every cell.
fn plot(axes: &[Choice], cells: &[&Cell]) -> String {
    let keys = axes
        .iter()
        .filter(|axis| 1 < axis.values.len())
        .map(|axis| &axis.key[..]);
    let label = keys.collect::<Vec<_>>().join(", ");
    let names = cells.iter().map(|cell| vary(axes, &cell.settings));
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
            .map(|(x, cell)| (x as f64, cell.metrics[at]));
        plot = plot.with(&name.to_uppercase(), Marks::Line(points.collect()));
    }
    plot.draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_every_combination() {
        let axes: Vec<Choice> = ["a.b=1,2", "c.d=x", "e.f=[1, 2]", "g.h=3,4"]
            .iter()
            .map(|axis| parse_axis(axis).ok().unwrap())
            .collect();
        let cells = grid(&axes);
        assert_eq!(cells.len(), 4);
        assert_eq!(cells[1], ["a.b=1", "c.d=x", "e.f=[1, 2]", "g.h=4"]);
        assert_eq!(vary(&axes, &cells[1]), "1, 4");
        assert_eq!(directory_name(&cells[0][2..]), "cell-e.f=-1--2-_g.h=3");
        let long = |end: &str| directory_name(&[format!("a={}{end}", "1".repeat(300))]);
        assert_eq!(long("2").len(), LONGEST_NAME);
        assert_ne!(long("2"), long("3"));
        assert!(parse_axis("no value").is_err() && parse_axis("a=1,").is_err());
    }
}
