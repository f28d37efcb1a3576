//! A dense row-major matrix, in memory or in a mapped file.
//!
//! A mapped matrix is read in place, so that processes share its pages; the first write copies it into memory. This
//! module does not open files; see `store`.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::error::{Error, Result};

/// A dense row-major matrix, of `f32` by default.
///
/// Invariant: it has `n_rows * n_cols` values.
#[derive(Clone, Debug)]
pub(crate) struct Matrix<T = f32> {
    values: Storage<T>,
    n_rows: usize,
    n_cols: usize,
}

/// The storage of the values.
///
/// Invariant: mapped bytes are aligned to `T` and a multiple of its size.
#[derive(Clone, Debug)]
enum Storage<T> {
    Owned(Vec<T>),
    Mapped { map: Arc<Mmap>, bytes: Range<usize> },
}

impl<T: Pod> Storage<T> {
    #[inline]
    fn as_slice(&self) -> &[T] {
        match self {
            Storage::Owned(values) => values,
            Storage::Mapped { map, bytes } => bytemuck::cast_slice(&map[bytes.clone()]),
        }
    }

    #[inline]
    fn to_mut(&mut self) -> &mut Vec<T> {
        if let Storage::Mapped { .. } = self {
            *self = Storage::Owned(self.as_slice().to_vec());
        }
        match self {
            Storage::Owned(values) => values,
            Storage::Mapped { .. } => unreachable!("mapped values were replaced above"),
        }
    }
}

impl<T: Pod> Default for Matrix<T> {
    fn default() -> Self {
        Matrix::zeros(0, 0)
    }
}

impl<T: Pod> Matrix<T> {
    /// A matrix of zeros.
    pub(crate) fn zeros(n_rows: usize, n_cols: usize) -> Self {
        Matrix {
            values: Storage::Owned(vec![T::zeroed(); n_rows * n_cols]),
            n_rows,
            n_cols,
        }
    }

    /// A matrix from its values, row by row.
    ///
    /// # Panics
    /// If the number of values is not `n_rows * n_cols`.
    pub(crate) fn from_vec(values: Vec<T>, n_rows: usize, n_cols: usize) -> Self {
        assert_eq!(values.len(), n_rows * n_cols, "a {n_rows}x{n_cols} matrix");
        Matrix {
            values: Storage::Owned(values),
            n_rows,
            n_cols,
        }
    }

    /// A matrix of little-endian values in a mapped file, starting at byte `start`.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if they extend beyond the map or are not aligned to their size.
    pub(crate) fn from_map(
        map: Arc<Mmap>,
        start: usize,
        n_rows: usize,
        n_cols: usize,
    ) -> Result<Self> {
        let end = n_rows
            .checked_mul(n_cols)
            .and_then(|n_values| n_values.checked_mul(size_of::<T>()))
            .and_then(|n_bytes| n_bytes.checked_add(start));
        let bytes = end.and_then(|end| map.get(start..end));
        match (end, bytes.map(bytemuck::try_cast_slice::<u8, T>)) {
            (Some(end), Some(Ok(_))) => Ok(Matrix {
                values: Storage::Mapped {
                    map,
                    bytes: start..end,
                },
                n_rows,
                n_cols,
            }),
            (_, Some(Err(_))) => Err(Error::InvalidMatrix(format!(
                "its values start at byte {start}, which is not aligned to {} bytes",
                size_of::<T>()
            ))),
            _ => Err(Error::InvalidMatrix(format!(
                "{n_rows}x{n_cols} values from byte {start} extend beyond the {} bytes of the file",
                map.len()
            ))),
        }
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub(crate) fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// One row.
    #[inline]
    pub(crate) fn row(&self, row_idx: usize) -> &[T] {
        &self.values.as_slice()[row_idx * self.n_cols..][..self.n_cols]
    }

    /// One row, writable; a mapped matrix is copied first.
    #[cfg(feature = "transformer")]
    #[inline]
    pub(crate) fn row_mut(&mut self, row_idx: usize) -> &mut [T] {
        &mut self.values.to_mut()[row_idx * self.n_cols..][..self.n_cols]
    }

    /// All values, row by row.
    #[inline]
    pub(crate) fn values(&self) -> &[T] {
        self.values.as_slice()
    }

    /// All values, row by row, writable; a mapped matrix is copied first.
    #[inline]
    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        self.values.to_mut()
    }

    /// Changes the shape; the contents are unspecified. Keeps the allocation if it is large enough.
    pub(crate) fn reshape(&mut self, n_rows: usize, n_cols: usize) {
        self.values.to_mut().resize(n_rows * n_cols, T::zeroed());
        self.n_rows = n_rows;
        self.n_cols = n_cols;
    }
}

impl<T: Pod + PartialEq> PartialEq for Matrix<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.n_rows, self.n_cols) == (other.n_rows, other.n_cols)
            && self.values() == other.values()
    }
}

/// These ranges of a slice, which ascend and do not overlap.
pub(crate) fn ranges_mut<'a, T>(
    mut values: &'a mut [T],
    ranges: &[Range<usize>],
) -> Vec<&'a mut [T]> {
    let mut start = 0;
    let mut slices = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (slice, rest) = values[range.start - start..].split_at_mut(range.len());
        slices.push(slice);
        (values, start) = (rest, range.end);
    }
    slices
}
