//! A trained model: predictions, explanations, figures.

use std::path::{Path, PathBuf};

use elias::config::EncoderKind;
use elias::insight::{ReportCache, ReportOptions};
use elias::metrics::{CutOffs, DecileOf, FilterPairs, LabelFigures};
use elias::{
    Correction, Evaluation, LabelId, LabelLists, LabelRef, LabelRules, Level, Measurements,
    Prediction, Predictor, Query,
};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple, PyType};

use crate::border::{pool, run, run_here};
use crate::dataset::Dataset;
use crate::errors::{Failure, value_error};
use crate::matrices::Rows;
use crate::metrics::parse_propensity;
use crate::points::Points;

/// Maximum number of single queries that are timed.
const N_QUERIES: usize = 2000;

/// Points between two looks for signals.
const BATCH: usize = 8192;

/// A model that answers.
#[pyclass(frozen, module = "elias_xmc._elias")]
pub(crate) struct Core {
    pub(crate) predictor: Predictor,
    /// The directory of the model, if it has one.
    path: Option<PathBuf>,
    /// The process that loaded it: a background check of its files lives there only.
    process: u32,
}

/// The options of a prediction.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    k: i64,
    threshold: Option<f32>,
    stage: Option<String>,
    pub(crate) threads: Option<usize>,
    allow: Option<Vec<ListedLabel>>,
    deny: Vec<ListedLabel>,
    thresholds: Vec<(ListedLabel, f32)>,
}

/// A label's name or number.
#[derive(FromPyObject)]
enum ListedLabel {
    Name(String),
    Id(u32),
}

impl From<&ListedLabel> for LabelRef {
    fn from(label: &ListedLabel) -> Self {
        match label {
            ListedLabel::Name(name) => LabelRef::Name(name.clone()),
            ListedLabel::Id(id) => LabelRef::Id(LabelId(*id)),
        }
    }
}

#[pymethods]
impl Core {
    /// Maps a model from its directory; of one that is temporary, the path is forgotten.
    #[staticmethod]
    #[pyo3(signature = (path, verify=false, temporary=false))]
    fn load(py: Python<'_>, path: PathBuf, verify: bool, temporary: bool) -> PyResult<Self> {
        let predictor = run(py, None, || {
            let loaded = if verify {
                Predictor::verify(&path)
            } else {
                Predictor::load(&path)
            };
            Ok(loaded?)
        })?;
        let path = Some(path.as_path()).filter(|_| !temporary);
        Ok(Core::new(predictor, path))
    }

