//! Data sets from Python's lists, from matrices, and from files.

use std::path::PathBuf;

use elias::data::{
    Columns, CsrBuilder, CsrMatrix, LabelFile, LabelSet, Part, ReadOptions, Synonyms, Texts,
    WordVectors,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};

use crate::border::run;
use crate::errors::{Failure, value_error};
use crate::matrices::{csr, dense};
use crate::model::Core;

/// The labels that are numbered already: they keep their ids, others follow.
#[derive(FromPyObject)]
enum Known<'py> {
    Model(PyRef<'py, Core>),
    Data(PyRef<'py, Dataset>),
}

impl Known<'_> {
    fn labels(&self) -> &LabelSet {
        match self {
            Known::Model(model) => model.predictor.labels(),
            Known::Data(data) => data.data.label_set(),
        }
    }
}

/// A file of synonyms, or its lines.
#[derive(FromPyObject)]
enum SynonymSource {
    Pairs(Vec<(String, String)>),
    Path(PathBuf),
}

/// Points with their labels.
#[pyclass(frozen, module = "elias_xmc._elias")]
pub(crate) struct Dataset {
    pub(crate) data: elias::Dataset,
}

#[pymethods]
impl Dataset {
    /// A data set of texts (a list) or features (a matrix), with labels (a list of lists, or a matrix and the names of
    /// its columns). Labels that are known keep their ids, others follow.
    #[staticmethod]
    #[pyo3(signature = (points, labels, names=None, known=None))]
    fn build(
        points: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyAny>,
        names: Option<&Bound<'_, PyList>>,
        known: Option<Known<'_>>,
    ) -> PyResult<Self> {
        let known = known.as_ref().map(Known::labels);
        let (texts, features) = match points.cast::<PyList>() {
            Ok(texts) => (Some(texts_of(texts)?), None),
            Err(_) => (None, Some(csr(points.cast::<PyTuple>()?)?)),
        };
        let (labels, label_set) = match labels.cast::<PyList>() {
            Ok(rows) => labels_of_lists(rows, known)?,
            Err(_) => labels_of_matrix(&csr(labels.cast::<PyTuple>()?)?, names, known)?,
        };
        let data = elias::Dataset::new(texts, features, labels, label_set, None);
        Ok(Dataset {
            data: data.map_err(Failure::from)?,
        })
    }

    /// Reads a data set of any format.
    #[staticmethod]
    #[pyo3(signature = (path, part, format=None, text_columns=Vec::new(), label_column=None, label_separator=None, known=None, threads=None))]
    #[allow(clippy::too_many_arguments)] // The options of the command, by name.
    fn read(
        py: Python<'_>,
        path: PathBuf,
        part: &str,
        format: Option<&str>,
        text_columns: Vec<String>,
        label_column: Option<&str>,
        label_separator: Option<char>,
        known: Option<Known<'_>>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let format = format.map(str::parse).transpose().map_err(Failure::from)?;
        let options = ReadOptions {
            format,
            part: match part {
                "train" => Part::Train,
                _ => Part::Test,
            },
            known_labels: known.as_ref().map(Known::labels),
            columns: Columns {
                text: &text_columns,
                labels: label_column,
                label_separator: label_separator.map(Into::into),
            },
            text_fields: &[],
            on_progress: None,
        };
        run(py, threads, || {
            let (data, _) = options.read(&path)?;
            Ok(Dataset { data })
        })
    }

    /// The same points with names, synonyms or descriptions of the labels from a file.
    fn with_label_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        run(py, None, || {
            let file = LabelFile::read(&path, self.data.label_set())?;
            let data = self.data.clone().with_label_texts(file.texts)?;
            let data = data.with_more_labels(file.others)?;
            Ok(Dataset { data })
        })
    }

    /// The same points with a list of synonyms: a path, or pairs of a phrase and the words that it adds.
    fn with_synonyms(&self, py: Python<'_>, synonyms: SynonymSource) -> PyResult<Self> {
        run(py, None, || {
            let synonyms = match synonyms {
                SynonymSource::Path(path) => Synonyms::read(&path)?,
                SynonymSource::Pairs(pairs) => Synonyms::from_pairs(pairs)?,
            };
            let data = self.data.clone().with_synonyms(synonyms);
            Ok(Dataset { data })
        })
    }

    /// The same points with vectors of words from a file or directory, from which training starts.
    fn with_word_vectors(&self, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        run(py, None, || {
            let vectors = WordVectors::read(&path)?;
            let data = self.data.clone().with_word_vectors(vectors);
            Ok(Dataset { data })
        })
    }

    /// The same points with embeddings of their texts.
    fn with_embeddings(&self, embeddings: &Bound<'_, PyAny>) -> PyResult<Self> {
        let data = self.data.clone().with_embeddings(dense(embeddings)?);
        Ok(Dataset {
            data: data.map_err(Failure::from)?,
        })
    }

    /// The same points with a weight each.
    fn with_weights(&self, weights: Vec<f32>) -> PyResult<Self> {
        let data = self.data.clone().with_weights(weights);
        Ok(Dataset {
            data: data.map_err(Failure::from)?,
        })
    }

    #[getter]
    fn n_points(&self) -> usize {
        self.data.n_points()
    }

    #[getter]
    fn n_labels(&self) -> usize {
        self.data.n_labels()
    }
}

/// The texts of a list.
pub(crate) fn texts_of(list: &Bound<'_, PyList>) -> PyResult<Texts> {
    let mut texts = Texts::default();
    for (text_idx, text) in list.iter().enumerate() {
        let Ok(text) = text.cast::<PyString>() else {
            let kind = text.get_type().name()?;
            return Err(value_error(format!(
                "text {text_idx} is of type {kind}, expected a string"
            )));
        };
        let text = text
            .to_str()
            .map_err(|error| value_error(format!("text {text_idx} is not Unicode: {error}")))?;
        texts.push(text);
    }
    Ok(texts)
}

