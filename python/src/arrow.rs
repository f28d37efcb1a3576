//! Arrow batches in and out, by the PyCapsule interface: no Python object per text or label.

use pyo3::prelude::*;

/// A batch of answers, which Arrow's libraries take by the PyCapsule interface.
#[pyclass(frozen, module = "elias_xmc._elias")]
pub(crate) struct ArrowBatch {}
