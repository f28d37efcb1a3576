//! What other front ends, such as the Python package, have in common with the command.
//!
//! Results are the JSON that the verbs print. Nothing here prints, reads arguments or listens for signals.

use std::path::{Path, PathBuf};

use elias::metrics::{FilterPairs, Propensity};
use elias::tools::{self, MemoryEstimate};
use elias::{Config, Dataset, Level, Predictor};
use serde_json::Value;

use crate::measuring::{Measurement, N_QUERIES, Scoring};
use crate::ui::console::{self, Console, Misuse, Verbosity};
use crate::verbs::explain::Explanation;
use crate::verbs::{evaluate, inspect, merge, report};
use crate::{models, plan, presets};

fn quiet() -> Console {
    Console::new(Verbosity::Quiet)
}

/// The defaults with a preset applied on top.
///
/// # Errors
/// A list of the presets, if this is none.
pub fn preset(name: &str) -> anyhow::Result<Config> {
    presets::config(name)
}

/// Whether an error is about arguments that make no sense.
pub fn is_misuse(error: &anyhow::Error) -> bool {
    error.is::<Misuse>()
}

/// An error and its causes on one line.
pub fn error_message(error: &anyhow::Error) -> String {
    console::error_message(error)
}

/// Checks that a training fits into the memory that is allowed, or else into that of the machine.
///
/// # Errors
/// The sizes and a remedy, if it does not.
pub fn check_memory(estimate: &MemoryEstimate, limit: Option<usize>) -> anyhow::Result<()> {
    plan::check_memory(estimate, limit)
}

/// Parses the constants of PSP@k: `A,B`, or the name of a common pair.
///
/// # Errors
/// What was expected.
pub fn parse_propensity(text: &str) -> Result<Propensity, String> {
    evaluate::parse_propensity(text)
}

/// How to evaluate a model.
#[derive(Default)]
pub struct Evaluation {
    /// The constants of PSP@k.
    pub propensity: Propensity,
    /// Pairs of a point and a label that do not count.
    pub filter: FilterPairs,
    /// The part of the model that answers.
    pub level: Level,
    /// Whether recall by label frequency is wanted.
    pub by_decile: bool,
    /// Whether single queries are timed, too.
    pub with_latency: bool,
}

/// Compares the answers of a model with the true labels: the object of `elias evaluate --json`, as text.
///
/// # Errors
/// If the data is not what the model was trained on, or a file of the model is damaged.
pub fn evaluate(
    predictor: &Predictor,
    test: &Dataset,
    evaluation: Evaluation,
) -> anyhow::Result<Vec<u8>> {
    let measurement = Measurement {
        scoring: Scoring {
            propensity: evaluation.propensity,
            filter: evaluation.filter,
            by_decile: evaluation.by_decile,
        },
        level: evaluation.level,
        n_queries: if evaluation.with_latency {
            N_QUERIES
        } else {
            0
        },
    };
    let figures = measurement.run(predictor, test, &quiet())?;
    let mut json = Vec::new();
    figures.write_json(&mut json)?;
    Ok(json)
}

/// Why a text gets its `k` best labels: the object of `elias explain --json`.
///
/// # Errors
/// If the model takes no texts.
pub fn explain(predictor: &Predictor, text: &str, k: usize) -> anyhow::Result<Value> {
    let points = predictor.points(&[text])?;
    let explanation = Explanation::of(predictor, &points, k)?;
    Ok(explanation.to_json(text, None))
}

/// Sizes, settings, history and state of the index: the object of `elias inspect --json`.
///
/// # Errors
/// If the manifest in `directory` cannot be read. Without a directory, what only files tell is null.
pub fn inspect(predictor: &Predictor, directory: Option<&Path>) -> anyhow::Result<Value> {
    let description = directory.map(tools::describe).transpose()?;
    let health = inspect::health_of_members(predictor);
    Ok(inspect::to_json(predictor, &health, description.as_ref()))
}

/// Writes the page of `elias report`; slow results are cached beside the model.
///
/// # Errors
/// If the data is not what the model was trained on, or a file cannot be read or written.
pub fn report(
    model: &Path,
    test: &Dataset,
    train: Option<&Dataset>,
    out: &Path,
) -> anyhow::Result<()> {
    report::write(model, test, train, out)
}

/// Writes the members of several models as one, with probabilities fitted on `held_out`, as `elias merge`.
///
/// # Errors
/// If a model does not fit the first, is damaged, or is where the new one goes, or if `out` is taken.
pub fn merge_models(
    paths: &[PathBuf],
    out: &Path,
    held_out: Option<&Dataset>,
    overwrite: bool,
) -> anyhow::Result<()> {
    merge::check_paths(paths, out)?;
    let mut predictor = tools::merge(paths)?;
    if let Some(data) = held_out {
        tools::calibrate(&mut predictor, data)?;
    }
    models::save(&predictor, out, overwrite)
}
