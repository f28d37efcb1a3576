//! The feature rows ψ of one label's training points, laid out for many passes.
//!
//! ψ = [bow/‖bow‖, φ/‖φ‖]: words are sparse and embeddings dense, and the norms are factors stored with the row, so
//! no row is normalised in memory. For all but the largest labels the rows are copied into one contiguous block with
//! columns renumbered from 0, so that the solver's passes stay in the cache. The largest labels read the shared
//! matrices in place.

use crate::kernels::Kernels;
use crate::matrix::{CsrMatrix, Matrix};

use super::RankerProblem;
use super::training_points::TrainingPoints;

/// 1/‖bow‖ and 1/‖φ‖ of every point; 0 for a zero row.
pub(super) struct InverseNorms {
    words: Vec<f32>,
    dense: Vec<f32>,
}

impl InverseNorms {
    pub(super) fn new(bow: &CsrMatrix, dense: Option<&Matrix>) -> Self {
        let words = (0..bow.n_rows())
            .map(|row_idx| inverse_norm(bow.row(row_idx).1))
            .collect();
        let dense = match dense {
            Some(dense) => (0..dense.n_rows())
                .map(|row_idx| inverse_norm(dense.row(row_idx)))
                .collect(),
            None => vec![0.0; bow.n_rows()],
        };
        InverseNorms { words, dense }
    }
}

/// 1/‖x‖, or 0 if that is not finite.
pub(super) fn inverse_norm(values: &[f32]) -> f32 {
    let squares: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let inverse = (1.0 / squares.sqrt()) as f32;
    if inverse.is_finite() { inverse } else { 0.0 }
}

/// The location and the scales of one training point's row.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    dense_start: usize,
    word_scale: f32,
    dense_scale: f32,
    /// The factor of its loss.
    weight: f32,
}

/// The rows of one label's training points; row `i` is the label's `i`-th point.
pub(super) struct TrainingRows<'a> {
    spans: &'a [Span],
    columns: &'a [u32],
    values: &'a [f32],
    dense: &'a [f32],
    n_dense: usize,
    bias: f32,
    kernels: Kernels,
    /// Number of positives, which come first.
    pub(super) n_positive: usize,
}

/// A linear classifier in training; `words` is indexed by the columns of [`TrainingRows`].
pub(super) struct DualWeights<'a> {
    pub(super) words: &'a mut [f32],
    pub(super) dense: &'a mut [f32],
    /// Weight of the constant feature.
    pub(super) bias: f32,
}

impl TrainingRows<'_> {
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// y of a row: 1 or -1.
    #[inline]
    pub(super) fn sign(&self, row_idx: usize) -> f64 {
        if row_idx < self.n_positive { 1.0 } else { -1.0 }
    }

    /// The factor of a row's loss.
    #[inline]
    pub(super) fn weight(&self, row_idx: usize) -> f32 {
        self.spans[row_idx].weight
    }

    /// ‖ψ‖² including the constant feature.
    #[inline]
    pub(super) fn squared_norm(&self, row_idx: usize) -> f64 {
        let span = &self.spans[row_idx];
        let parts = u8::from(span.word_scale != 0.0)
            + u8::from(span.dense_scale != 0.0 && self.n_dense > 0);
        f64::from(parts) + f64::from(self.bias) * f64::from(self.bias)
    }

    /// The words of a row with their values, and the factor of these.
    #[inline]
    pub(super) fn words(&self, row_idx: usize) -> (&[u32], &[f32], f32) {
        let span = &self.spans[row_idx];
        let range = span.start..span.end;
        let (columns, values) = (&self.columns[range.clone()], &self.values[range]);
        (columns, values, span.word_scale)
    }

    /// w·ψ including the constant feature.
    #[inline]
    pub(super) fn margin(&self, row_idx: usize, weights: &DualWeights<'_>) -> f64 {
        let span = &self.spans[row_idx];
        let words = sparse_dot(
            &self.columns[span.start..span.end],
            &self.values[span.start..span.end],
            weights.words,
        );
        let dense = self.kernels.dot(
            &self.dense[span.dense_start..][..self.n_dense],
            weights.dense,
        );
        f64::from(span.word_scale * words + span.dense_scale * dense + self.bias * weights.bias)
    }

    /// w += step·ψ including the constant feature.
    #[inline]
    pub(super) fn add_to(&self, row_idx: usize, step: f64, weights: &mut DualWeights<'_>) {
        let span = &self.spans[row_idx];
        let step = step as f32;
        let word_step = step * span.word_scale;
        let columns = &self.columns[span.start..span.end];
        for (&column, &value) in columns.iter().zip(&self.values[span.start..span.end]) {
            weights.words[column as usize] += word_step * value;
        }
        let dense_step = step * span.dense_scale;
        let dense = &self.dense[span.dense_start..][..self.n_dense];
        self.kernels.axpy(dense_step, dense, weights.dense);
        weights.bias += step * self.bias;
    }
}

/// Reusable memory for the rows and weights of one label; one per thread.
#[derive(Default)]
pub(super) struct RowScratch {
    max_copied_bytes: usize,
    spans: Vec<Span>,
    columns: Vec<u32>,
    values: Vec<f32>,
    dense: Vec<f32>,
    /// Shared column → renumbered column of the current label; valid only for columns in `shared_columns`.
    renumbered: Vec<u32>,
    /// Renumbered column → shared column.
    shared_columns: Vec<u32>,
    word_weights: Vec<f32>,
    dense_weights: Vec<f32>,
}