    /// Writes the model to a directory.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        run(py, None, || save(&self.predictor, &path, overwrite))
    }

    /// The same model after it has learned from a data set; it is in memory only.
    #[pyo3(signature = (data, threads=None))]
    fn learn_data(&self, py: Python<'_>, data: &Dataset, threads: Option<usize>) -> PyResult<Self> {
        self.learned(py, threads, |predictor| predictor.learn_data(&data.data))
    }

    /// The same after corrections: texts with accepted and rejected labels.
    #[pyo3(signature = (corrections, threads=None))]
    fn learn(
        &self,
        py: Python<'_>,
        corrections: Vec<Listed>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let corrections = to_corrections(corrections);
        self.learned(py, threads, |predictor| predictor.learn(&corrections))
    }

    #[getter]
    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    #[getter]
    fn takes_texts(&self) -> bool {
        self.predictor.takes_texts()
    }

    #[getter]
    fn n_labels(&self) -> usize {
        self.predictor.labels().len()
    }

    #[getter]
    fn is_calibrated(&self) -> bool {
        self.predictor.is_calibrated()
    }

    /// The names of all labels, by id.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.predictor.labels().names().iter())
    }

    /// The best labels of one text.
    fn predict_one<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
        options: Options,
    ) -> PyResult<Bound<'py, PyList>> {
        let query = self.query(&options)?;
        let text = text
            .to_str()
            .map_err(|error| value_error(format!("the text is not Unicode: {error}")))?;
        let answer = || Ok(self.predictor.predict(text, &query)?);
        let answers = match self.predictor.plan().config().encoder.kind {
            // One text in a bag of words takes no pool, and going to one takes time.
            EncoderKind::Bag => run_here(py, answer)?,
            EncoderKind::Transformer => run(py, options.threads, answer)?,
        };
        to_list(py, &answers)
    }

    /// The best labels of each point.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        options: Options,
    ) -> PyResult<Bound<'py, PyList>> {
        let lists = PyList::empty(py);
        self.in_batches(py, points, &options, |batch, query| {
            let answers = run(py, options.threads, || {
                Ok(self.predictor.predict_batch(batch.inputs(), query)?)
            })?;
            for answers in &answers {
                lists.append(to_list(py, answers)?)?;
            }
            Ok(())
        })?;
        Ok(lists)
    }

    /// The scores or probabilities of the best labels of each point, as the arrays of a CSR matrix.
    fn predict_csr<'py>(
        &self,
        py: Python<'py>,
        points: &Bound<'py, PyAny>,
        options: Options,
        probabilities: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        if probabilities && !self.predictor.is_calibrated() {
            return Err(value_error(
                "the model has no probabilities: it was trained without calibration or on too few points, or merged",
            ));
        }
        if probabilities && self.query(&options)?.level != Level::default() {
            return Err(value_error("answers of a stage have no probabilities"));
        }
        let value = |answer: &Prediction<'_>| {
            let probability = answer.probability.filter(|_| probabilities);
            probability.unwrap_or(answer.score)
        };
        let mut rows: Option<Rows> = None;
        let n_points = self.in_batches(py, points, &options, |batch, query| {
            let answers = run(py, options.threads, || {
                Ok(self.predictor.predict_batch(batch.inputs(), query)?)
            })?;
            let rows = rows.get_or_insert_with(|| {
                let n_rows = points.len().unwrap_or(0).max(answers.len());
                Rows::with_capacity(n_rows, n_rows * query.k)
            });
            for answers in answers {
                rows.push(answers, value);
            }
            Ok(())
        })?;
        let rows = rows.unwrap_or_else(|| Rows::with_capacity(n_points, 0));
        rows.into_arrays(py)
    }

    /// The vectors of points, or of all labels, as a flat array, and the length of each.
    #[pyo3(signature = (points=None, threads=None))]
    fn embed<'py>(
        &self,
        py: Python<'py>,
        points: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let points = points.map(Points::of).transpose()?;
        let vectors = run(py, threads, || {
            let vectors = match &points {
                Some(points) => self.predictor.embed(points.inputs())?,
                None => self.predictor.embed_labels()?,
            };
            self.check_files()?;
            Ok(vectors)
        })?;
        Ok((vectors.values.into_pyarray(py).into_any(), vectors.dim))
    }

    /// Why a text gets its labels, as JSON.
    fn explain(&self, py: Python<'_>, text: String, k: i64) -> PyResult<String> {
        let k = self.checked_k(k)?;
        run(py, None, || {
            let explanation = self.predictor.explain(&text, k)?;
            self.check_files()?;
            to_json(&explanation)
        })
    }

    /// Describes the model and the state of its index, as JSON.
    fn inspect(&self, py: Python<'_>) -> PyResult<String> {
        run(py, None, || {
            let inspection = self.predictor.inspect();
            match &self.path {
                Some(path) => to_json(&inspection.with_files(path)?),
                None => to_json(&inspection),
            }
        })
    }

    /// Metrics of the model's answers, as JSON.
    #[pyo3(signature = (data, propensity, filter, by_decile, latency, by_label, at=None, threshold=None, stage=None, threads=None))]
    #[allow(clippy::too_many_arguments)] // The options of the command, by name.
    fn evaluate(
        &self,
        py: Python<'_>,
        data: &Dataset,
        propensity: &str,
        filter: Vec<(usize, u32)>,
        by_decile: bool,
        latency: bool,
        by_label: bool,
        at: Option<Vec<usize>>,
        threshold: Option<f32>,
        stage: Option<String>,
        threads: Option<usize>,
    ) -> PyResult<String> {
        let pairs = filter.into_iter();
        let pairs = pairs.map(|(point, label)| (point, LabelId(label)));
        let evaluation = Evaluation {
            propensity: parse_propensity(propensity)?,
            filter: pairs.collect::<FilterPairs>(),
            level: level(stage.as_deref())?,
            by_decile: by_decile.then_some(DecileOf::Labels),
            by_label,
            cut_offs: at.map(CutOffs::at).unwrap_or_default(),
            threshold,
            ..Evaluation::default()
        };
        let one_thread = pool(py, Some(1))?;
        let query = Query {
            level: evaluation.level,
            ..Query::default()
        };
        run(py, threads, move || {
            let mut measured = self.predictor.evaluate(&data.data, &evaluation)?;
            if latency {
                let time = || self.predictor.time_queries(&data.data, &query, N_QUERIES);
                measured.query_times = one_thread.install(time)?;
            }
            self.check_files()?;
            let counts = measured.by_label.as_ref();
            to_json(&EvaluationAnswer {
                by_label: counts.map(|counts| counts.figures(data.data.label_set())),
                measured: &measured,
            })
        })
    }

    /// Writes the page of `elias report`.
    #[pyo3(signature = (out, test, train=None, threads=None))]
    fn report(
        &self,
        py: Python<'_>,
        out: PathBuf,
        test: &Dataset,
        train: Option<&Dataset>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let Some(path) = &self.path else {
            return Err(value_error(
                "a report needs a model on disk: train it with out, or save it and load it",
            ));
        };
        let train = train.map(|train| &train.data);
        run(py, threads, || {
            let options = ReportOptions {
                test: &test.data,
                train,
                fixed: None,
                cache: ReportCache::Kept,
                on_progress: None,
            };
            self.predictor.report(path, &options)?.write(&out)?;
            Ok(())
        })
    }
}

