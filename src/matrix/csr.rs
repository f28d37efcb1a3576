//! A sparse row-major matrix whose invariants its constructor enforces.

use std::ops::Range;

use crate::error::{Error, Result};

/// A sparse row-major matrix.
///
/// Invariants: `indptr` starts at 0 and never decreases; within a row, column indices strictly increase and are
/// below `n_cols`; every value is finite.
#[derive(Clone, Debug, PartialEq)]
pub struct CsrMatrix {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    n_cols: usize,
}

impl CsrMatrix {
    /// A matrix from its arrays.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if an invariant does not hold.
    pub fn new(
        indptr: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f32>,
        n_cols: usize,
    ) -> Result<Self> {
        let invalid = |problem: String| Err(Error::InvalidMatrix(problem));
        if indptr.first() != Some(&0) {
            return invalid(format!(
                "row offsets start with {:?}, expected 0",
                indptr.first()
            ));
        }
        if indptr.last() != Some(&indices.len()) {
            return invalid(format!(
                "row offsets end at {:?}, expected {}",
                indptr.last(),
                indices.len()
            ));
        }
        if indices.len() != values.len() {
            return invalid(format!(
                "{} column indices but {} values",
                indices.len(),
                values.len()
            ));
        }
        for (row_idx, ends) in indptr.windows(2).enumerate() {
            if ends[1] < ends[0] || ends[1] > indices.len() {
                return invalid(format!(
                    "row {row_idx} runs from {} to {}",
                    ends[0], ends[1]
                ));
            }
            let row = &indices[ends[0]..ends[1]];
            if let Some(pair) = row.windows(2).find(|pair| pair[1] <= pair[0]) {
                return invalid(format!(
                    "row {row_idx} has column {} after column {}",
                    pair[1], pair[0]
                ));
            }
            if let Some(last) = row.last().filter(|&&last| last as usize >= n_cols) {
                return invalid(format!(
                    "row {row_idx} has column {last}, the matrix has {n_cols} columns"
                ));
            }
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return invalid(format!(
                "value {at} is {}, expected a finite number",
                values[at]
            ));
        }
        Ok(CsrMatrix {
            indptr,
            indices,
            values,
            n_cols,
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of stored values.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// The column indices and values of one row.
    #[inline]
    pub fn row(&self, row_idx: usize) -> (&[u32], &[f32]) {
        let range = self.indptr[row_idx]..self.indptr[row_idx + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The values of one row, writable.
    pub(super) fn row_values_mut(&mut self, row_idx: usize) -> &mut [f32] {
        &mut self.values[self.indptr[row_idx]..self.indptr[row_idx + 1]]
    }

    /// Row offsets: `n_rows + 1` of them.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Column indices, row by row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The same entries by column: row `j` of the result is column `j` of `self`.
    pub(crate) fn transpose(&self) -> CsrMatrix {
        self.transpose_columns(0..self.n_cols)
    }

    /// The entries of some columns, by column: row `j` of the result is column `columns.start + j` of `self`.
    pub(crate) fn transpose_columns(&self, columns: Range<usize>) -> CsrMatrix {
        self.transpose_to(self.n_rows(), columns.len(), |col| {
            let is_wanted = columns.contains(&(col as usize));
            is_wanted.then(|| col as usize - columns.start)
        })
    }

    /// The entries of the first `n_rows` rows by column, without those of columns that are not wanted, whose rows are
    /// empty.
    pub(crate) fn transpose_if(&self, n_rows: usize, is_wanted: impl Fn(u32) -> bool) -> CsrMatrix {
        self.transpose_to(n_rows, self.n_cols, |col| {
            is_wanted(col).then_some(col as usize)
        })
    }

    /// The entries of the first `n_rows` rows by column: those of a column go to the row of the result that is its
    /// place, if it has one.
    fn transpose_to(
        &self,
        n_rows: usize,
        n_places: usize,
        place: impl Fn(u32) -> Option<usize>,
    ) -> CsrMatrix {
        let mut indptr = vec![0usize; n_places + 1];
        let indices = self.indices[..self.indptr[n_rows]].iter();
        for place in indices.filter_map(|&col| place(col)) {
            indptr[place + 1] += 1;
        }
        for row in 0..n_places {
            indptr[row + 1] += indptr[row];
        }
        let n_entries = indptr[n_places];
        let mut next = indptr.clone();
        let mut indices = vec![0u32; n_entries];
        let mut values = vec![0f32; n_entries];
        for row_idx in 0..n_rows {
            let (cols, row_values) = self.row(row_idx);
            for (&col, &value) in cols.iter().zip(row_values) {
                let Some(place) = place(col) else {
                    continue;
                };
                let at = &mut next[place];
                indices[*at] = row_idx as u32;
                values[*at] = value;
                *at += 1;
            }
        }
        CsrMatrix {
            indptr,
            indices,
            values,
            n_cols: n_rows,
        }
    }

    /// The same entries in a matrix with `n_cols` columns.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if an entry is in a column at or above `n_cols`.
    pub(crate) fn with_n_cols(&self, n_cols: usize) -> Result<CsrMatrix> {
        CsrMatrix::new(
            self.indptr.clone(),
            self.indices.clone(),
            self.values.clone(),
            n_cols,
        )
    }

    /// The same entries in other columns, of which there are `n_cols`. An entry whose column is none is dropped; of
    /// several in one column the greatest value stays.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if a column is at or above `n_cols`.
    pub(crate) fn renumbered(
        &self,
        n_cols: usize,
        column: impl Fn(u32) -> Option<u32>,
    ) -> Result<CsrMatrix> {
        let mut builder = CsrBuilder::with_capacity(self.n_rows(), self.nnz());
        for row in 0..self.n_rows() {
            let (columns, values) = self.row(row);
            let entries = columns.iter().zip(values);
            let mut entries: Vec<(u32, f32)> = entries
                .filter_map(|(&at, &value)| Some((column(at)?, value)))
                .collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            entries.dedup_by_key(|entry| entry.0);
            builder.push_row(entries);
        }
        builder.finish(n_cols)
    }

    /// The same rows, each scaled to L2 norm 1; rows of zeros stay.
    pub(crate) fn with_unit_rows(&self) -> CsrMatrix {
        let mut scaled = self.clone();
        for row_idx in 0..self.n_rows() {
            let row = &mut scaled.values[self.indptr[row_idx]..self.indptr[row_idx + 1]];
            let norm = row
                .iter()
                .map(|value| f64::from(*value).powi(2))
                .sum::<f64>()
                .sqrt();
            if norm > 0.0 {
                row.iter_mut()
                    .for_each(|value| *value = (f64::from(*value) / norm) as f32);
            }
        }
        scaled
    }

    /// These rows and those of another matrix after them.
    ///
    /// # Panics
    /// If the other has more columns.
    pub(crate) fn append(&mut self, other: &CsrMatrix) {
        assert!(other.n_cols <= self.n_cols, "a matrix of other columns");
        let n_before = self.nnz();
        self.indices.extend_from_slice(&other.indices);
        self.values.extend_from_slice(&other.values);
        let ends = other.indptr.iter().skip(1);
        self.indptr.extend(ends.map(|end| n_before + end));
    }

    /// These rows, in this order.
    ///
    /// # Panics
    /// If a row index is out of range.
    pub fn select_rows(&self, rows: &[usize]) -> CsrMatrix {
        let nnz = rows.iter().map(|&row_idx| self.row(row_idx).0.len()).sum();
        let mut builder = CsrBuilder::with_capacity(rows.len(), nnz);
        for &row_idx in rows {
            let (cols, values) = self.row(row_idx);
            builder.push_row(cols.iter().copied().zip(values.iter().copied()));
        }
        builder
            .finish(self.n_cols)
            .expect("rows of a valid matrix are valid")
    }
}

/// Collects rows for a [`CsrMatrix`]; [`CsrBuilder::finish`] validates them.
#[derive(Clone, Debug)]
pub struct CsrBuilder {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Default for CsrBuilder {
    fn default() -> Self {
        CsrBuilder {
            indptr: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl CsrBuilder {
    /// An empty builder with capacity for this many rows and values.
    pub(crate) fn with_capacity(n_rows: usize, nnz: usize) -> Self {
        let mut indptr = Vec::with_capacity(n_rows + 1);
        indptr.push(0);
        CsrBuilder {
            indptr,
            indices: Vec::with_capacity(nnz),
            values: Vec::with_capacity(nnz),
        }
    }

    /// Appends a row.
    pub fn push_row(&mut self, entries: impl IntoIterator<Item = (u32, f32)>) {
        for (col, value) in entries {
            self.indices.push(col);
            self.values.push(value);
        }
        self.indptr.push(self.indices.len());
    }

    /// Number of rows so far.
    pub(crate) fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The matrix.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if an invariant of [`CsrMatrix`] does not hold.
    pub fn finish(self, n_cols: usize) -> Result<CsrMatrix> {
        CsrMatrix::new(self.indptr, self.indices, self.values, n_cols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_rejected(
        indptr: &[usize],
        indices: &[u32],
        values: &[f32],
        n_cols: usize,
        part_of_message: &str,
    ) {
        let error = CsrMatrix::new(indptr.to_vec(), indices.to_vec(), values.to_vec(), n_cols)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part_of_message), "{error}");
    }

    #[test]
    fn constructor_enforces_each_invariant() {
        check_rejected(&[], &[], &[], 1, "start with None");
        check_rejected(&[1, 1], &[0], &[1.0], 1, "start with Some(1)");
        check_rejected(&[0, 2], &[0], &[1.0], 1, "end at Some(2)");
        check_rejected(&[0, 1], &[0], &[], 1, "1 column indices but 0 values");
        check_rejected(
            &[0, 2, 1, 2],
            &[0, 1],
            &[1.0, 1.0],
            3,
            "row 1 runs from 2 to 1",
        );
        check_rejected(&[0, 2], &[1, 1], &[1.0, 1.0], 3, "column 1 after column 1");
        check_rejected(&[0, 1], &[3], &[1.0], 3, "has column 3");
        check_rejected(&[0, 1], &[0], &[f32::NAN], 3, "value 0 is NaN");
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let matrix =
            CsrMatrix::new(vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 3.0], 4).unwrap();
        let transposed = matrix.transpose();
        assert_eq!(transposed.row(3), (&[0u32][..], &[2.0f32][..]));
        assert_eq!(transposed.transpose(), matrix);
    }
}
