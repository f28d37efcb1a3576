//! `elias bench`: how fast this machine trains and predicts, by default on the bundled data set.

mod encoder;
mod kernels;
mod predict;
mod sweep;
mod train;

use std::io::{self, Write};
use std::path::Path;

use clap::{Args, Subcommand};
use elias::data::{Dataset, Part, ReadOptions};
use serde_json::Value;

use crate::processes::Process;
use crate::ui::console::Console;
use crate::ui::table::Table;
use crate::{bundled, reading};

/// Measure the speed of training, prediction, encoders or kernels
///
/// All rates are measured in this process, on --threads threads. Run it on an idle machine.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Train(train::BenchTrain),
    Predict(predict::BenchPredict),
    Encoder(encoder::BenchEncoder),
    Kernels(kernels::BenchKernels),
    Sweep(sweep::BenchSweep),
}

impl Bench {
    pub(crate) fn run(&self, process: &Process, console: &Console) -> anyhow::Result<()> {
        match &self.what {
            What::Train(bench) => bench.run(process, console),
            What::Predict(bench) => bench.run(console),
            What::Encoder(bench) => bench.run(console),
            What::Kernels(bench) => bench.run(),
            What::Sweep(bench) => bench.run(console),
        }
    }
}

/// Figures by name: the keys of JSON and the rows of a table.
type Figures = Vec<(&'static str, f64)>;

/// Figures of one thing that was measured.
struct Group {
    name: String,
    figures: Figures,
}

/// Groups that fit side by side in a table; if there are more, they become rows.
const MAX_COLUMNS: usize = 4;

/// Prints groups with the same figures: as JSON one object per group, as a table one column or row per group.
fn write_groups(groups: &[Group], json: bool) -> anyhow::Result<()> {
    let names = groups.first().map_or(&[][..], |group| &group.figures);
    let mut out = io::stdout().lock();
    if json {
        let entries: Vec<String> = groups
            .iter()
            .map(|Group { name, figures }| {
                format!("  {}: {}", Value::from(name.as_str()), object(figures, 4))
            })
            .collect();
        writeln!(out, "{{\n{}\n}}", entries.join(",\n"))?;
    } else if groups.len() > MAX_COLUMNS {
        let headings = names.iter().map(|(name, _)| *name);
        let mut table = Table::new(std::iter::once("").chain(headings));
        for Group { name, figures } in groups {
            let cells = figures.iter().map(|(_, value)| format_value(*value));
            table.row(std::iter::once(name.clone()).chain(cells));
        }
        table.write(&mut out)?;
    } else {
        let headings = groups.iter().map(|group| group.name.clone());
        let mut table = Table::new(std::iter::once(String::new()).chain(headings));
        for (at, (name, _)) in names.iter().enumerate() {
            let cells = groups.iter().map(|group| format_value(group.figures[at].1));
            table.row(std::iter::once(name.to_string()).chain(cells));
        }
        table.write(&mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Prints figures: as one JSON object, or as a table with one row per figure.
fn write_figures(figures: &[(&'static str, f64)], json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", object(figures, 2))?;
    } else {
        let mut table = Table::new(["", ""]);
        for (name, value) in figures {
            table.row([name.to_string(), format_value(*value)]);
        }
        table.write(&mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// A JSON object with its keys in the given order; NaN is null.
fn object(figures: &[(&'static str, f64)], indent: usize) -> String {
    let lines: Vec<String> = figures
        .iter()
        .map(|(name, value)| format!("{}\"{name}\": {}", " ".repeat(indent), number(*value)))
        .collect();
    format!("{{\n{}\n{}}}", lines.join(",\n"), " ".repeat(indent - 2))
}

/// Integers have no decimal point: counts and bytes.
fn number(value: f64) -> Value {
    match value {
        v if v.fract() == 0.0 && v.abs() < 9e15 => Value::from(v as i64),
        v => Value::from(v),
    }
}

fn format_value(value: f64) -> String {
    match value.abs() {
        v if v.is_nan() => String::new(),
        v if v.fract() == 0.0 => format!("{value}"),
        v if v < 1.0 => format!("{value:.4}"),
        v if v < 1000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// The data set at `path`, or the bundled one.
fn read(path: Option<&Path>, part: Part, console: &Console) -> anyhow::Result<Dataset> {
    match path {
        Some(path) => {
            let options = ReadOptions {
                part,
                ..ReadOptions::default()
            };
            reading::read(console, path, options)
        }
        None => {
            let bundled = bundled::read()?;
            Ok(match part {
                Part::Train => bundled.train,
                Part::Test => bundled.test,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_valid_json_in_their_order() {
        let text = object(&[("b", 1.5), ("a", 3.0), ("c", f64::NAN)], 2);
        assert_eq!(text, "{\n  \"b\": 1.5,\n  \"a\": 3,\n  \"c\": null\n}");
    }
}
