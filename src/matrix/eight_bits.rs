//! Rows in eight bits: whole numbers times a scale per row.

use rayon::prelude::*;

use super::Matrix;
use crate::error::{Error, Result};
use crate::kernels::Kernels;

/// Largest absolute integer of a rounded row.
const ROW_LIMIT: f32 = 127.0;

/// A matrix whose row i is `scales[i]` times integers.
///
/// Invariant: there is one scale per row, at least 0 and finite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EightBits {
    values: Matrix<i8>,
    scales: Vec<f32>,
}

impl EightBits {
    /// Bytes.
    pub(crate) fn n_bytes(n_rows: usize, n_cols: usize) -> usize {
        n_rows * (n_cols + 4)
    }

    /// Rounds every row of a matrix to the nearest integers; a row that is not finite becomes 0.
    pub(crate) fn new(matrix: &Matrix) -> Self {
        let (n_rows, n_cols) = (matrix.n_rows(), matrix.n_cols());
        let mut values: Matrix<i8> = Matrix::zeros(n_rows, n_cols);
        let rounded = values
            .values_mut()
            .par_chunks_mut(n_cols.max(1))
            .enumerate();
        let scales = rounded.map(|(row_idx, out)| round(matrix.row(row_idx), out));
        let mut scales: Vec<f32> = scales.collect();
        scales.resize(n_rows, 0.0);
        EightBits { values, scales }
    }

    /// Rows that were rounded before.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there is not one scale per row, at least 0 and finite.
    pub(crate) fn from_parts(values: Matrix<i8>, scales: Vec<f32>) -> Result<Self> {
        let n_rows = values.n_rows();
        let is_scale = |scale: &f32| scale.is_finite() && *scale >= 0.0;
        if scales.len() != n_rows || !scales.iter().all(is_scale) {
            return Err(Error::InvalidModel(format!(
                "{n_rows} rows of eight bits need a scale of at least 0 each"
            )));
        }
        Ok(EightBits { values, scales })
    }

    /// The integers, and the scale of each row.
    pub(crate) fn parts(&self) -> (&Matrix<i8>, &[f32]) {
        (&self.values, &self.scales)
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.values.n_rows()
    }

    /// Number of columns.
    pub(crate) fn n_cols(&self) -> usize {
        self.values.n_cols()
    }

    /// Σ row·x.
    #[inline]
    pub(crate) fn dot(&self, row_idx: usize, x: &[f32]) -> f32 {
        self.scales[row_idx] * Kernels::detect().dot_eight(self.values.row(row_idx), x)
    }

    /// out += factor·row.
    #[inline]
    pub(crate) fn add_to(&self, row_idx: usize, factor: f32, out: &mut [f32]) {
        let factor = factor * self.scales[row_idx];
        Kernels::detect().axpy_eight(factor, self.values.row(row_idx), out);
    }

    /// One row in 32 bits.
    pub(crate) fn row(&self, row_idx: usize) -> impl Iterator<Item = f32> + '_ {
        let scale = self.scales[row_idx];
        let values = self.values.row(row_idx).iter();
        values.map(move |&whole| scale * f32::from(whole))
    }

    /// All rows in 32 bits.
    pub(crate) fn widened(&self) -> Matrix {
        let values = (0..self.n_rows()).flat_map(|row_idx| self.row(row_idx));
        Matrix::from_vec(values.collect(), self.n_rows(), self.n_cols())
    }
}

/// Writes a row as integers and returns their scale.
pub(super) fn round(row: &[f32], out: &mut [i8]) -> f32 {
    let largest = row.iter().fold(0f32, |most, x| most.max(x.abs()));
    let scale = largest / ROW_LIMIT;
    let inverse = 1.0 / scale;
    // The last holds for nothing but zeros, and for numbers too small to differ from them.
    if row.iter().any(|x| !x.is_finite()) || !scale.is_finite() || !inverse.is_finite() {
        return 0.0;
    }
    for (out, x) in out.iter_mut().zip(row) {
        *out = (x * inverse).round_ties_even() as i8;
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_row_is_within_half_a_step_and_products_agree() {
        let values: Vec<f32> = (0..3 * 37)
            .map(|at| ((at * at) as f32).sin() * 0.3)
            .collect();
        let matrix = Matrix::from_vec(values, 3, 37);
        let rounded = EightBits::new(&matrix);
        let x: Vec<f32> = (0..37).map(|at| (at as f32).cos()).collect();
        for row_idx in 0..3 {
            let row: Vec<f32> = rounded.row(row_idx).collect();
            let step = rounded.parts().1[row_idx];
            let near = row.iter().zip(matrix.row(row_idx));
            assert!(near.into_iter().all(|(a, b)| (a - b).abs() <= 0.501 * step));
            let expected: f32 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
            assert!((rounded.dot(row_idx, &x) - expected).abs() < 1e-4);
            let mut out = x.clone();
            rounded.add_to(row_idx, -2.0, &mut out);
            for ((out, x), w) in out.iter().zip(&x).zip(&row) {
                assert!((out - (x - 2.0 * w)).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn rows_of_zeros_and_damaged_rows_are_zero() {
        let values = vec![0.0, 0.0, f32::NAN, 1.0, 1e-42, 0.0, f32::INFINITY, 0.0];
        let rounded = EightBits::new(&Matrix::from_vec(values, 4, 2));
        assert_eq!(rounded.parts().1, [0.0; 4]);
        assert!((0..4).all(|row_idx| rounded.row(row_idx).all(|x| x == 0.0)));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let values = || Matrix::from_vec(vec![1i8, 2], 2, 1);
        assert!(EightBits::from_parts(values(), vec![1.0, 0.0]).is_ok());
        assert!(EightBits::from_parts(values(), vec![1.0]).is_err());
        assert!(EightBits::from_parts(values(), vec![1.0, -1.0]).is_err());
        assert!(EightBits::from_parts(values(), vec![1.0, f32::INFINITY]).is_err());
    }
}
