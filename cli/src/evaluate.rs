//! `elias evaluate`: how good predictions are against the true labels.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap::error::ErrorKind;
use elias::data::{self, Dataset, Part, ReadOptions};
use elias::metrics::{
    DecilesBuilder, FilterPairs, InversePropensities, MetricsBuilder, MetricsOptions, Propensity,
    inverse_propensities, label_counts,
};

use crate::console::Console;
use crate::figures::{DECILE_K, Figures};
use crate::progress::{Progress, Unit};
use crate::reading;

/// Measure predictions against the true labels
///
/// Prints P@k, nDCG@k, PSP@k and R@k, in percent.
/// Labels are matched by name where the predictions have names (JSON Lines), else by id (npz, sparse text).
/// PSP@k and --by-decile need the frequencies of the labels in training: they come from --train, else from the
/// train part of DATA where it is a directory. Without either, PSP@k is left out (null in JSON).
#[derive(Args)]
pub(crate) struct Evaluate {
    /// Predictions, a ranking a point: JSON Lines, SciPy npz or sparse text
    #[arg(long, value_name = "FILE")]
    predictions: PathBuf,
    /// True labels: a file, or a directory with a test part
    data: PathBuf,
    /// Training data, for label frequencies
    #[arg(long, value_name = "DATA")]
    train: Option<PathBuf>,
    /// Format of DATA, if not to be recognised by content
    #[arg(long, value_parser = reading::format_parser())]
    format: Option<data::Format>,
    /// File of `row label` pairs to leave out, by number from 0
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Constants of PSP: A,B or amazon, wikipedia, default
    #[arg(long, value_name = "A,B", value_parser = parse_propensity, default_value = "default")]
    propensity: Propensity,
    /// Add recall by label frequency
    #[arg(long)]
    by_decile: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How often labels occur in training.
struct Frequencies {
    counts: Vec<usize>,
    n_points: usize,
}

impl Evaluate {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let train = self.read_train(console)?;
        let test = reading::read(
            console,
            &self.data,
            ReadOptions {
                format: self.format,
                part: Part::Test,
                known_labels: train.as_ref().map(Dataset::label_set),
                ..ReadOptions::default()
            },
        )?;
        let frequencies = train.map(|train| Frequencies {
            counts: label_counts(train.labels()),
            n_points: train.n_points(),
        });
        let figures = self.measure(&test, frequencies.as_ref(), console)?;

        let mut out = io::stdout().lock();
        if self.json {
            figures.write_json(&mut out)?;
        } else {
            figures.write_table(&mut out)?;
        }
        out.flush()?;
        Ok(())
    }

    /// The training data, if there is any, and a word on what is used.
    fn read_train(&self, console: &Console) -> anyhow::Result<Option<Dataset>> {
        let path = match &self.train {
            Some(path) => path,
            None if self.data.is_dir() && data::parts(&self.data)?.contains(&Part::Train) => {
                &self.data
            }
            None if self.by_decile => {
                let misuse =
                    "--by-decile needs label frequencies: name the training data with --train\n";
                return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, misuse).into());
            }
            None => {
                console.say("no training data: PSP is left out; name it with --train");
                return Ok(None);
            }
        };
        let options = ReadOptions {
            format: self.format,
            part: Part::Train,
            ..ReadOptions::default()
        };
        let train = reading::read(console, path, options)?;
        let Propensity { a, b } = self.propensity;
        console.say(format_args!(
            "label frequencies are those of {} (propensity constants A {a}, B {b})",
            path.display()
        ));
        Ok(Some(train))
    }

    fn measure(
        &self,
        test: &Dataset,
        frequencies: Option<&Frequencies>,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let filter = self.read_filter(test, console)?;
        let predictions =
            data::read_predictions(&self.predictions, test.n_points(), test.label_set())
                .context("while reading the predictions")?;
        let mut metrics = MetricsBuilder::new(MetricsOptions {
            inverse_propensities: frequencies.map(|known| self.weigh(known)),
            filter: filter.clone(),
            ..MetricsOptions::default()
        });
        let mut deciles = frequencies
            .filter(|_| self.by_decile)
            .map(|known| DecilesBuilder::new(&known.counts, DECILE_K, filter));
        let progress = Progress::start(console, "measuring", Unit::Items);
        for (point_idx, ranking) in predictions.iter().enumerate() {
            let (truth, _) = test.labels().row(point_idx);
            metrics.push(truth, ranking);
            if let Some(deciles) = &mut deciles {
                deciles.push(truth, ranking);
            }
            progress.set(point_idx as u64 + 1, test.n_points() as u64);
        }
        drop(progress);
        Ok(Figures {
            metrics: metrics.finish(),
            deciles: deciles.map(DecilesBuilder::finish),
            n_labels: test.n_labels(),
        })
    }

    fn weigh(&self, frequencies: &Frequencies) -> InversePropensities {
        inverse_propensities(&frequencies.counts, frequencies.n_points, self.propensity)
    }

    fn read_filter(&self, test: &Dataset, console: &Console) -> anyhow::Result<FilterPairs> {
        let Some(path) = &self.filter else {
            return Ok(FilterPairs::default());
        };
        let pairs = data::read_filter_pairs(path).context("while reading the filter")?;
        let n_outside = pairs
            .iter()
            .filter(|(point_idx, label)| {
                test.n_points() <= *point_idx || test.n_labels() <= label.idx()
            })
            .count();
        let pairs: FilterPairs = pairs.into_iter().collect();
        console.say(format_args!(
            "{} pairs are left out, {n_outside} of them lie outside the data",
            pairs.len()
        ));
        Ok(pairs)
    }
}

/// Reads `A,B`, or the name of a customary pair.
fn parse_propensity(text: &str) -> Result<Propensity, String> {
    match text {
        "default" => return Ok(Propensity::default()),
        "amazon" => return Ok(Propensity::AMAZON),
        "wikipedia" => return Ok(Propensity::WIKIPEDIA),
        _ => {}
    }
    let (a, b) = text
        .split_once(',')
        .ok_or("expected two numbers, as in 0.55,1.5")?;
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .map_err(|_| format!("{text:?} is not a number"))
    };
    let (a, b) = (number(a)?, number(b)?);
    let is_usable = a.is_finite() && b.is_finite() && 0.0 <= a && 0.0 < b;
    if !is_usable {
        return Err("A must not be negative and B must be positive".into());
    }
    Ok(Propensity { a, b })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn propensity_constants_are_numbers_or_a_name() {
        assert_eq!(parse_propensity("amazon"), Ok(Propensity::AMAZON));
        assert_eq!(
            parse_propensity("0.5, 0.4"),
            Ok(Propensity { a: 0.5, b: 0.4 })
        );
        for bad in ["0.5", "0.5,x", "-1,1", "1,0", "nan,1", ""] {
            assert!(parse_propensity(bad).is_err(), "{bad}");
        }
    }
}