impl Core {
    fn learned(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        learn: impl FnOnce(&mut Predictor) -> elias::Result<()> + Send,
    ) -> PyResult<Self> {
        let predictor = run(py, threads, || {
            let mut predictor = self.predictor.clone();
            learn(&mut predictor)?;
            Ok(predictor)
        })?;
        Ok(Core {
            predictor,
            path: None,
            process: self.process,
        })
    }

    /// A model of this process.
    pub(crate) fn new(predictor: Predictor, path: Option<&Path>) -> Self {
        Core {
            predictor,
            // So that it is found from any directory.
            path: path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into())),
            process: std::process::id(),
        }
    }

    /// The query of some options.
    pub(crate) fn query(&self, options: &Options) -> PyResult<Query> {
        let query = Query {
            k: self.checked_k(options.k)?,
            threshold: options.threshold,
            level: level(options.stage.as_deref())?,
            rules: self.rules(options).map_err(Failure::from)?,
        };
        self.predictor.check_query(&query).map_err(Failure::from)?;
        Ok(query)
    }

    /// The rules of some options.
    fn rules(&self, options: &Options) -> elias::Result<LabelRules> {
        let refs = |labels: &Vec<ListedLabel>| labels.iter().map(LabelRef::from).collect();
        let thresholds = options.thresholds.iter();
        self.predictor.label_rules(&LabelLists {
            allow: options.allow.as_ref().map(refs),
            deny: refs(&options.deny),
            thresholds: thresholds
                .map(|(label, value)| (label.into(), *value))
                .collect(),
        })
    }

    /// No more labels than there are.
    fn checked_k(&self, k: i64) -> PyResult<usize> {
        match usize::try_from(k) {
            Ok(k) if k > 0 => Ok(k.min(self.predictor.labels().len())),
            _ => Err(value_error(format!("k is {k}, expected at least 1"))),
        }
    }

    /// Answers the points in batches and looks for signals between them.
    fn in_batches(
        &self,
        py: Python<'_>,
        points: &Bound<'_, PyAny>,
        options: &Options,
        mut answer: impl FnMut(&Points, &Query) -> PyResult<()>,
    ) -> PyResult<usize> {
        let query = self.query(options)?;
        let points = Points::of(points)?;
        let n_points = points.len();
        if n_points <= BATCH {
            answer(&points, &query)?;
            return Ok(n_points);
        }
        for first in (0..n_points).step_by(BATCH) {
            let batch = py.detach(|| points.batch(first, n_points.min(first + BATCH)));
            answer(&batch, &query)?;
            py.check_signals()?;
        }
        Ok(n_points)
    }

    /// Waits for the check of the model's files, which ended with the parent in a child of it.
    fn check_files(&self) -> Result<(), Failure> {
        if self.process == std::process::id() {
            self.predictor.check_files()?;
        }
        Ok(())
    }
}

