//! Boosted trees, and rows by their words, as tensors.

use crate::candidates::{BoostedTrees, DEPTH, Tree};
use crate::error::Result;
use crate::matrix::CsrMatrix;
use crate::neighbours::Postings;
use crate::store::format::tensors::{Tensor, TensorFile, Values};

/// Boosted trees, column by column.
pub(crate) struct BoostedColumns {
    start: [f32; 1],
    columns: Vec<u32>,
    thresholds: Vec<f32>,
    leaves: Vec<f32>,
}

impl From<&BoostedTrees> for BoostedColumns {
    fn from(boosted: &BoostedTrees) -> Self {
        let trees = boosted.trees().iter();
        BoostedColumns {
            start: [boosted.start()],
            columns: trees.clone().flat_map(|tree| tree.columns).collect(),
            thresholds: trees.clone().flat_map(|tree| tree.thresholds).collect(),
            leaves: trees.flat_map(|tree| tree.leaves).collect(),
        }
    }
}

impl BoostedColumns {
    /// As tensors.
    pub(crate) fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![
            Tensor::list("judge.start", Values::F32(&self.start)),
            Tensor::list("judge.columns", Values::U32(&self.columns)),
            Tensor::list("judge.thresholds", Values::F32(&self.thresholds)),
            Tensor::list("judge.leaves", Values::F32(&self.leaves)),
        ]
    }
}

/// Reads boosted trees.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_boosted(file: &mut TensorFile) -> Result<BoostedTrees> {
    let n_trees = file.len("judge.columns")? / DEPTH;
    let start = file.floats("judge.start", 1)?[0];
    let columns = file.numbers("judge.columns", n_trees * DEPTH)?;
    let thresholds = file.floats("judge.thresholds", n_trees * DEPTH)?;
    let leaves = file.floats("judge.leaves", n_trees << DEPTH)?;
    let mut trees = Vec::with_capacity(n_trees);
    let (columns, _) = columns.as_chunks();
    let (thresholds, _) = thresholds.as_chunks();
    let (leaves, _) = leaves.as_chunks();
    for ((&columns, &thresholds), &leaves) in columns.iter().zip(thresholds).zip(leaves) {
        trees.push(Tree {
            columns,
            thresholds,
            leaves,
        });
    }
    BoostedTrees::from_parts(start, trees)
}

/// Rows by their words, as tensors with a prefix; the rows themselves are `matrix`, with `ends` as its offsets.
pub(crate) fn posting_tensors<'a>(
    prefix: &str,
    postings: &'a Postings,
    matrix: &'a CsrMatrix,
    ends: &'a [u64],
) -> Vec<Tensor<'a>> {
    let named = |name: &str| format!("{prefix}.{name}");
    let (starts, rows, weights) = postings.parts();
    vec![
        Tensor::list(&named("starts"), Values::U64(starts)),
        Tensor::list(&named("ends"), Values::U64(ends)),
        Tensor {
            name: named("rows"),
            shape: vec![1, rows.len()],
            values: Values::U32(rows),
        },
        Tensor::matrix(&named("weights"), (1, weights.len()), weights),
        Tensor::list(&named("columns"), Values::U32(matrix.indices())),
        Tensor::list(&named("values"), Values::F32(matrix.values())),
    ]
}

/// Reads what [`posting_tensors`] writes: an index over `n_words` and a matrix of `n_cols`.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_postings(
    file: &mut TensorFile,
    prefix: &str,
    n_words: usize,
    n_cols: usize,
) -> Result<(Postings, CsrMatrix)> {
    let named = |name: &str| format!("{prefix}.{name}");
    let starts = file.large_numbers(&named("starts"), n_words.saturating_add(1))?;
    let n_postings = starts.last().map_or(0, |&end| end as usize);
    let n_ends = file.len(&named("ends"))?;
    let ends = file.large_numbers(&named("ends"), n_ends)?;
    let n_entries = file.len(&named("columns"))?;
    let columns = file.numbers(&named("columns"), n_entries)?;
    let values = file.floats(&named("values"), n_entries)?;
    let ends = ends.iter().map(|&end| end as usize).collect();
    let matrix = CsrMatrix::new(ends, columns, values, n_cols)?;
    let rows = file.number_matrix(&named("rows"), (1, n_postings))?;
    let weights = file.matrix(&named("weights"), (1, n_postings))?;
    let postings = Postings::from_parts(starts, rows, weights, matrix.n_rows())?;
    Ok((postings, matrix))
}
