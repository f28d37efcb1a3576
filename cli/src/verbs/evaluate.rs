//! `elias evaluate`: compares the answers of a model, or given predictions, with the true labels.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use elias::data::{self, LabelSet, Part, PredictionFormat, Sink};
use elias::metrics::{CutOffs, DecileOf, FilterPairs, LabelFrequencies, Propensity};
use elias::{Dataset, Evaluation, Level, Measurements, Query};

use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::ui::figures;
use crate::ui::progress::{Progress, Unit};
use crate::ui::shortlist;
use crate::verbs::predict;
use crate::{measuring, models, outputs, reading};

/// Evaluate a model, or any predictions, against the true labels
///
/// Prints P@k, nDCG@k, PSP@k, R@k and F1@k in percent, and for a model how long its predictions took. What cannot be
/// measured, such as R@100 of ten answers, is left out.
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
    /// Numbers of answers to measure at; by default 1,3,5, for R up to 100
    #[arg(long, value_name = "K,K,…", value_parser = str::parse::<CutOffs>)]
    at: Option<CutOffs>,
    /// Also measure all answers of at least this probability or score, from 0 to 1; the best is always named
    #[arg(long, value_name = "T", hide_short_help = true, value_parser = predict::parse_threshold)]
    threshold: Option<f32>,
    /// Write support, precision and recall of every label as CSV
    ///
    /// Of the first five answers, and of all answers of at least --threshold, else of the best threshold.
    #[arg(long, value_name = "FILE")]
    per_label: Option<PathBuf>,
    /// Replace the file of --per-label
    #[arg(long, requires = "per_label", hide_short_help = true)]
    overwrite: bool,
    /// File of `row label` pairs to ignore, numbered from 0; by default filter_labels_test.txt of a directory
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Ignore these pairs in answers only: what is listed and true counts as missed, as in the released code
    #[arg(long, hide_short_help = true)]
    filter_answers_only: bool,
    /// PSP constants: A,B, or amazon, wikipedia, default [default: the model's]
    #[arg(long, value_name = "A,B", value_parser = str::parse::<Propensity>)]
    propensity: Option<Propensity>,
    /// NumPy array with an embedding of every text, for a model that was trained with such
    #[arg(
        long,
        value_name = "FILE.npy",
        hide_short_help = true,
        conflicts_with = "predictions"
    )]
    embeddings_of_texts: Option<PathBuf>,
    /// Evaluate a part of the model: shortlist (recall by beam and size), stage1 (needs train.keep_stage1), stage2,
    /// ranker, calibrated or ensemble
    #[arg(
        long,
        value_name = "NAME",
        hide_short_help = true,
        conflicts_with = "predictions"
    )]
    stage: Option<String>,
    /// Also print recall by label frequency, for tenths of labels or pairs
    #[arg(long, value_name = "OF", num_args = 0..=1, require_equals = true, default_missing_value = "labels")]
    by_decile: Option<TenthsOf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The kinds of tenths that --by-decile has.
#[derive(Clone, Copy, clap::ValueEnum)]
enum TenthsOf {
    Labels,
    Pairs,
}

impl From<TenthsOf> for DecileOf {
    fn from(of: TenthsOf) -> Self {
        match of {
            TenthsOf::Labels => DecileOf::Labels,
            TenthsOf::Pairs => DecileOf::Pairs,
        }
    }
}

