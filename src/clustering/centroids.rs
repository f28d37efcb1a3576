//! Label centroids: the normalised sum of the features of a label's points.
//!
//! For a label ℓ the centroid is Σ ψ(x) over its points, divided by its norm, with ψ(x) = [bow/‖bow‖, φ/‖φ‖]. Each
//! point is weighted by its relevance for the label, 1 by default.

use rayon::prelude::*;

use crate::matrix::{CsrBuilder, CsrMatrix, Matrix};

/// ψ, the features of the points: sparse ones, followed by embeddings if there is an encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointFeatures<'a> {
    /// bow, N×D; need not be normalised.
    pub sparse: &'a CsrMatrix,
    /// φ, N×d; need not be normalised.
    pub dense: Option<&'a Matrix>,
}

/// The centroids of all labels, L×(D+d): rows of L2 norm 1, or empty for a label whose points have no features.
///
/// `labels` is Y, N×L.
///
/// # Panics
/// If labels and features have different numbers of rows.
pub(crate) fn label_centroids(labels: &CsrMatrix, points: PointFeatures) -> CsrMatrix {
    let PointFeatures { sparse, dense } = points;
    assert_eq!(labels.n_rows(), sparse.n_rows(), "label and feature rows");
    if let Some(dense) = dense {
        assert_eq!(labels.n_rows(), dense.n_rows(), "label and embedding rows");
    }
    let n_columns = sparse.n_cols() + dense.map_or(0, Matrix::n_cols);
    let sparse_scales: Vec<f32> = (0..sparse.n_rows())
        .map(|point_idx| inverse_norm(sparse.row(point_idx).1))
        .collect();
    let dense_scales: Vec<f32> = dense.map_or(Vec::new(), |dense| {
        (0..dense.n_rows())
            .map(|point_idx| inverse_norm(dense.row(point_idx)))
            .collect()
    });

    let points_of = labels.transpose();
    let label_idxs: Vec<usize> = (0..points_of.n_rows()).collect();
    let blocks: Vec<Vec<(u32, f32)>> = label_idxs
        .par_iter()
        .map_init(
            || SparseSum::new(n_columns),
            |sum, &label_idx| {
                let (label_points, relevances) = points_of.row(label_idx);
                for (&point, &relevance) in label_points.iter().zip(relevances) {
                    let point_idx = point as usize;
                    let (columns, values) = sparse.row(point_idx);
                    let scale = relevance * sparse_scales[point_idx];
                    for (&column, &value) in columns.iter().zip(values) {
                        sum.add(column, scale * value);
                    }
                    if let Some(dense) = dense {
                        let scale = relevance * dense_scales[point_idx];
                        let first = sparse.n_cols() as u32;
                        for (column, &value) in (first..).zip(dense.row(point_idx)) {
                            sum.add(column, scale * value);
                        }
                    }
                }
                sum.take_normalized()
            },
        )
        .collect();

    let n_entries = blocks.iter().map(Vec::len).sum();
    let mut builder = CsrBuilder::with_capacity(blocks.len(), n_entries);
    for row in blocks {
        builder.push_row(row);
    }
    builder
        .finish(n_columns)
        .expect("columns ascend and a normalised sum is finite")
}

/// 1/‖values‖, or 0 for a zero vector. Summed in `f64`.
fn inverse_norm(values: &[f32]) -> f32 {
    let squares: f64 = values
        .iter()
        .map(|&value| f64::from(value) * f64::from(value))
        .sum();
    if squares == 0.0 {
        0.0
    } else {
        (1.0 / squares.sqrt()) as f32
    }
}

/// A sum of sparse vectors, in a dense array.
struct SparseSum {
    values: Vec<f32>,
    /// One bit per column: whether something was added there.
    touched: Vec<u64>,
    /// The words of `touched` that are not 0, in no order.
    touched_words: Vec<u32>,
}

impl SparseSum {
    fn new(n_columns: usize) -> Self {
        SparseSum {
            values: vec![0.0; n_columns],
            touched: vec![0; n_columns.div_ceil(64)],
            touched_words: Vec::new(),
        }
    }

    #[inline]
    fn add(&mut self, column: u32, value: f32) {
        self.values[column as usize] += value;
        let word = &mut self.touched[column as usize / 64];
        if *word == 0 {
            self.touched_words.push(column / 64);
        }
        *word |= 1 << (column % 64);
    }

    /// The normalised sum, by ascending column; empty if it is zero. Resets the sum.
    fn take_normalized(&mut self) -> Vec<(u32, f32)> {
        let mut row = Vec::new();
        self.touched_words.sort_unstable();
        for word_idx in self.touched_words.drain(..) {
            let mut word = std::mem::take(&mut self.touched[word_idx as usize]);
            while word != 0 {
                let column = word_idx * 64 + word.trailing_zeros();
                let value = std::mem::take(&mut self.values[column as usize]);
                if value != 0.0 {
                    row.push((column, value));
                }
                word &= word - 1;
            }
        }
        let squares: f64 = row
            .iter()
            .map(|&(_, value)| f64::from(value) * f64::from(value))
            .sum();
        let scale = 1.0 / squares.sqrt();
        for (_, value) in &mut row {
            *value = (f64::from(*value) * scale) as f32;
        }
        row
    }
}
