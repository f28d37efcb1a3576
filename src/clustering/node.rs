//! A node of the recursive halving: some labels and their centroids.
//!
//! A child keeps only the columns that its labels use, so that deep in the tree, where nodes are many and small, the
//! cost of a round depends on the node's entries and not on the size of the vocabulary.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::clustering::two_means::MIN_LABELS_PER_TASK;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};

/// Some labels and their centroids.
///
/// Invariant: as many rows as labels; labels ascend.
pub(super) struct Node<'a> {
    pub(super) labels: Vec<LabelId>,
    /// The labels' centroids, over some of the columns.
    pub(super) rows: Cow<'a, CsrMatrix>,
}

impl Node<'_> {
    /// The node of these rows, which must ascend.
    pub(super) fn select(&self, rows: &[u32]) -> Node<'static> {
        let mut new_column = vec![0u32; self.rows.n_cols()];
        let mut n_entries = 0;
        for &row in rows {
            let columns = self.rows.row(row as usize).0;
            n_entries += columns.len();
            for &column in columns {
                new_column[column as usize] = 1;
            }
        }
        let mut n_columns = 0;
        for place in &mut new_column {
            let is_used = *place;
            *place = n_columns;
            n_columns += is_used;
        }
        let mut builder = CsrBuilder::with_capacity(rows.len(), n_entries);
        for &row in rows {
            let (columns, values) = self.rows.row(row as usize);
            let columns = columns.iter().map(|&column| new_column[column as usize]);
            builder.push_row(columns.zip(values.iter().copied()));
        }
        let rows_kept = builder
            .finish(n_columns as usize)
            .expect("renumbered columns still ascend");
        Node {
            labels: rows.iter().map(|&row| self.labels[row as usize]).collect(),
            rows: Cow::Owned(rows_kept),
        }
    }

    /// `vector · x` for the row `x`.
    pub(super) fn dot(&self, row: u32, vector: &[f32]) -> f32 {
        let (columns, values) = self.rows.row(row as usize);
        // Four independent sums, so that additions need not wait for each other.
        let mut sums = [0.0; 4];
        let (columns, columns_left) = columns.as_chunks::<4>();
        let (values, values_left) = values.as_chunks::<4>();
        for (columns, values) in columns.iter().zip(values) {
            for lane in 0..4 {
                sums[lane] += vector[columns[lane] as usize] * values[lane];
            }
        }
        for (&column, &value) in columns_left.iter().zip(values_left) {
            sums[0] += vector[column as usize] * value;
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }

    /// Adds `factor` times a row.
    pub(super) fn add(&self, row: u32, factor: f32, sum: &mut [f32]) {
        let (columns, values) = self.rows.row(row as usize);
        for (&column, &value) in columns.iter().zip(values) {
            sum[column as usize] += factor * value;
        }
    }

    /// Σ of these rows, in blocks that depend on the number of rows only and are added in order.
    pub(super) fn sum(&self, rows: &[u32]) -> Vec<f32> {
        let sum_block = |block: &[u32]| {
            let mut sum = vec![0.0; self.rows.n_cols()];
            for &row in block {
                self.add(row, 1.0, &mut sum);
            }
            sum
        };
        let block_size = rows.len().div_ceil(MAX_BLOCKS).max(MIN_LABELS_PER_TASK);
        let blocks: Vec<Vec<f32>> = rows.par_chunks(block_size).map(sum_block).collect();
        let mut blocks = blocks.into_iter();
        let mut sum = blocks.next().unwrap_or_else(|| sum_block(&[]));
        for block in blocks {
            for (place, value) in sum.iter_mut().zip(block) {
                *place += value;
            }
        }
        sum
    }
}

/// A block costs a dense vector; this many keep many threads busy at the root.
const MAX_BLOCKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_keeps_its_rows_and_drops_unused_columns() {
        let rows = CsrMatrix::new(
            vec![0, 2, 3, 5],
            vec![0, 4, 1, 2, 4],
            vec![1.0, 2.0, 3.0, 4.0, 5.0],
            6,
        )
        .unwrap();
        let node = Node {
            labels: vec![LabelId(3), LabelId(5), LabelId(8)],
            rows: Cow::Owned(rows),
        };
        let child = node.select(&[0, 2]);
        assert_eq!(child.labels, [LabelId(3), LabelId(8)]);
        let expected =
            CsrMatrix::new(vec![0, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 4.0, 5.0], 3).unwrap();
        assert_eq!(*child.rows, expected);
        assert_eq!(child.sum(&[0, 1]), [1.0, 4.0, 7.0]);
        assert_eq!(child.dot(1, &[9.0, 2.0, 1.0]), 13.0);
    }

    #[test]
    fn dot_products_include_every_entry() {
        for n_columns in 0..13usize {
            let columns = (0..n_columns as u32).collect();
            let values = (1..=n_columns).map(|value| value as f32).collect();
            let rows = CsrMatrix::new(vec![0, n_columns], columns, values, n_columns).unwrap();
            let node = Node {
                labels: vec![LabelId(0)],
                rows: Cow::Owned(rows),
            };
            let expected = (n_columns * (n_columns + 1)) as f32;
            assert_eq!(node.dot(0, &vec![2.0; n_columns]), expected);
        }
    }
}
