//! W_L as it is kept: in 32 bits while it is trained, in 32 or 16 afterwards.

use std::borrow::Cow;

use half::f16;
use rayon::prelude::*;

use crate::kernels::{Kernels, prefetch};
use crate::matrix::Matrix;

/// The rows of W_L, L×d.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LabelWeights {
    /// 32 bits per value.
    Full(Matrix),
    /// 16 bits per value: half the file and half the memory, scores that differ in the fourth digit.
    Half(Matrix<f16>),
}

impl From<Matrix> for LabelWeights {
    fn from(matrix: Matrix) -> Self {
        LabelWeights::Full(matrix)
    }
}

impl LabelWeights {
    /// Number of labels, L.
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            LabelWeights::Full(matrix) => matrix.n_rows(),
            LabelWeights::Half(matrix) => matrix.n_rows(),
        }
    }

    /// d.
    pub(crate) fn n_cols(&self) -> usize {
        match self {
            LabelWeights::Full(matrix) => matrix.n_cols(),
            LabelWeights::Half(matrix) => matrix.n_cols(),
        }
    }

    /// w·φ of one row.
    #[inline]
    pub(crate) fn dot(&self, row_idx: usize, embedding: &[f32]) -> f32 {
        let kernels = Kernels::detect();
        match self {
            LabelWeights::Full(matrix) => kernels.dot(matrix.row(row_idx), embedding),
            LabelWeights::Half(matrix) => kernels.dot_half(matrix.row(row_idx), embedding),
        }
    }

    /// Prefetches a row that will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, row_idx: usize) {
        match self {
            LabelWeights::Full(matrix) => prefetch(matrix.row(row_idx)),
            LabelWeights::Half(matrix) => prefetch(matrix.row(row_idx)),
        }
    }

    /// One row, in 32 bits.
    pub(crate) fn row(&self, row_idx: usize) -> Cow<'_, [f32]> {
        match self {
            LabelWeights::Full(matrix) => matrix.row(row_idx).into(),
            LabelWeights::Half(matrix) => matrix.row(row_idx).iter().map(|w| w.to_f32()).collect(),
        }
    }

    /// All values in 32 bits, writable; 16-bit values are widened first.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        if let LabelWeights::Half(matrix) = self {
            let values = matrix.values().iter().map(|w| w.to_f32()).collect();
            *self = Matrix::from_vec(values, matrix.n_rows(), matrix.n_cols()).into();
        }
        match self {
            LabelWeights::Full(matrix) => matrix.values_mut(),
            LabelWeights::Half(_) => unreachable!("rows of 16 bits were widened above"),
        }
    }

    /// The same rows in 16 bits; values out of range become the largest number.
    pub(crate) fn into_half(self) -> Self {
        match self {
            LabelWeights::Full(matrix) => {
                let (least, most) = (f16::MIN.to_f32(), f16::MAX.to_f32());
                let narrow = |w: &f32| f16::from_f32(w.clamp(least, most));
                let values = matrix.values().par_iter().map(narrow).collect();
                LabelWeights::Half(Matrix::from_vec(values, matrix.n_rows(), matrix.n_cols()))
            }
            half => half,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bits_keep_three_digits_and_no_infinity() {
        let full: LabelWeights = Matrix::from_vec(vec![0.1, -2.5, 1e9, 1e-9], 2, 2).into();
        let mut half = full.clone().into_half();
        assert_eq!((half.n_rows(), half.n_cols()), (2, 2));
        assert!((half.row(0)[0] - 0.1).abs() < 1e-4 && half.row(0)[1] == -2.5);
        assert_eq!(*half.row(1), [65504.0, 0.0]);
        assert!((half.dot(0, &[1.0, 2.0]) - full.dot(0, &[1.0, 2.0])).abs() < 1e-3);
        let widened = half.row(0).to_vec();
        assert_eq!(half.values_mut()[..2], widened);
        assert_eq!(*half.row(0), widened);
    }
}
