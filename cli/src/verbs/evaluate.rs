//! `elias evaluate`: how good a model or predictions are against the true labels.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use elias::Dataset;
use elias::data::{self, Part, ReadOptions};
use elias::metrics::{
    DecilesBuilder, FilterPairs, InversePropensities, MetricsBuilder, MetricsOptions, Propensity,
    inverse_propensities, label_counts,
};

use crate::measuring::{Measuring, N_QUERIES};
use crate::ui::console::{Console, Misuse};
use crate::ui::figures::{DECILE_K, Figures};
use crate::ui::progress::{Progress, Unit};
use crate::{models, reading};

/// Measure a model, or anyone's predictions, against the true labels
///
/// Prints P@k, nDCG@k, PSP@k and R@k, in percent, and for a model how long its predictions took.
/// With --predictions, labels are matched by name where the predictions have names (JSON Lines, CSV, TSV), else by id
/// (npz, sparse text). PSP@k and --by-decile need the frequencies of the labels in training: a model knows them; for
/// predictions they come from --train, else from the train part of DATA where it is a directory. Without either,
/// PSP@k is left out (null in JSON).
#[derive(Args)]
#[command(override_usage = "elias evaluate [OPTIONS] MODEL DATA\n       \
    elias evaluate [OPTIONS] --predictions FILE DATA")]
pub(crate) struct Evaluate {
    /// The model, and the true labels: a file, or a directory with a test part
    #[arg(value_names = ["MODEL", "DATA"], num_args = 1..=2, required = true)]
    paths: Vec<PathBuf>,
    /// Measure these rankings: JSON Lines, CSV, TSV, SciPy npz or sparse text
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Training data, for label frequencies
    #[arg(long, value_name = "DATA", requires = "predictions")]
    train: Option<PathBuf>,
    /// Format of DATA, if not to be recognised by content
    #[arg(long, hide_short_help = true, value_parser = reading::format_parser())]
    format: Option<data::Format>,
    #[command(flatten)]
    columns: reading::ColumnArgs,
    /// File of `row label` pairs to leave out, by number from 0
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Constants of PSP: A,B or amazon, wikipedia, default
    #[arg(long, value_name = "A,B", value_parser = parse_propensity, default_value = "default")]
    propensity: Propensity,
    /// Evaluate a part of the model: stage1 (if train.keep_stage1 kept it), stage2, ranker, calibrated or ensemble
    #[arg(
        long,
        value_name = "NAME",
        hide_short_help = true,
        conflicts_with = "predictions"
    )]
    stage: Option<String>,
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
        let figures = match (&self.predictions, &self.paths[..]) {
            (None, [model, data]) => self.of_model(model, data, console)?,
            (Some(predictions), [data]) => self.of_predictions(predictions, data, console)?,
            (None, _) => {
                let misuse = "name a model and the data, or give --predictions FILE and the data";
                return Err(Misuse(misuse.into()).into());
            }
            (Some(_), _) => {
                let misuse = "--predictions takes the place of a model: name the data only";
                return Err(Misuse(misuse.into()).into());
            }
        };
        let mut out = io::stdout().lock();
        if self.json {
            figures.write_json(&mut out)?;
        } else {
            figures.write_table(&mut out)?;
        }
        out.flush()?;
        Ok(())
    }

    fn of_model(&self, model: &Path, data: &Path, console: &Console) -> anyhow::Result<Figures> {
        let predictor = models::load(model)?;
        let level = models::parse_level(&predictor, self.stage.as_deref())?;
        let options = ReadOptions {
            format: self.format,
            columns: self.columns.columns(),
            part: Part::Test,
            known_labels: Some(predictor.labels()),
            ..ReadOptions::default()
        };
        let test = reading::read(console, data, options)?;
        let measuring = Measuring {
            propensity: self.propensity,
            filter: self.read_filter(&test, console)?,
            by_decile: self.by_decile,
            level,
            n_queries: N_QUERIES,
        };
        measuring.measure(&predictor, &test, console)
    }

    fn of_predictions(
        &self,
        predictions: &Path,
        data: &Path,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let train = self.read_train(data, console)?;
        let options = ReadOptions {
            format: self.format,
            columns: self.columns.columns(),
            part: Part::Test,
            known_labels: train.as_ref().map(Dataset::label_set),
            ..ReadOptions::default()
        };
        let test = reading::read(console, data, options)?;
        let frequencies = train.map(|train| Frequencies {
            counts: label_counts(train.labels()),
            n_points: train.n_points(),
        });
        self.measure(predictions, &test, frequencies.as_ref(), console)
    }

    /// The training data, if there is any, and a word on what is used.
    fn read_train(&self, data: &Path, console: &Console) -> anyhow::Result<Option<Dataset>> {
        let path = match &self.train {
            Some(path) => path,
            None if data.is_dir() && data::parts(data)?.contains(&Part::Train) => data,
            None if self.by_decile => {
                let misuse =
                    "--by-decile needs label frequencies: name the training data with --train";
                return Err(Misuse(misuse.into()).into());
            }
            None => {
                console.say("no training data: PSP is left out; name it with --train");
                return Ok(None);
            }
        };
        let options = ReadOptions {
            format: self.format,
            columns: self.columns.columns(),
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
        predictions: &Path,
        test: &Dataset,
        frequencies: Option<&Frequencies>,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let filter = self.read_filter(test, console)?;
        let n_trained = frequencies.map_or(test.n_labels(), |known| known.counts.len());
        let shape = data::PredictionShape::of(test, n_trained);
        let predictions =
            data::read_predictions(predictions, &shape).context("while reading the predictions")?;
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
            reliability: None,
            timing: None,
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