/// Y and the names of its columns, from a list of names per point.
fn labels_of_lists(
    rows: &Bound<'_, PyList>,
    known: Option<&LabelSet>,
) -> PyResult<(CsrMatrix, LabelSet)> {
    let mut label_set = known.cloned().unwrap_or_default();
    let mut matrix = CsrBuilder::default();
    let mut row: Vec<(u32, f32)> = Vec::new();
    for (point_idx, labels) in rows.iter().enumerate() {
        read_row(&labels, &mut label_set, &mut row).map_err(|problem| problem.at(point_idx))?;
        // Of a label named twice, the higher relevance.
        row.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        row.dedup_by_key(|(label, _)| *label);
        matrix.push_row(row.drain(..));
    }
    let matrix = matrix.finish(label_set.len()).map_err(Failure::from)?;
    Ok((matrix, label_set))
}

/// An error in the labels of a point.
enum RowProblem {
    /// They are not what they should be.
    Unusable(String),
    /// Python itself says it.
    Raised(PyErr),
}

impl From<PyErr> for RowProblem {
    fn from(error: PyErr) -> Self {
        RowProblem::Raised(error)
    }
}

impl RowProblem {
    fn at(self, point_idx: usize) -> PyErr {
        match self {
            RowProblem::Raised(error) => error,
            RowProblem::Unusable(problem) => {
                value_error(format!("labels of point {point_idx}: {problem}"))
            }
        }
    }
}

/// The labels of one point: one name, names, or names with their relevance.
fn read_row(
    labels: &Bound<'_, PyAny>,
    label_set: &mut LabelSet,
    row: &mut Vec<(u32, f32)>,
) -> Result<(), RowProblem> {
    if labels.is_instance_of::<PyString>() || labels.is_instance_of::<PyInt>() {
        row.push((intern(labels, label_set)?, 1.0));
        return Ok(());
    }
    if let Ok(weighted) = labels.cast::<PyDict>() {
        for (label, relevance) in weighted.iter() {
            let Ok(relevance) = relevance.extract::<f32>() else {
                return Err(RowProblem::Unusable(format!(
                    "found the relevance {relevance}, expected a number"
                )));
            };
            if !(0.0..f32::INFINITY).contains(&relevance) {
                return Err(RowProblem::Unusable(format!(
                    "found the relevance {relevance}, expected a finite number of at least 0"
                )));
            }
            if relevance > 0.0 {
                row.push((intern(&label, label_set)?, relevance));
            }
        }
        return Ok(());
    }
    let Ok(names) = labels.try_iter() else {
        let kind = labels.get_type().name()?;
        return Err(RowProblem::Unusable(format!(
            "found {kind}, expected a list of strings"
        )));
    };
    for label in names {
        row.push((intern(&label?, label_set)?, 1.0));
    }
    Ok(())
}

/// The id of a label given as a string or as an integer.
fn intern(label: &Bound<'_, PyAny>, label_set: &mut LabelSet) -> Result<u32, RowProblem> {
    if let Ok(name) = label.cast::<PyString>() {
        let name = name.to_str().map_err(|error| {
            RowProblem::Unusable(format!("found a label that is not Unicode: {error}"))
        })?;
        return Ok(label_set.intern(name).0);
    }
    // NumPy's integers, too.
    if label.hasattr("__index__")? {
        return Ok(label_set.intern(label.str()?.to_str()?).0);
    }
    let kind = label.get_type().name()?;
    Err(RowProblem::Unusable(format!(
        "found a label of type {kind}, expected a string"
    )))
}

/// Y over the labels of a model, or over those that are named, or over numbers.
fn labels_of_matrix(
    matrix: &CsrMatrix,
    names: Option<&Bound<'_, PyList>>,
    known: Option<&LabelSet>,
) -> PyResult<(CsrMatrix, LabelSet)> {
    let n_cols = matrix.n_cols();
    let mut label_set = known.cloned().unwrap_or_default();
    let columns: Vec<u32> = match (names, known) {
        (Some(names), _) if names.len() != n_cols => {
            let n_names = names.len();
            return Err(value_error(format!(
                "{n_names} label names for a matrix of {n_cols} columns"
            )));
        }
        (Some(names), _) => {
            let names = texts_of(names)?;
            names.iter().map(|name| label_set.intern(name).0).collect()
        }
        (None, Some(known)) if known.len() != n_cols => {
            let n_labels = known.len();
            return Err(value_error(format!(
                "a label matrix of {n_cols} columns for a model of {n_labels} labels: give label_names"
            )));
        }
        (None, Some(_)) => (0..n_cols as u32).collect(),
        (None, None) => (0..n_cols)
            .map(|column| label_set.intern(&column.to_string()).0)
            .collect(),
    };
    let mut renumbered = CsrBuilder::default();
    let mut row: Vec<(u32, f32)> = Vec::new();
    for row_idx in 0..matrix.n_rows() {
        let (labels, values) = matrix.row(row_idx);
        let labels = labels.iter().map(|&label| columns[label as usize]);
        row.extend(labels.zip(values.iter().copied()));
        row.sort_unstable_by_key(|(label, _)| *label);
        row.dedup_by_key(|(label, _)| *label);
        renumbered.push_row(row.drain(..).filter(|(_, relevance)| *relevance != 0.0));
    }
    let matrix = renumbered.finish(label_set.len()).map_err(Failure::from)?;
    Ok((matrix, label_set))
}
