//! The features of all candidates, each cut into at most 64 bins.
//!
//! They are held twice: by row, eight columns in a word, to be counted, and by column, to be compared all at once.

use rayon::prelude::*;

use super::features::N_FEATURES;

/// Most bins of a column.
pub(super) const MAX_BINS: usize = 64;
/// Columns whose bins share a word.
pub(super) const WORD: usize = 8;
/// Words of a row.
pub(super) const N_WORDS: usize = N_FEATURES.div_ceil(WORD);
/// Most rows whose values decide where a column is cut; of more, every n-th.
const MAX_CUT_BY: usize = 32_768;

/// The bins of a row.
pub(super) type BinnedRow = [u64; N_WORDS];

/// The bin of a column in a row.
#[inline]
pub(super) fn bin_of(row: &BinnedRow, column: usize) -> usize {
    let bin = row[column / WORD] >> (8 * (column % WORD));
    bin as usize % MAX_BINS
}

/// All columns in bins.
///
/// Invariant: the bin of a value is the number of thresholds below it, which is less than [`MAX_BINS`].
pub(super) struct Bins {
    /// Ascending, by column.
    thresholds: Vec<Vec<f32>>,
    by_column: Vec<Vec<u8>>,
    by_row: Vec<BinnedRow>,
}

impl Bins {
    /// Cuts columns, which are dropped on the way.
    pub(super) fn new(columns: Vec<Vec<f32>>, relevant: &[bool]) -> Self {
        let (thresholds, by_column): (Vec<_>, Vec<_>) = columns
            .into_par_iter()
            .map(|values| {
                let thresholds = thresholds(&values, relevant);
                let bin = |value: &f32| thresholds.partition_point(|cut| cut < value) as u8;
                let bins: Vec<u8> = values.iter().map(bin).collect();
                (thresholds, bins)
            })
            .unzip();
        let word = |row: usize, first: usize| {
            let columns = by_column[first..].iter().take(WORD).enumerate();
            columns.fold(0, |word, (at, bins)| {
                word | u64::from(bins[row]) << (8 * at)
            })
        };
        let by_row = (0..relevant.len())
            .into_par_iter()
            .map(|row| std::array::from_fn(|at| word(row, WORD * at)))
            .collect();
        Bins {
            thresholds,
            by_column,
            by_row,
        }
    }

    /// The thresholds of a column.
    pub(super) fn thresholds(&self, column: usize) -> &[f32] {
        &self.thresholds[column]
    }

    /// One column of all rows.
    pub(super) fn column(&self, column: usize) -> &[u8] {
        &self.by_column[column]
    }

    /// One row.
    #[inline]
    pub(super) fn row(&self, row: usize) -> BinnedRow {
        self.by_row[row]
    }

    /// Bytes per row.
    pub(super) const fn n_bytes() -> usize {
        N_FEATURES + size_of::<BinnedRow>()
    }
}

/// Quantiles of the relevant rows and of the others, half of the bins each: relevant rows are few.
fn thresholds(values: &[f32], relevant: &[bool]) -> Vec<f32> {
    let quantiles = |wanted: bool| {
        let rows = values.iter().zip(relevant);
        let of = rows
            .filter(|(_, is)| **is == wanted)
            .map(|(value, _)| *value);
        let n_rows = of.clone().count();
        let mut of: Vec<f32> = of.step_by(n_rows.div_ceil(MAX_CUT_BY).max(1)).collect();
        of.sort_unstable_by(f32::total_cmp);
        let n_cuts = MAX_BINS / 2 - 1;
        let cut = move |at: usize| of.get(at * of.len() / (n_cuts + 1)).copied();
        (1..=n_cuts).filter_map(cut)
    };
    let mut thresholds: Vec<f32> = quantiles(true).chain(quantiles(false)).collect();
    thresholds.sort_unstable_by(f32::total_cmp);
    thresholds.dedup();
    thresholds
}
