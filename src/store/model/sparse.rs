//! Sparse matrices as tensors: the length of every row, columns as gaps, and values in full, as whole steps, or not at
//! all where every value is 1.

use crate::error::Result;
use crate::matrix::{CsrMatrix, columns_of, offsets_of, steps_of};
use crate::store::format::tensors::{Tensor, TensorFile, Values};

/// The entries that share a step, if values are multiples of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOf {
    Row,
    Column,
}

impl StepOf {
    fn choose<T>(self, row: T, column: T) -> T {
        match self {
            StepOf::Row => row,
            StepOf::Column => column,
        }
    }
}

/// A sparse matrix that is not held as it is stored.
pub(crate) struct StoredSparse<'a> {
    lengths: Vec<u8>,
    gaps: Vec<u8>,
    values: StoredValues,
    steps: Option<&'a [f32]>,
}

enum StoredValues {
    Ones,
    Full(Vec<f32>),
    Eight(Vec<i8>),
}

impl<'a> StoredSparse<'a> {
    /// A matrix whose values are multiples of these steps, if there are any.
    pub(crate) fn new(matrix: &CsrMatrix, steps: Option<&'a [f32]>, of: StepOf) -> Self {
        let values = match steps {
            Some(steps) => {
                let mut whole = Vec::with_capacity(matrix.nnz());
                for row_idx in 0..matrix.n_rows() {
                    let (columns, values) = matrix.row(row_idx);
                    whole.extend(columns.iter().zip(values).map(|(&column, &value)| {
                        steps_of(value, steps[of.choose(row_idx, column as usize)])
                    }));
                }
                StoredValues::Eight(whole)
            }
            None if matrix.values().iter().all(|value| *value == 1.0) => StoredValues::Ones,
            None => StoredValues::Full(matrix.values().to_vec()),
        };
        StoredSparse {
            lengths: matrix.lengths(),
            gaps: matrix.gaps(),
            values,
            steps,
        }
    }

    /// The tensors `PREFIX.lengths`, `PREFIX.gaps`, and as they are needed `PREFIX.weight` and `PREFIX.step`.
    pub(crate) fn tensors(&self, prefix: &str) -> Vec<Tensor<'_>> {
        let list = |part: &str, values| Tensor::list(&format!("{prefix}.{part}"), values);
        let mut tensors = vec![
            list("lengths", Values::U8(&self.lengths)),
            list("gaps", Values::U8(&self.gaps)),
        ];
        match &self.values {
            StoredValues::Ones => {}
            StoredValues::Full(values) => tensors.push(list("weight", Values::F32(values))),
            StoredValues::Eight(values) => tensors.push(list("weight", Values::I8(values))),
        }
        tensors.extend(self.steps.map(|steps| list("step", Values::F32(steps))));
        tensors
    }
}

/// A sparse matrix of a file, and the steps that its values are multiples of, if they are.
pub(crate) struct Sparse {
    pub(crate) matrix: CsrMatrix,
    pub(crate) steps: Option<Vec<f32>>,
}

/// Reads what [`StoredSparse`] writes: `n_rows` rows, or as many as there are.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_sparse(
    file: &mut TensorFile,
    prefix: &str,
    (n_rows, n_cols): (Option<usize>, usize),
    of: StepOf,
) -> Result<Sparse> {
    let named = |part: &str| format!("{prefix}.{part}");
    let offsets = offsets_of(&octets(file, &named("lengths"))?)
        .filter(|offsets| n_rows.is_none_or(|n_rows| offsets.len() - 1 == n_rows))
        .ok_or_else(|| file.bad(&named("lengths"), "they are not those of its rows"))?;
    let columns = columns_of(&octets(file, &named("gaps"))?, &offsets)
        .ok_or_else(|| file.bad(&named("gaps"), "they do not fit the lengths"))?;
    let n_steps = of.choose(offsets.len() - 1, n_cols);
    let (weight, step) = (named("weight"), named("step"));
    let steps = file
        .has(&step)
        .then(|| file.floats(&step, n_steps))
        .transpose()?;
    let values = match &steps {
        None if !file.has(&weight) => vec![1.0; columns.len()],
        None => file.floats(&weight, columns.len())?,
        Some(steps) => {
            let whole = file.small_integers(&weight, columns.len())?;
            let rows = offsets.windows(2).enumerate();
            let rows =
                rows.flat_map(|(row_idx, ends)| std::iter::repeat_n(row_idx, ends[1] - ends[0]));
            let entries = rows.zip(&columns).zip(whole);
            let value = |((row_idx, &column), whole): ((usize, &u32), i8)| {
                // A column that is not there has no step; the matrix refuses it.
                let step = steps.get(of.choose(row_idx, column as usize));
                step.copied().unwrap_or(0.0) * f32::from(whole)
            };
            entries.map(value).collect()
        }
    };
    Ok(Sparse {
        matrix: CsrMatrix::new(offsets, columns, values, n_cols)?,
        steps,
    })
}

fn octets(file: &mut TensorFile, name: &str) -> Result<Vec<u8>> {
    let n_bytes = file.len(name)?;
    file.octets(name, n_bytes)
}
