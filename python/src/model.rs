//! A trained model: predictions, explanations, figures.

use std::path::{Path, PathBuf};

use elias::config::EncoderKind;
use elias::data::{CsrMatrix, Texts, missing};
use elias::metrics::FilterPairs;
use elias::{Inputs, LabelId, Level, Prediction, Predictor, Query, tools};
use elias_cli::shared::{self, Evaluation};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple, PyType};

use crate::border::{run, run_here};
use crate::dataset::{Dataset, texts_of};
use crate::errors::{Failure, value_error};
use crate::matrices::{Rows, csr};

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

/// What to predict with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    k: i64,
    pub(crate) threshold: f32,
    stage: Option<String>,
    pub(crate) threads: Option<usize>,
}

/// Texts, or sparse features.
pub(crate) enum Points {
    Texts(Texts),
    Features(CsrMatrix),
}

impl Points {
    /// The points of a list of texts, or of the tuple of a matrix.
    fn of(points: &Bound<'_, PyAny>) -> PyResult<Self> {
        match points.cast::<PyList>() {
            Ok(texts) => Ok(Points::Texts(texts_of(texts)?)),
            Err(_) => Ok(Points::Features(csr(points.cast::<PyTuple>()?)?)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Points::Texts(texts) => texts.len(),
            Points::Features(features) => features.n_rows(),
        }
    }

    /// Some of the points.
    fn batch(&self, first: usize, end: usize) -> Points {
        match self {
            Points::Texts(texts) => Points::Texts((first..end).map(|at| texts.get(at)).collect()),
            Points::Features(features) => {
                let rows: Vec<usize> = (first..end).collect();
                Points::Features(features.select_rows(&rows))
            }
        }
    }

    fn inputs(&self) -> Inputs<'_> {
        match self {
            Points::Texts(texts) => texts.into(),
            Points::Features(features) => features.into(),
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
            let metadata = std::fs::metadata(&path);
            metadata.map_err(|error| missing(&path, error))?;
            if !path.join("manifest.json").exists() {
                let name = path.display();
                return Err(Failure::value(format!(
                    "{name} is not a model: it has no manifest.json"
                )));
            }
            let loaded = if verify {
                tools::verify(&path)
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
        run(py, None, || {
            let saved = if overwrite {
                self.predictor.replace(&path)
            } else {
                self.predictor.save(&path)
            };
            Ok(saved?)
        })
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
        self.predictor.probability(0.0).is_some()
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
        let answer = || Ok(self.predictor.predict(text, query)?);
        let answers = match self.predictor.plan().config().encoder.kind {
            // One text in a bag of words takes no pool, and going to one takes time.
            EncoderKind::Bag => run_here(py, answer)?,
            EncoderKind::Transformer => run(py, options.threads, answer)?,
        };
        self.to_list(py, &answers, options.threshold)
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
                lists.append(self.to_list(py, answers, options.threshold)?)?;
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
        if probabilities && self.predictor.probability(0.0).is_none() {
            return Err(value_error(
                "the model has no probabilities: it was trained without calibration or on too few points, or merged",
            ));
        }
        let value = |score: f32| {
            let probability = self.predictor.probability(score);
            probability.filter(|_| probabilities).unwrap_or(score)
        };
        let mut rows: Option<Rows> = None;
        let n_points = self.in_batches(py, points, &options, |batch, query| {
            let rankings = run(py, options.threads, || {
                Ok(self.predictor.rank(batch.inputs(), query)?)
            })?;
            let rows = rows.get_or_insert_with(|| {
                let n_rows = points.len().unwrap_or(0).max(rankings.len());
                Rows::with_capacity(n_rows, n_rows * query.k)
            });
            for mut ranking in rankings {
                ranking.retain(|answer| self.is_above(answer.score, options.threshold));
                rows.push(ranking, value);
            }
            Ok(())
        })?;
        let rows = rows.unwrap_or_else(|| Rows::with_capacity(n_points, 0));
        rows.into_arrays(py)
    }

    /// Why a text gets its labels, as JSON.
    fn explain(&self, py: Python<'_>, text: String, k: i64) -> PyResult<String> {
        let k = self.checked_k(k)?;
        run(py, None, || {
            if !self.predictor.takes_texts() {
                return Err(Failure::value(
                    "the model was trained on features, not on texts: there are no words to explain with",
                ));
            }
            let explanation = shared::explain(&self.predictor, &text, k)?;
            self.check_files()?;
            Ok(explanation.to_string())
        })
    }

    /// What the model is and how its index is doing, as JSON.
    fn inspect(&self, py: Python<'_>) -> PyResult<String> {
        run(py, None, || {
            Ok(shared::inspect(&self.predictor, self.path.as_deref())?.to_string())
        })
    }

    /// Metrics of the model's answers, as JSON.
    #[pyo3(signature = (data, propensity, filter, by_decile, latency, stage=None, threads=None))]
    #[allow(clippy::too_many_arguments)] // The options of the command, by name.
    fn evaluate(
        &self,
        py: Python<'_>,
        data: &Dataset,
        propensity: &str,
        filter: Vec<(usize, u32)>,
        by_decile: bool,
        latency: bool,
        stage: Option<String>,
        threads: Option<usize>,
    ) -> PyResult<String> {
        let pairs = filter.into_iter();
        let pairs = pairs.map(|(point, label)| (point, LabelId(label)));
        let evaluation = Evaluation {
            propensity: shared::parse_propensity(propensity)
                .map_err(|problem| Failure::value(format!("propensity: {problem}")))?,
            filter: pairs.collect::<FilterPairs>(),
            level: level(stage.as_deref())?,
            by_decile,
            with_latency: latency,
        };
        run(py, threads, || {
            let json = shared::evaluate(&self.predictor, &data.data, evaluation)?;
            self.check_files()?;
            String::from_utf8(json).map_err(|error| Failure::other(error.to_string()))
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
            Ok(shared::report(path, &test.data, train, &out)?)
        })
    }
}

impl Core {
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
        if !options.threshold.is_finite() {
            return Err(value_error("threshold: expected a finite number"));
        }
        Ok(Query {
            k: self.checked_k(options.k)?,
            level: level(options.stage.as_deref())?,
        })
    }

    /// No more labels than there are.
    fn checked_k(&self, k: i64) -> PyResult<usize> {
        match usize::try_from(k) {
            Ok(k) if k > 0 => Ok(k.min(self.predictor.labels().len())),
            _ => Err(value_error(format!("k is {k}, expected at least 1"))),
        }
    }

    /// Whether an answer is above a threshold of probabilities, or of scores where there are none.
    pub(crate) fn is_above(&self, score: f32, threshold: f32) -> bool {
        threshold <= 0.0 || self.predictor.probability(score).unwrap_or(score) >= threshold
    }

    /// Answers the points in batches and looks for signals between them.
    fn in_batches(
        &self,
        py: Python<'_>,
        points: &Bound<'_, PyAny>,
        options: &Options,
        mut answer: impl FnMut(&Points, Query) -> PyResult<()>,
    ) -> PyResult<usize> {
        let query = self.query(options)?;
        let points = Points::of(points)?;
        let n_points = points.len();
        if n_points <= BATCH {
            answer(&points, query)?;
            return Ok(n_points);
        }
        for first in (0..n_points).step_by(BATCH) {
            let batch = py.detach(|| points.batch(first, n_points.min(first + BATCH)));
            answer(&batch, query)?;
            py.check_signals()?;
        }
        Ok(n_points)
    }

    /// The answers as a list of `Prediction`.
    fn to_list<'py>(
        &self,
        py: Python<'py>,
        answers: &[Prediction<'_>],
        threshold: f32,
    ) -> PyResult<Bound<'py, PyList>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(py, "elias_xmc._types", "Prediction")?;
        let is_wanted = |answer: &&Prediction<'_>| self.is_above(answer.score, threshold);
        let answers = answers.iter().filter(is_wanted);
        let objects =
            answers.map(|answer| class.call1((answer.label, answer.score, answer.probability)));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }

    /// Waits for the check of the model's files, which ended with the parent in a child of it.
    fn check_files(&self) -> Result<(), Failure> {
        if self.process == std::process::id() {
            self.predictor.check_files()?;
        }
        Ok(())
    }
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
        Ok(shared::merge_models(&paths, &out, held_out, overwrite)?)
    })
}

/// The level that answers.
fn level(stage: Option<&str>) -> PyResult<Level> {
    let Some(name) = stage else {
        return Ok(Level::default());
    };
    let level = name.parse();
    level.map_err(|problem: String| value_error(format!("stage: {problem}")))
}
