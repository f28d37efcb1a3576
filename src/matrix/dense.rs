//! A dense row-major matrix.

/// A dense row-major `f32` matrix.
///
/// Invariant: `values.len() == n_rows * n_cols`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    values: Vec<f32>,
    n_rows: usize,
    n_cols: usize,
}

impl Matrix {
    /// A matrix of zeros.
    pub fn zeros(n_rows: usize, n_cols: usize) -> Self {
        Matrix {
            values: vec![0.0; n_rows * n_cols],
            n_rows,
            n_cols,
        }
    }

    /// A matrix over the given values, row after row.
    ///
    /// # Panics
    /// If the number of values is not `n_rows * n_cols`.
    pub fn from_vec(values: Vec<f32>, n_rows: usize, n_cols: usize) -> Self {
        assert_eq!(values.len(), n_rows * n_cols, "a {n_rows}x{n_cols} matrix");
        Matrix {
            values,
            n_rows,
            n_cols,
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// One row.
    #[inline]
    pub fn row(&self, row_idx: usize) -> &[f32] {
        &self.values[row_idx * self.n_cols..][..self.n_cols]
    }

    /// One row, writable.
    #[inline]
    pub fn row_mut(&mut self, row_idx: usize) -> &mut [f32] {
        &mut self.values[row_idx * self.n_cols..][..self.n_cols]
    }

    /// All values, row after row.
    #[inline]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, row after row, writable.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Gives the matrix this shape; what it held is lost. Keeps its allocation where that is large enough.
    pub fn reshape(&mut self, n_rows: usize, n_cols: usize) {
        self.values.resize(n_rows * n_cols, 0.0);
        self.n_rows = n_rows;
        self.n_cols = n_cols;
    }
}
