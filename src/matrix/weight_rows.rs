//! Rows of weights as they are kept: in 32 bits while they are trained, in 8 or 32 afterwards.

use std::borrow::Cow;

use super::{EightBits, Matrix};
use crate::kernels::{Kernels, prefetch};

/// Rows of weights: those of words or of labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WeightRows {
    /// 32 bits per value.
    Full(Matrix),
    /// 8 bits per value: a quarter of the file and of the memory.
    Eight(EightBits),
}

impl From<Matrix> for WeightRows {
    fn from(matrix: Matrix) -> Self {
        WeightRows::Full(matrix)
    }
}

impl WeightRows {
    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            WeightRows::Full(matrix) => matrix.n_rows(),
            WeightRows::Eight(rows) => rows.n_rows(),
        }
    }

    /// Number of columns.
    pub(crate) fn n_cols(&self) -> usize {
        match self {
            WeightRows::Full(matrix) => matrix.n_cols(),
            WeightRows::Eight(rows) => rows.n_cols(),
        }
    }

    /// Bytes per value.
    pub(crate) fn n_value_bytes(&self) -> usize {
        match self {
            WeightRows::Full(_) => 4,
            WeightRows::Eight(_) => 1,
        }
    }

    /// Σ row·x.
    #[inline]
    pub(crate) fn dot(&self, row_idx: usize, x: &[f32]) -> f32 {
        match self {
            WeightRows::Full(matrix) => Kernels::detect().dot(matrix.row(row_idx), x),
            WeightRows::Eight(rows) => rows.dot(row_idx, x),
        }
    }

    /// out = Σ coefficients[j]·row(rows[j]).
    pub(crate) fn sum(&self, coefficients: &[f32], rows: &[u32], out: &mut [f32]) {
        match self {
            WeightRows::Full(matrix) => {
                Kernels::detect().sum_rows(coefficients, matrix.values(), rows, out);
            }
            WeightRows::Eight(eight) => {
                out.fill(0.0);
                for (&row_idx, &coefficient) in rows.iter().zip(coefficients) {
                    eight.add_to(row_idx as usize, coefficient, out);
                }
            }
        }
    }

    /// Prefetches a row that will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, row_idx: usize) {
        match self {
            WeightRows::Full(matrix) => prefetch(matrix.row(row_idx)),
            WeightRows::Eight(rows) => prefetch(rows.parts().0.row(row_idx)),
        }
    }

    /// One row, in 32 bits.
    pub(crate) fn row(&self, row_idx: usize) -> Cow<'_, [f32]> {
        match self {
            WeightRows::Full(matrix) => matrix.row(row_idx).into(),
            WeightRows::Eight(rows) => rows.row(row_idx).collect(),
        }
    }

    /// The same rows in 32 bits.
    pub(crate) fn into_full(self) -> Matrix {
        match self {
            WeightRows::Full(matrix) => matrix,
            WeightRows::Eight(rows) => rows.widened(),
        }
    }

    /// All values in 32 bits, writable; values of eight bits are widened first.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        if let WeightRows::Eight(rows) = self {
            *self = rows.widened().into();
        }
        match self {
            WeightRows::Full(matrix) => matrix.values_mut(),
            WeightRows::Eight(_) => unreachable!("rows of eight bits were widened above"),
        }
    }

    /// The same rows in eight bits; they stay as they are if one is not finite, so that damage shows.
    pub(crate) fn into_eight(self) -> Self {
        match self {
            WeightRows::Full(matrix) if matrix.values().iter().all(|w| w.is_finite()) => {
                WeightRows::Eight(EightBits::new(&matrix))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bits_keep_two_digits_and_can_be_widened() {
        let full: WeightRows = Matrix::from_vec(vec![0.1, -2.5, 1.0, 0.25], 2, 2).into();
        let mut eight = full.clone().into_eight();
        assert_eq!((eight.n_rows(), eight.n_cols()), (2, 2));
        assert!((eight.dot(1, &[1.0, 2.0]) - 1.5).abs() < 0.02);
        let (mut sum, mut expected) = ([7.0; 2], [7.0; 2]);
        eight.sum(&[2.0, -1.0], &[1, 0], &mut sum);
        full.sum(&[2.0, -1.0], &[1, 0], &mut expected);
        assert!(
            sum.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.05),
            "{sum:?}"
        );
        let widened = eight.row(0).to_vec();
        assert_eq!(eight.values_mut()[..2], widened);
        assert_eq!(*eight.row(0), widened);
    }

    #[test]
    fn rows_that_are_not_finite_stay() {
        let damaged: WeightRows = Matrix::from_vec(vec![1.0, f32::NAN], 1, 2).into();
        assert!(matches!(damaged.into_eight(), WeightRows::Full(_)));
    }
}
