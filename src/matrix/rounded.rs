//! Sparse rows whose values are a whole number of steps, and their columns as gaps: what takes little room in a file.
//!
//! Columns ascend within a row, so the distance to the one before is small. The first column of a row counts from -1, so
//! that no distance is 0. Distances and the lengths of rows are written in groups of seven bits, the lowest first, each
//! byte but the last of a number with its highest bit set (LEB128).

use super::CsrMatrix;
use super::eight_bits::round;

/// Bits of a number per byte.
const GROUP: u32 = 7;
/// Most bytes of a number.
const MOST_BYTES: u32 = 5;

impl CsrMatrix {
    /// Rounds the values of every row to the nearest of 255 multiples of a step; returns the step of each row.
    pub(crate) fn round_rows(&mut self) -> Vec<f32> {
        let mut whole = Vec::new();
        let mut steps = Vec::with_capacity(self.n_rows());
        for row_idx in 0..self.n_rows() {
            let values = self.row_values_mut(row_idx);
            whole.resize(values.len(), 0);
            let step = round(values, &mut whole);
            for (value, &whole) in values.iter_mut().zip(&whole) {
                *value = step * f32::from(whole);
            }
            steps.push(step);
        }
        steps
    }

    /// The length of every row.
    pub(crate) fn lengths(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.n_rows());
        for ends in self.indptr().windows(2) {
            push_number((ends[1] - ends[0]) as u64, &mut bytes);
        }
        bytes
    }

    /// The columns of all rows as gaps.
    pub(crate) fn gaps(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * self.nnz());
        for row_idx in 0..self.n_rows() {
            let mut next = 0;
            for &column in self.row(row_idx).0 {
                push_number(u64::from(column - next + 1), &mut bytes);
                next = column + 1;
            }
        }
        bytes
    }
}

/// The integers that a value is of its step.
pub(crate) fn steps_of(value: f32, step: f32) -> i8 {
    if step > 0.0 {
        (value / step).round_ties_even() as i8
    } else {
        0
    }
}

/// The offsets of rows, from their lengths; none if they are damaged.
pub(crate) fn offsets_of(lengths: &[u8]) -> Option<Vec<usize>> {
    let (mut bytes, mut offsets) = (lengths.iter(), vec![0]);
    let mut end = 0usize;
    while !bytes.as_slice().is_empty() {
        end = end.checked_add(usize::try_from(read_number(&mut bytes)?).ok()?)?;
        offsets.push(end);
    }
    Some(offsets)
}

/// The columns of rows with these offsets, from their gaps; none if they do not fit each other.
pub(crate) fn columns_of(gaps: &[u8], offsets: &[usize]) -> Option<Vec<u32>> {
    let n_columns = *offsets.last()?;
    // A gap has at least one byte, so nothing is taken that the file does not have.
    if gaps.len() < n_columns {
        return None;
    }
    let mut columns = Vec::with_capacity(n_columns);
    let mut bytes = gaps.iter();
    for row in offsets.windows(2) {
        let mut next = 0u64;
        for _ in 0..row[1].checked_sub(row[0])? {
            let column = (next + read_number(&mut bytes)?).checked_sub(1)?;
            columns.push(u32::try_from(column).ok()?);
            next = column + 1;
        }
    }
    let is_whole = bytes.next().is_none() && columns.len() == n_columns;
    is_whole.then_some(columns)
}

fn push_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >> GROUP > 0 {
        bytes.push(number as u8 | 1 << GROUP);
        number >>= GROUP;
    }
    bytes.push(number as u8);
}

fn read_number<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let mut number = 0;
    for place in 0..MOST_BYTES {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << (GROUP * place);
        if byte >> GROUP == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matrix(rows: &[Vec<u32>], n_cols: usize) -> CsrMatrix {
        let mut indptr = vec![0];
        rows.iter()
            .for_each(|row| indptr.push(indptr[indptr.len() - 1] + row.len()));
        let columns = rows.concat();
        let values = columns
            .iter()
            .map(|&column| (f64::from(column)).sin() as f32)
            .collect();
        CsrMatrix::new(indptr, columns, values, n_cols).unwrap()
    }

    proptest! {
        #[test]
        fn rows_come_back_from_their_lengths_and_gaps(rows in proptest::collection::vec(
            proptest::collection::btree_set(0u32..1 << 30, 0..20), 0..8)
        ) {
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
            let matrix = matrix(&rows, 1 << 30);
            let offsets = offsets_of(&matrix.lengths()).unwrap();
            prop_assert_eq!(&offsets[..], matrix.indptr());
            prop_assert_eq!(columns_of(&matrix.gaps(), &offsets).unwrap(), matrix.indices());
        }

        #[test]
        fn damaged_gaps_are_refused_or_ascend(
            gaps in proptest::collection::vec(any::<u8>(), 0..40),
            mut indptr in proptest::collection::vec(0usize..20, 1..5),
        ) {
            indptr[0] = 0;
            if let Some(columns) = columns_of(&gaps, &indptr) {
                prop_assert_eq!(columns.len(), indptr[indptr.len() - 1]);
            }
        }
    }

    #[test]
    fn too_few_bytes_too_many_and_offsets_that_fall_are_refused() {
        let matrix = matrix(&[vec![3, 700], vec![0]], 701);
        let (gaps, indptr) = (matrix.gaps(), matrix.indptr());
        assert_eq!(gaps, [4, 0xb9, 5, 1]);
        assert!(columns_of(&gaps[..3], indptr).is_none());
        assert!(columns_of(&[&gaps[..], &[1]].concat(), indptr).is_none());
        assert!(columns_of(&gaps, &[0, 3, 1]).is_none());
        assert!(columns_of(&gaps, &[0, usize::MAX]).is_none());
        assert!(columns_of(&[0], &[0, 1]).is_none(), "a gap of 0");
        assert!(
            columns_of(&[0xff; 8], &[0, 1]).is_none(),
            "a number without end"
        );
        assert_eq!(offsets_of(&[2, 1]).unwrap(), [0, 2, 3]);
        assert!(offsets_of(&[2, 0x80]).is_none(), "a cut number");
    }

    #[test]
    fn rounded_values_are_whole_steps_and_near() {
        let rows = [vec![1, 2, 5], vec![], vec![9]];
        let exact = matrix(&rows, 10);
        let mut rounded = exact.clone();
        let steps = rounded.round_rows();
        for (row_idx, &step) in steps.iter().enumerate() {
            let (values, before) = (rounded.row(row_idx).1, exact.row(row_idx).1);
            for (&value, before) in values.iter().zip(before) {
                assert!((value - before).abs() <= 0.501 * step);
                let whole = f32::from(steps_of(value, step));
                assert_eq!(step * whole, value);
            }
        }
        assert_eq!(steps[1], 0.0);
    }
}
