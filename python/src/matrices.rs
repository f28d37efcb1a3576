//! SciPy's CSR arrays in and out.
//!
//! A matrix comes as the tuple `(indptr, indices, data, n_cols)` with row offsets and columns of 32 or 64 bits, as SciPy
//! gives either; rows must be sorted and without duplicates, which the Python half sees to.

use elias::data::{CsrMatrix, TextEmbeddings};
use elias::{Prediction, Predictions};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{Failure, value_error};

/// The matrix of a tuple `(indptr, indices, data, n_cols)`.
pub(crate) fn csr(parts: &Bound<'_, PyTuple>) -> PyResult<CsrMatrix> {
    let (indptr, indices, data, n_cols): (
        Bound<'_, PyAny>,
        Bound<'_, PyAny>,
        Bound<'_, PyAny>,
        usize,
    ) = parts.extract()?;
    let indptr = integers(&indptr, "row offset", usize::MAX)?;
    let indices = integers(&indices, "column", u32::MAX as usize)?;
    let indices = indices.into_iter().map(|column| column as u32).collect();
    let data: PyReadonlyArray1<'_, f32> = data.extract()?;
    let data = data.as_array().to_vec();
    let matrix = CsrMatrix::new(indptr, indices, data, n_cols);
    Ok(matrix.map_err(Failure::from)?)
}

/// The embeddings of texts in an array of 32-bit floats with a row per text.
pub(crate) fn dense(array: &Bound<'_, PyAny>) -> PyResult<TextEmbeddings> {
    let array: PyReadonlyArray2<'_, f32> = array.extract()?;
    let dim = array.shape()[1];
    let values = array.as_array().iter().copied().collect();
    Ok(TextEmbeddings::new(values, dim).map_err(Failure::from)?)
}

/// The numbers of an array of 32 or 64 bits.
fn integers(array: &Bound<'_, PyAny>, what: &str, max: usize) -> PyResult<Vec<usize>> {
    let checked = |number: i64| match usize::try_from(number) {
        Ok(number) if number <= max => Ok(number),
        _ => Err(value_error(format!(
            "a sparse matrix with the {what} {number}"
        ))),
    };
    if let Ok(array) = array.extract::<PyReadonlyArray1<'_, i32>>() {
        let numbers = array.as_array();
        return numbers
            .iter()
            .map(|&number| checked(number.into()))
            .collect();
    }
    let array: PyReadonlyArray1<'_, i64> = array.extract()?;
    let numbers = array.as_array();
    numbers.iter().map(|&number| checked(number)).collect()
}

/// Rankings as the arrays of a matrix with sorted columns.
pub(crate) struct Rows {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    data: Vec<f32>,
}

impl Rows {
    /// No rows, with room for so many values.
    pub(crate) fn with_capacity(n_rows: usize, n_values: usize) -> Self {
        let mut indptr = Vec::with_capacity(n_rows + 1);
        indptr.push(0);
        Rows {
            indptr,
            indices: Vec::with_capacity(n_values),
            data: Vec::with_capacity(n_values),
        }
    }

    /// Appends the answers to a point, each with this value.
    pub(crate) fn push(
        &mut self,
        Predictions { mut labels, .. }: Predictions<'_>,
        value: impl Fn(&Prediction<'_>) -> f32,
    ) {
        labels.sort_unstable_by_key(|answer| answer.id);
        for answer in labels {
            // SciPy's columns are signed; a model of more labels would take terabytes.
            self.indices.push(answer.id.0 as i32);
            self.data.push(value(&answer));
        }
        self.indptr.push(self.indices.len() as i64);
    }

    /// `(indptr, indices, data)` as NumPy arrays, without a copy; both index arrays have the same type, as SciPy wants.
    pub(crate) fn into_arrays(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        let data = self.data.into_pyarray(py).into_any();
        let (indptr, indices) = if i32::try_from(self.indices.len()).is_ok() {
            let indptr: Vec<i32> = self.indptr.into_iter().map(|end| end as i32).collect();
            let indptr = indptr.into_pyarray(py).into_any();
            (indptr, self.indices.into_pyarray(py).into_any())
        } else {
            let indices: Vec<i64> = self.indices.into_iter().map(i64::from).collect();
            let indptr = self.indptr.into_pyarray(py).into_any();
            (indptr, indices.into_pyarray(py).into_any())
        };
        PyTuple::new(py, [indptr, indices, data])
    }
}