/// The problem of one label: its rows, zero weights, and the shared column of every word weight if columns are
/// renumbered, with the way back.
pub(super) struct LabelProblem<'a> {
    pub(super) rows: TrainingRows<'a>,
    pub(super) weights: DualWeights<'a>,
    pub(super) shared_columns: Option<&'a [u32]>,
    renumbered: &'a [u32],
}

impl LabelProblem<'_> {
    /// The shared column of a word weight.
    pub(super) fn shared(&self, position: usize) -> u32 {
        self.shared_columns
            .map_or(position as u32, |of| of[position])
    }

    /// The position of the weight of a shared column; none if no row has it.
    pub(super) fn position(&self, column: u32) -> Option<usize> {
        let Some(shared) = self.shared_columns else {
            return Some(column as usize);
        };
        let position = *self.renumbered.get(column as usize)? as usize;
        (shared.get(position) == Some(&column)).then_some(position)
    }
}

impl RowScratch {
    /// Scratch that copies the rows of labels up to this size.
    pub(super) fn new(max_copied_bytes: usize) -> Self {
        RowScratch {
            max_copied_bytes,
            ..RowScratch::default()
        }
    }

    /// Lays out the rows of `points`.
    pub(super) fn prepare<'a>(
        &'a mut self,
        problem: &RankerProblem<'a>,
        norms: &InverseNorms,
        points: TrainingPoints<'_>,
        bias: f32,
    ) -> LabelProblem<'a> {
        let n_dense = problem.n_dense();
        let n_entries: usize = points
            .points
            .iter()
            .map(|&point| problem.bow.row(point as usize).0.len())
            .sum();
        let copied_bytes = 8 * n_entries + 4 * n_dense * points.points.len();
        let copy = copied_bytes <= self.max_copied_bytes;
        self.spans.clear();
        self.dense_weights.clear();
        self.dense_weights.resize(n_dense, 0.0);
        self.word_weights.clear();
        if copy {
            self.copy_rows(problem, norms, points);
            self.word_weights.resize(self.shared_columns.len(), 0.0);
        } else {
            self.reference_rows(problem, norms, points);
            self.word_weights.resize(problem.bow.n_cols(), 0.0);
        }
        let (columns, values, dense) = if copy {
            (&self.columns[..], &self.values[..], &self.dense[..])
        } else {
            let dense = problem.dense.map_or(&[][..], Matrix::values);
            (problem.bow.indices(), problem.bow.values(), dense)
        };
        LabelProblem {
            rows: TrainingRows {
                spans: &self.spans,
                columns,
                values,
                dense,
                n_dense,
                bias,
                kernels: Kernels::detect(),
                n_positive: points.n_positive,
            },
            weights: DualWeights {
                words: &mut self.word_weights,
                dense: &mut self.dense_weights,
                bias: 0.0,
            },
            shared_columns: copy.then_some(&self.shared_columns[..]),
            renumbered: &self.renumbered,
        }
    }

    fn copy_rows(
        &mut self,
        problem: &RankerProblem<'_>,
        norms: &InverseNorms,
        points: TrainingPoints<'_>,
    ) {
        self.columns.clear();
        self.values.clear();
        self.dense.clear();
        self.shared_columns.clear();
        self.renumbered.resize(problem.bow.n_cols(), 0);
        for &point in points.points {
            let point_idx = point as usize;
            let (columns, values) = problem.bow.row(point_idx);
            let start = self.columns.len();
            for &column in columns {
                // An entry is valid if the column it points to points back (Briggs and Torczon's sparse set), so
                // nothing needs clearing between labels.
                let known = self.renumbered[column as usize];
                if self.shared_columns.get(known as usize) == Some(&column) {
                    self.columns.push(known);
                } else {
                    let fresh = self.shared_columns.len() as u32;
                    self.renumbered[column as usize] = fresh;
                    self.shared_columns.push(column);
                    self.columns.push(fresh);
                }
            }
            self.values.extend_from_slice(values);
            self.spans.push(Span {
                start,
                end: self.columns.len(),
                dense_start: self.dense.len(),
                word_scale: norms.words[point_idx],
                dense_scale: norms.dense[point_idx],
                weight: problem.point_weights[point_idx],
            });
            if let Some(dense) = problem.dense {
                self.dense.extend_from_slice(dense.row(point_idx));
            }
        }
    }

    fn reference_rows(
        &mut self,
        problem: &RankerProblem<'_>,
        norms: &InverseNorms,
        points: TrainingPoints<'_>,
    ) {
        let indptr = problem.bow.indptr();
        self.spans.extend(points.points.iter().map(|&point| {
            let point_idx = point as usize;
            Span {
                start: indptr[point_idx],
                end: indptr[point_idx + 1],
                dense_start: point_idx * problem.n_dense(),
                word_scale: norms.words[point_idx],
                dense_scale: norms.dense[point_idx],
                weight: problem.point_weights[point_idx],
            }
        }));
    }
}

/// Σ values[i]·weights[columns[i]], in four running sums so that additions need not wait for each other.
#[inline]
pub(super) fn sparse_dot(columns: &[u32], values: &[f32], weights: &[f32]) -> f32 {
    let mut sums = [0.0f32; 4];
    let (column_chunks, column_rest) = columns.as_chunks::<4>();
    let (value_chunks, value_rest) = values.as_chunks::<4>();
    for (columns, values) in column_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            sums[lane] += values[lane] * weights[columns[lane] as usize];
        }
    }
    let mut total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (&column, &value) in column_rest.iter().zip(value_rest) {
        total += value * weights[column as usize];
    }
    total
}
