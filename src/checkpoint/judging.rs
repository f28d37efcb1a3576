//! Judges and neighbours as tensors.

use super::tensors::{Tensor, TensorFile, Values};
use crate::error::Result;
use crate::judge::{DEPTH, Judge, Tree};
use crate::matrix::CsrMatrix;
use crate::neighbours::{NeighbourParts, Neighbours};

/// A judge, column by column.
pub(super) struct JudgeColumns {
    start: [f32; 1],
    columns: Vec<u32>,
    thresholds: Vec<f32>,
    leaves: Vec<f32>,
}

impl From<&Judge> for JudgeColumns {
    fn from(judge: &Judge) -> Self {
        let trees = judge.trees().iter();
        JudgeColumns {
            start: [judge.start()],
            columns: trees.clone().flat_map(|tree| tree.columns).collect(),
            thresholds: trees.clone().flat_map(|tree| tree.thresholds).collect(),
            leaves: trees.flat_map(|tree| tree.leaves).collect(),
        }
    }
}

impl JudgeColumns {
    /// As tensors.
    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![
            Tensor::list("judge.start", Values::F32(&self.start)),
            Tensor::list("judge.columns", Values::U32(&self.columns)),
            Tensor::list("judge.thresholds", Values::F32(&self.thresholds)),
            Tensor::list("judge.leaves", Values::F32(&self.leaves)),
        ]
    }
}

/// Reads a judge.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(super) fn read_judge(file: &mut TensorFile) -> Result<Judge> {
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
    Judge::from_parts(start, trees)
}

/// Writes neighbours; `ends` are the row offsets of their labels.
pub(super) fn neighbour_tensors<'a>(
    neighbours: &'a Neighbours,
    ends: &'a [u64],
) -> Vec<Tensor<'a>> {
    let (starts, points, weights, labels) = neighbours.parts();
    vec![
        Tensor::list("neighbours.starts", Values::U64(starts)),
        Tensor::list("neighbours.label_ends", Values::U64(ends)),
        Tensor {
            name: "neighbours.points".into(),
            shape: vec![1, points.len()],
            values: Values::U32(points),
        },
        Tensor::matrix("neighbours.weights", (1, weights.len()), weights),
        Tensor::list("neighbours.labels", Values::U32(labels.indices())),
    ]
}

/// Reads neighbours.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(super) fn read_neighbours(
    file: &mut TensorFile,
    n_words: usize,
    n_labels: usize,
) -> Result<Neighbours> {
    let starts = file.large_numbers("neighbours.starts", n_words.saturating_add(1))?;
    let n_postings = starts.last().map_or(0, |&end| end as usize);
    let n_ends = file.len("neighbours.label_ends")?;
    let ends = file.large_numbers("neighbours.label_ends", n_ends)?;
    let n_entries = file.len("neighbours.labels")?;
    let labels = file.numbers("neighbours.labels", n_entries)?;
    let ends = ends.iter().map(|&end| end as usize).collect();
    Neighbours::from_parts(NeighbourParts {
        starts,
        points: file.number_matrix("neighbours.points", (1, n_postings))?,
        weights: file.matrix("neighbours.weights", (1, n_postings))?,
        labels: CsrMatrix::new(ends, labels, vec![1.0; n_entries], n_labels)?,
    })
}
