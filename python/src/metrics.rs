//! P, nDCG, PSP, R and F1 of anyone's scores.

use elias::metrics::{CutOffs, FilterPairs, LabelFrequencies, Propensity};
use elias::{Evaluation, LabelId, Scored};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::border::run_here;
use crate::errors::{Failure, value_error};
use crate::matrices::csr;

/// The metrics of scores against true labels; PSP needs the labels of the training points.
#[pyfunction]
#[pyo3(signature = (truth, scores, train=None, propensity="default", filter=Vec::new(), at=None))]
pub(crate) fn metrics<'py>(
    py: Python<'py>,
    truth: &Bound<'py, PyTuple>,
    scores: &Bound<'py, PyTuple>,
    train: Option<&Bound<'py, PyTuple>>,
    propensity: &str,
    filter: Vec<(usize, u32)>,
    at: Option<Vec<usize>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (truth, scores) = (csr(truth)?, csr(scores)?);
    let train = train.map(csr).transpose()?;
    let propensity = parse_propensity(propensity)?;
    for (what, found, expected) in [
        ("rows", scores.n_rows(), truth.n_rows()),
        ("columns", scores.n_cols(), truth.n_cols()),
    ] {
        if found != expected {
            return Err(value_error(format!(
                "the scores have {found} {what}, the true labels {expected}"
            )));
        }
    }
    if let Some(train) = train.as_ref().filter(|t| t.n_cols() > truth.n_cols()) {
        return Err(value_error(format!(
            "the training labels have {} columns, the true labels {}",
            train.n_cols(),
            truth.n_cols()
        )));
    }
    let (metrics, at_best_threshold) = run_here(py, || {
        let pairs = filter.iter().map(|&(point, label)| (point, LabelId(label)));
        let evaluation = Evaluation {
            propensity,
            cut_offs: at.map(CutOffs::at).unwrap_or_default(),
            filter: pairs.collect::<FilterPairs>(),
            ..Evaluation::default()
        };
        let rankings = (0..scores.n_rows()).map(|row| {
            let (labels, values) = scores.row(row);
            let ranked = labels.iter().zip(values).map(|(&label, &score)| Scored {
                label: LabelId(label),
                score,
            });
            ranked.collect::<Vec<_>>()
        });
        let frequencies = train.as_ref().map(LabelFrequencies::of);
        let measured = evaluation.measure(&truth, rankings, frequencies.as_ref());
        Ok((measured.metrics, measured.at_best_threshold))
    })?;
    let dict = PyDict::new(py);
    for (name, value) in metrics.iter() {
        dict.set_item(name, value)?;
    }
    if let Some(at) = at_best_threshold {
        let figures = PyDict::new(py);
        figures.set_item("threshold", at.threshold)?;
        for (name, value) in [
            ("precision", at.precision),
            ("recall", at.recall),
            ("micro_f1", at.micro_f1),
            ("macro_f1", at.macro_f1),
        ] {
            figures.set_item(name, value)?;
        }
        dict.set_item("at_best_threshold", figures)?;
    }
    dict.set_item("n_points", metrics.n_points())?;
    dict.set_item("n_skipped", metrics.n_skipped())?;
    dict.set_item("n_labels", truth.n_cols())?;
    Ok(dict)
}

/// The constants of PSP@k: `A,B`, or the name of a common pair.
pub(crate) fn parse_propensity(text: &str) -> Result<Propensity, Failure> {
    let parsed = text.parse();
    parsed.map_err(|problem: String| Failure::value(format!("propensity: {problem}")))
}