/// The answers as a list of `Prediction`.
fn to_list<'py>(py: Python<'py>, answers: &[Prediction<'_>]) -> PyResult<Bound<'py, PyList>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "elias_xmc._types", "Prediction")?;
    let objects = answers
        .iter()
        .map(|answer| class.call1((answer.label, answer.score, answer.probability)));
    PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// A result of the library, for `json.loads`.
/// Metrics, and those of each label if they were asked for.
#[derive(serde::Serialize)]
struct EvaluationAnswer<'a> {
    #[serde(flatten)]
    measured: &'a Measurements,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_label: Option<Vec<LabelFigures>>,
}

fn to_json(result: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(result).map_err(|error| Failure::other(error.to_string()))
}

/// A text with the names of accepted and of rejected labels.
type Listed = (String, Vec<String>, Vec<String>);

fn to_corrections(listed: Vec<Listed>) -> Vec<Correction> {
    let corrections = listed.into_iter();
    let corrections = corrections.map(|(text, labels, not)| Correction { text, labels, not });
    corrections.collect()
}

/// Keeps corrections in the journal of the model in a directory; the model that has learned them.
#[pyfunction]
pub(crate) fn learn(py: Python<'_>, path: PathBuf, corrections: Vec<Listed>) -> PyResult<Core> {
    let corrections = to_corrections(corrections);
    let predictor = run(py, None, || Ok(Predictor::learn_in(&path, &corrections)?))?;
    Ok(Core::new(predictor, Some(&path)))
}

/// Writes the members of several models as one.
#[pyfunction]
#[pyo3(signature = (paths, out, overwrite, held_out=None, threads=None))]
pub(crate) fn merge(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    overwrite: bool,
    held_out: Option<&Dataset>,
    threads: Option<usize>,
) -> PyResult<()> {
    let held_out = held_out.map(|data| &data.data);
    run(py, threads, || {
        Predictor::check_merge(&paths, &out)?;
        let mut predictor = Predictor::merge(&paths)?;
        if let Some(data) = held_out {
            predictor.calibrate(data)?;
        }
        save(&predictor, &out, overwrite)
    })
}

/// Writes a model to a directory; one that is there is replaced only if that is asked for.
fn save(predictor: &Predictor, path: &Path, overwrite: bool) -> Result<(), Failure> {
    let saved = if overwrite {
        predictor.replace(path)
    } else {
        predictor.save(path)
    };
    Ok(saved?)
}

/// The level that answers.
fn level(stage: Option<&str>) -> PyResult<Level> {
    let Some(name) = stage else {
        return Ok(Level::default());
    };
    let level = name.parse();
    level.map_err(|problem: String| value_error(format!("stage: {problem}")))
}
