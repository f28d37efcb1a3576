//! Arrow batches in and out, by the PyCapsule interface: no Python object per text or label.
//!
//! The only unsafe code of the package: the interface hands over C structures by pointer. What comes in is checked in
//! full before it is read, text encoding included.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array, ArrayRef, Float32Array, ListArray, RecordBatch, RecordBatchIterator, StringArray,
    StructArray, make_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use elias::data::Texts;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::border::run;
use crate::errors::{Failure, value_error};
use crate::model::{Core, Options};

/// A batch of answers, which Arrow's libraries take by the PyCapsule interface.
#[pyclass(frozen, module = "elias_xmc._elias")]
pub(crate) struct ArrowBatch {
    batch: RecordBatch,
}

#[pymethods]
impl ArrowBatch {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref());
        PyCapsule::new_with_value(py, schema.map_err(refused)?, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The interface lets a producer ignore the request.
        drop(requested_schema);
        let array = StructArray::from(self.batch.clone());
        let (array, schema) = to_ffi(&array.into_data()).map_err(refused)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The best labels of each text of a batch: the columns `labels`, `scores` and `probabilities`, lists of equal length.
#[pyfunction]
#[pyo3(signature = (model, batch, options, column=None))]
pub(crate) fn predict_arrow(
    py: Python<'_>,
    model: &Core,
    batch: &Bound<'_, PyAny>,
    options: Options,
    column: Option<&str>,
) -> PyResult<ArrowBatch> {
    let query = model.query(&options)?;
    let mut texts = Texts::default();
    for array in arrays_of(batch)? {
        read_texts(&array, column, &mut texts)?;
    }
    let batch = run(py, options.threads, || {
        let answers = model.predictor.predict_batch(&texts, &query)?;
        let (mut labels, mut scores, mut probabilities) = (Vec::new(), Vec::new(), Vec::new());
        let mut lengths = Vec::with_capacity(answers.len());
        for answers in &answers {
            let n_before = scores.len();
            for answer in answers {
                labels.push(answer.label);
                scores.push(answer.score);
                probabilities.push(answer.probability);
            }
            lengths.push(scores.len() - n_before);
        }
        if i32::try_from(scores.len()).is_err() {
            return Err(Failure::value(
                "too many answers for one batch: give fewer rows",
            ));
        }
        let lists = |values: ArrayRef| -> ArrayRef {
            let item = Field::new("item", values.data_type().clone(), true);
            let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
            Arc::new(ListArray::new(Arc::new(item), offsets, values, None))
        };
        let columns = [
            (
                "labels",
                lists(Arc::new(StringArray::from_iter_values(labels))),
            ),
            ("scores", lists(Arc::new(Float32Array::from(scores)))),
            (
                "probabilities",
                lists(Arc::new(Float32Array::from(probabilities))),
            ),
        ];
        let fields = columns
            .iter()
            .map(|(name, column)| Field::new(*name, column.data_type().clone(), false));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::new(schema), columns);
        batch.map_err(|error| Failure::other(error.to_string()))
    })?;
    Ok(ArrowBatch { batch })
}

/// The arrays of an object with the PyCapsule interface.
fn arrays_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if object.hasattr("__arrow_c_array__")? {
        let capsules = object.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?;
        let array = array.pointer_checked(Some(c"arrow_array"))?;
        #[allow(unsafe_code)]
        // SAFETY: capsules of these names hold these structures, alive as long as the capsules, which are in scope; the
        // array is moved out of its capsule, as the interface asks of a consumer.
        let data = unsafe {
            let array = FFI_ArrowArray::from_raw(array.cast().as_ptr());
            from_ffi(array, schema.cast::<FFI_ArrowSchema>().as_ref())
        };
        return Ok(vec![make_array(data.map_err(refused)?)]);
    }
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        #[allow(unsafe_code)]
        // SAFETY: as above; the stream is moved out of its capsule.
        let reader = unsafe { ArrayStreamReader::from_raw(stream.cast().as_ptr()) };
        let arrays: Result<_, ArrowError> = reader.map_err(refused)?.collect();
        return arrays.map_err(refused);
    }
    let kind = object.get_type().name()?;
    Err(value_error(format!(
        "found {kind}, expected Arrow data: a record batch, a table, a data frame or an array of strings"
    )))
}

/// Appends the texts of an array of strings, or of a column of a batch.
fn read_texts(array: &ArrayRef, column: Option<&str>, texts: &mut Texts) -> PyResult<()> {
    let array = match array.as_struct_opt() {
        None => array,
        Some(batch) => find_column(batch, column)?,
    };
    array.to_data().validate_full().map_err(refused)?;
    let first = texts.len();
    let is_read = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(push(texts)),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().try_for_each(push(texts)),
        DataType::Utf8View => array.as_string_view().iter().try_for_each(push(texts)),
        other => {
            return Err(value_error(format!(
                "a column of type {other}, expected strings"
            )));
        }
    };
    is_read.ok_or_else(|| value_error(format!("row {} has no text", texts.len().max(first))))
}

/// Appends a text; None if it is missing.
fn push<'a>(texts: &mut Texts) -> impl FnMut(Option<&'a str>) -> Option<()> {
    |text| {
        texts.push(text?);
        Some(())
    }
}

/// The column of this name; without one, `text`, or the only one there is.
fn find_column<'a>(batch: &'a StructArray, name: Option<&str>) -> PyResult<&'a ArrayRef> {
    let found = batch.column_by_name(name.unwrap_or("text"));
    let only = batch.columns().first().filter(|_| {
        let is_only = batch.num_columns() == 1;
        is_only && name.is_none()
    });
    found.or(only).ok_or_else(|| {
        let names = batch.column_names().join(", ");
        let name = name.unwrap_or("text");
        value_error(format!("no column {name}; the columns are {names}"))
    })
}

fn refused(error: ArrowError) -> PyErr {
    value_error(format!("Arrow: {error}"))
}
