//! `elias evaluate`: compares the answers of a model, or given predictions, with the true labels.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use elias::Dataset;
use elias::data::{self, LabelSet, Part};
use elias::insight::shortlist_recall;
use elias::metrics::{FilterPairs, Propensity};

use crate::measuring::{Frequencies, Measurement, N_QUERIES, Scorer, Scoring};
use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::ui::figures::Figures;
use crate::ui::progress::{Progress, Unit};
use crate::ui::shortlist;
use crate::{models, reading};

/// Evaluate a model, or any predictions, against the true labels
///
/// Prints P@k, nDCG@k, PSP@k and R@k in percent, and for a model how long its predictions took.
/// With --predictions, labels are matched by name if the predictions have names (JSON Lines, CSV, TSV), else by id
/// (npz, sparse text). PSP@k and --by-decile need the label frequencies of the training data: a model knows them; for
/// predictions they come from --train, or from the train part of DATA if it is a directory. Without either, PSP@k is
/// left out (null in JSON).
#[derive(Args)]
#[command(override_usage = "elias evaluate [OPTIONS] MODEL DATA\n       \
    elias evaluate [OPTIONS] --predictions FILE DATA")]
pub(crate) struct Evaluate {
    /// The model, and the true labels: a file, or a directory with a test part
    #[arg(value_names = ["MODEL", "DATA"], num_args = 1..=2, required = true)]
    paths: Vec<PathBuf>,
    /// Predictions: JSON Lines, CSV, TSV, SciPy npz or sparse text
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Training data, for label frequencies
    #[arg(long, value_name = "DATA", requires = "predictions")]
    train: Option<PathBuf>,
    #[command(flatten)]
    data_args: reading::DataArgs,
    /// Names of numbered labels, one per line; by default FILE.labels.txt beside the predictions
    #[arg(
        long,
        value_name = "FILE",
        requires = "predictions",
        hide_short_help = true
    )]
    labels: Option<PathBuf>,
    /// File of `row label` pairs to ignore, numbered from 0
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// PSP constants: A,B, or amazon, wikipedia, default
    #[arg(long, value_name = "A,B", value_parser = parse_propensity, default_value = "default")]
    propensity: Propensity,
    /// Evaluate a part of the model: shortlist (recall by beam and size), stage1 (needs train.keep_stage1), stage2,
    /// ranker, calibrated or ensemble
    #[arg(
        long,
        value_name = "NAME",
        hide_short_help = true,
        conflicts_with = "predictions"
    )]
    stage: Option<String>,
    /// Also print recall by label frequency
    #[arg(long)]
    by_decile: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Evaluate {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        if let (Some("shortlist"), [model, data]) = (self.stage.as_deref(), &self.paths[..]) {
            return self.shortlist(model, data, console);
        }
        let figures = match (&self.predictions, &self.paths[..]) {
            (None, [model, data]) => self.of_model(model, data, console)?,
            (Some(predictions), [data]) => self.of_predictions(predictions, data, console)?,
            (None, _) => {
                let misuse = "expected MODEL and DATA, or --predictions FILE and DATA";
                return Err(Misuse(misuse.into()).into());
            }
            (Some(_), _) => {
                let misuse = "expected DATA only: --predictions replaces the model";
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

    /// Recall inside the shortlist, by beam and size.
    fn shortlist(&self, model: &Path, data: &Path, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load(model)?;
        let options = self.data_args.options(Part::Test, Some(predictor.labels()));
        let test = reading::read(console, data, options)?;
        let points = predictor.points(&test)?;
        let recall = shortlist_recall(&predictor, &points, test.labels())?;
        predictor.check_files()?;
        let mut out = io::stdout().lock();
        if self.json {
            shortlist::write_json(&mut out, &recall)?;
        } else {
            shortlist::write_tables(&mut out, &recall)?;
        }
        out.flush()?;
        Ok(())
    }

    fn of_model(&self, model: &Path, data: &Path, console: &Console) -> anyhow::Result<Figures> {
        let predictor = models::load(model)?;
        let level = models::parse_level(&predictor, self.stage.as_deref())?;
        if let Some(reason) = models::why_no_probabilities(&predictor) {
            console.info(format_args!(
                "no calibration error, since answers have no probabilities: {reason}"
            ));
        }
        let options = self.data_args.options(Part::Test, Some(predictor.labels()));
        let test = reading::read(console, data, options)?;
        let measurement = Measurement {
            scoring: self.scoring(&test, console)?,
            level,
            n_queries: N_QUERIES,
        };
        let figures = measurement.run(&predictor, &test, console)?;
        predictor.check_files()?;
        Ok(figures)
    }

    fn of_predictions(
        &self,
        predictions: &Path,
        data: &Path,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let train = self.read_train(data, console)?;
        let listed = self.read_labels(predictions, train.is_some())?;
        let known_labels = listed.as_ref().or(train.as_ref().map(Dataset::label_set));
        let options = self.data_args.options(Part::Test, known_labels);
        let test = reading::read(console, data, options)?;
        let frequencies = train.as_ref().map(Frequencies::of_data);
        let n_listed = listed.as_ref().map(LabelSet::len);
        self.score(predictions, &test, n_listed, frequencies.as_ref(), console)
    }

    /// The labels behind numbered predictions: --labels, else the list beside the file, else those of the training
    /// data.
    fn read_labels(&self, predictions: &Path, has_train: bool) -> anyhow::Result<Option<LabelSet>> {
        let beside = data::label_list_of(predictions);
        let path = match &self.labels {
            Some(path) => path,
            None if beside.exists() => &beside,
            None if !has_train && data::has_numbered_labels(predictions)? => {
                let misuse = format!(
                    "{} numbers its labels: give their names with --labels FILE, or the training \
                     data with --train",
                    predictions.display()
                );
                return Err(Misuse(misuse).into());
            }
            None => return Ok(None),
        };
        let labels = data::read_label_list(path).context("while reading the labels")?;
        Ok(Some(labels))
    }

    /// The training data, if there is any, with a message about what is used.
    fn read_train(&self, data: &Path, console: &Console) -> anyhow::Result<Option<Dataset>> {
        let Some(path) = reading::find_train(self.train.as_deref(), data)? else {
            if self.by_decile {
                let misuse =
                    "--by-decile needs label frequencies: give the training data with --train";
                return Err(Misuse(misuse.into()).into());
            }
            console.info("no training data, so no PSP; give it with --train");
            return Ok(None);
        };
        let options = self.data_args.options(Part::Train, None);
        let train = reading::read(console, path, options)?;
        let Propensity { a, b } = self.propensity;
        console.info(format_args!(
            "label frequencies from {} (propensity constants A {a}, B {b})",
            path.display()
        ));
        Ok(Some(train))
    }

    fn score(
        &self,
        predictions: &Path,
        test: &Dataset,
        n_listed: Option<usize>,
        frequencies: Option<&Frequencies>,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let scoring = self.scoring(test, console)?;
        let n_trained = frequencies.map_or(test.n_labels(), |known| known.counts.len());
        let n_trained = n_listed.unwrap_or(n_trained);
        let shape = data::PredictionShape::of(test, n_trained);
        let predictions =
            data::read_predictions(predictions, &shape).context("while reading the predictions")?;
        let predicted: HashSet<u32> = predictions.iter().flatten().map(|s| s.label.0).collect();
        let mut truth = test.labels().indices().iter();
        if !predicted.is_empty() && !truth.any(|label| predicted.contains(label)) {
            bail!(
                "the predictions and the data have no label in common: are they of the same set?"
            );
        }
        let mut scorer = Scorer::new(scoring, frequencies);
        let progress = Progress::start(console, "measuring", Unit::Items);
        for (point_idx, ranking) in predictions.iter().enumerate() {
            let (truth, _) = test.labels().row(point_idx);
            scorer.push(truth, ranking);
            progress.set(point_idx as u64 + 1, test.n_points() as u64);
        }
        Ok(scorer.finish(test.n_labels()))
    }

    fn scoring(&self, test: &Dataset, console: &Console) -> anyhow::Result<Scoring> {
        Ok(Scoring {
            propensity: self.propensity,
            filter: self.read_filter(test, console)?,
            by_decile: self.by_decile,
        })
    }

    fn read_filter(&self, test: &Dataset, console: &Console) -> anyhow::Result<FilterPairs> {
        let Some(path) = &self.filter else {
            return Ok(FilterPairs::default());
        };
        let pairs = data::read_filter_pairs(path).context("while reading the filter")?;
        let n_outside = pairs
            .iter()
            .filter(|(point_idx, label)| {
                *point_idx >= test.n_points() || label.idx() >= test.n_labels()
            })
            .count();
        let pairs: FilterPairs = pairs.into_iter().collect();
        console.info(format_args!(
            "{} ignored, {n_outside} of them outside the data",
            count(pairs.len(), "pair")
        ));
        Ok(pairs)
    }
}

/// Parses `A,B`, or the name of a common pair.
pub(crate) fn parse_propensity(text: &str) -> Result<Propensity, String> {
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
    let is_usable = a.is_finite() && b.is_finite() && a >= 0.0 && b > 0.0;
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
