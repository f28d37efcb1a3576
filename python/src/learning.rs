//! Learning from corrections, in memory and in the directory of a model.

use std::path::PathBuf;

use elias::{Correction, Predictor};
use pyo3::prelude::*;

use crate::border::run;
use crate::model::Core;

/// A text with the names of accepted and of rejected labels.
pub(crate) type Listed = (String, Vec<String>, Vec<String>);

pub(crate) fn to_corrections(listed: Vec<Listed>) -> Vec<Correction> {
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

impl Core {
    /// The same model in memory after it has learned.
    pub(crate) fn learned(
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
}