impl Evaluate {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        if let (Some("shortlist"), [model, data]) = (self.stage.as_deref(), &self.paths[..]) {
            return self.shortlist(model, data, console);
        }
        if let Some(out) = &self.per_label {
            let inputs = self.paths.iter().chain(&self.predictions);
            let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
            outputs::check(out, self.overwrite, &inputs)?;
        }
        let measured = match (&self.predictions, &self.paths[..]) {
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
            figures::write_json(&mut out, &measured)?;
        } else {
            figures::write_table(&mut out, &measured)?;
        }
        out.flush()?;
        Ok(())
    }

    /// Recall inside the shortlist, by beam and size.
    fn shortlist(&self, model: &Path, data: &Path, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load(model)?;
        let options = self.data_args.options_of(Part::Test, &predictor);
        let test = reading::read(console, data, options)?;
        let test = reading::with_embeddings(test, self.embeddings_of_texts.as_deref())?;
        let recall = predictor.evaluate_shortlist(&test)?;
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

    fn of_model(
        &self,
        model: &Path,
        data: &Path,
        console: &Console,
    ) -> anyhow::Result<Measurements> {
        let predictor = models::load(model)?;
        let level = models::parse_level(&predictor, self.stage.as_deref())?;
        if let Some(reason) = models::why_uncalibrated(&predictor) {
            console.info(format_args!(
                "no calibration error, since answers have no probabilities: {reason}"
            ));
        }
        let options = self.data_args.options_of(Part::Test, &predictor);
        let test = reading::read(console, data, options)?;
        let test = reading::with_embeddings(test, self.embeddings_of_texts.as_deref())?;
        let evaluation = Evaluation {
            propensity: self.propensity.unwrap_or(predictor.propensity()),
            ..self.evaluation(level, &test, console)?
        };
        let mut measured = measuring::evaluate(&predictor, &test, evaluation, console)?;
        let query = Query {
            level,
            ..Query::default()
        };
        measured.query_times = measuring::time_queries(&predictor, &test, query)?;
        predictor.check_files()?;
        self.write_by_label(&measured, test.label_set())?;
        Ok(measured)
    }

    fn of_predictions(
        &self,
        predictions: &Path,
        data: &Path,
        console: &Console,
    ) -> anyhow::Result<Measurements> {
        let train = self.read_train(data, console)?;
        let listed = self.read_labels(predictions, train.is_some())?;
        let known_labels = listed.as_ref().or(train.as_ref().map(Dataset::label_set));
        let options = self.data_args.options(Part::Test, known_labels);
        let test = reading::read(console, data, options)?;
        let frequencies = train
            .as_ref()
            .map(|train| LabelFrequencies::of(train.labels()));
        let n_listed = listed.as_ref().map(LabelSet::len);
        self.score(predictions, &test, n_listed, frequencies.as_ref(), console)
    }

    /// The labels behind numbered predictions: --labels, else the list beside the file, else those of the training
    /// data.
    fn read_labels(&self, predictions: &Path, has_train: bool) -> anyhow::Result<Option<LabelSet>> {
        let beside = PredictionFormat::label_list_of(predictions);
        let path = match &self.labels {
            Some(path) => path,
            None if beside.exists() => &beside,
            None if !has_train && PredictionFormat::has_numbered_labels(predictions)? => {
                let misuse = format!(
                    "{} numbers its labels: give their names with --labels FILE, or the training \
                     data with --train",
                    predictions.display()
                );
                return Err(Misuse(misuse).into());
            }
            None => return Ok(None),
        };
        let labels = LabelSet::read(path).context("while reading the labels")?;
        Ok(Some(labels))
    }

    /// The training data, if there is any, with a message about what is used.
    fn read_train(&self, data: &Path, console: &Console) -> anyhow::Result<Option<Dataset>> {
        let Some(path) = reading::find_train(self.train.as_deref(), data)? else {
            if self.by_decile.is_some() {
                let misuse =
                    "--by-decile needs label frequencies: give the training data with --train";
                return Err(Misuse(misuse.into()).into());
            }
            console.info("no training data, so no PSP; give it with --train");
            return Ok(None);
        };
        let options = self.data_args.options(Part::Train, None);
        let train = reading::read(console, path, options)?;
        let Propensity { a, b } = self.propensity.unwrap_or_default();
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
        frequencies: Option<&LabelFrequencies>,
        console: &Console,
    ) -> anyhow::Result<Measurements> {
        let evaluation = self.evaluation(Level::default(), test, console)?;
        evaluation.check()?;
        let n_trained = frequencies.map_or(test.n_labels(), |known| known.counts.len());
        let n_trained = n_listed.unwrap_or(n_trained);
        let shape = data::PredictionShape::of(test, n_trained);
        let predictions = shape
            .read(predictions)
            .context("while reading the predictions")?;
        let predicted: HashSet<u32> = predictions.iter().flatten().map(|s| s.label.0).collect();
        let mut truth = test.labels().indices().iter();
        if !predicted.is_empty() && !truth.any(|label| predicted.contains(label)) {
            bail!(
                "the predictions and the data have no label in common: are they of the same set?"
            );
        }
        let progress = Progress::start(console, "measuring", Unit::Items);
        let evaluation = Evaluation {
            on_progress: Some(&|done, total| progress.set(done, total)),
            ..evaluation
        };
        let measured = evaluation.measure(test.labels(), &predictions, frequencies);
        if self.by_decile.is_some() && measured.deciles.is_none() {
            console.info(format_args!(
                "no recall by label frequency: it takes {} answers per point",
                Measurements::DECILE_K
            ));
        }
        self.write_by_label(&measured, test.label_set())?;
        Ok(measured)
    }

    /// The file of --per-label.
    fn write_by_label(&self, measured: &Measurements, labels: &LabelSet) -> anyhow::Result<()> {
        let (Some(path), Some(counts)) = (&self.per_label, &measured.by_label) else {
            return Ok(());
        };
        let mut out = Sink::create(path)?;
        counts
            .write_csv(labels, &mut out)
            .context("while writing the figures of the labels")?;
        Ok(out.finish()?)
    }

    fn evaluation(
        &self,
        level: Level,
        test: &Dataset,
        console: &Console,
    ) -> anyhow::Result<Evaluation<'static>> {
        Ok(Evaluation {
            level,
            propensity: self.propensity.unwrap_or_default(),
            filter: self.read_filter(test, console)?,
            by_decile: self.by_decile.map(DecileOf::from),
            cut_offs: self.at.clone().unwrap_or_default(),
            threshold: self.threshold,
            by_label: self.per_label.is_some(),
            ..Evaluation::default()
        })
    }

    fn read_filter(&self, test: &Dataset, console: &Console) -> anyhow::Result<FilterPairs> {
        let pairs = match &self.filter {
            Some(path) => data::read_filter_pairs(path).context("while reading the filter")?,
            None if test.filter().is_empty() => return Ok(FilterPairs::default()),
            None => test.filter().to_vec(),
        };
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
        Ok(if self.filter_answers_only {
            pairs.of_answers_only()
        } else {
            pairs
        })
    }
}
