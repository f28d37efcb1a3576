//! Boosted trees as tensors.

use crate::candidates::{BoostedTrees, DEPTH, Tree};
use crate::error::Result;
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
            Tensor::list("boosted.start", Values::F32(&self.start)),
            Tensor::list("boosted.columns", Values::U32(&self.columns)),
            Tensor::list("boosted.thresholds", Values::F32(&self.thresholds)),
            Tensor::list("boosted.leaves", Values::F32(&self.leaves)),
        ]
    }
}

/// Reads boosted trees.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_boosted(file: &mut TensorFile) -> Result<BoostedTrees> {
    let n_trees = file.len("boosted.columns")? / DEPTH;
    let start = file.floats("boosted.start", 1)?[0];
    let columns = file.numbers("boosted.columns", n_trees * DEPTH)?;
    let thresholds = file.floats("boosted.thresholds", n_trees * DEPTH)?;
    let leaves = file.floats("boosted.leaves", n_trees << DEPTH)?;
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
