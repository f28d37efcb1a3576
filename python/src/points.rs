//! Points as Python gives them, and as the library takes them.

use elias::Inputs;
use elias::data::{CsrMatrix, TextEmbeddings, Texts};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::dataset::texts_of;
use crate::errors::value_error;
use crate::matrices::{csr, dense};

/// Texts, texts with embeddings, or sparse features.
pub(crate) enum Points {
    Texts(Texts),
    Embedded(Texts, TextEmbeddings),
    Features(CsrMatrix),
}

impl Points {
    /// The points of a list of texts, of a dictionary of such a list and an array of embeddings, or of the tuple of a
    /// matrix.
    pub(crate) fn of(points: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(both) = points.cast::<PyDict>() {
            let part = |key| both.as_any().get_item(key);
            let texts = texts_of(part("texts")?.cast::<PyList>()?)?;
            let embeddings = dense(&part("dense")?)?;
            let (n_found, n_texts) = (embeddings.len(), texts.len());
            if n_found != n_texts {
                let problem = format!("X_dense: found {n_found} rows for {n_texts} texts");
                return Err(value_error(problem));
            }
            return Ok(Points::Embedded(texts, embeddings));
        }
        match points.cast::<PyList>() {
            Ok(texts) => Ok(Points::Texts(texts_of(texts)?)),
            Err(_) => Ok(Points::Features(csr(points.cast::<PyTuple>()?)?)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Points::Texts(texts) | Points::Embedded(texts, _) => texts.len(),
            Points::Features(features) => features.n_rows(),
        }
    }

    /// Some of the points.
    pub(crate) fn batch(&self, first: usize, end: usize) -> Points {
        match self {
            Points::Texts(texts) => Points::Texts((first..end).map(|at| texts.get(at)).collect()),
            Points::Embedded(texts, embeddings) => {
                let rows: Vec<usize> = (first..end).collect();
                let texts = rows.iter().map(|&at| texts.get(at)).collect();
                Points::Embedded(texts, embeddings.select(&rows))
            }
            Points::Features(features) => {
                let rows: Vec<usize> = (first..end).collect();
                Points::Features(features.select_rows(&rows))
            }
        }
    }

    pub(crate) fn inputs(&self) -> Inputs<'_> {
        match self {
            Points::Texts(texts) => texts.into(),
            Points::Embedded(texts, embeddings) => Inputs::Embedded(texts, embeddings),
            Points::Features(features) => features.into(),
        }
    }
}
