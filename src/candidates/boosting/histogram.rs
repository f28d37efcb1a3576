//! Columns cut into bins, and the best question to ask of all leaves at once.
//!
//! Each column has its own pass over the rows in their order, so that sums do not depend on the number of threads.

use rayon::prelude::*;

use super::trees::N_LEAVES;

/// Most bins of a column.
const MAX_BINS: usize = 64;
/// Added to the curvature of a leaf: leaves of few examples say little.
const SHRINKAGE: f64 = 5.0;

/// One column in bins: a row's bin is the number of thresholds below its value.
pub(super) struct BinnedColumn {
    pub(super) thresholds: Vec<f32>,
    bins: Vec<u8>,
}

impl BinnedColumn {
    /// Cuts a column at quantiles of the relevant rows and of the others, half of the bins each: relevant rows are few.
    pub(super) fn new(values: &[f32], relevant: &[bool]) -> Self {
        let quantiles = |wanted: bool| {
            let rows = values.iter().zip(relevant);
            let mut of: Vec<f32> = rows
                .filter(|(_, is)| **is == wanted)
                .map(|(value, _)| *value)
                .collect();
            of.sort_unstable_by(f32::total_cmp);
            let n_cuts = MAX_BINS / 2 - 1;
            let cut = move |at: usize| of.get(at * of.len() / (n_cuts + 1)).copied();
            (1..=n_cuts).filter_map(cut)
        };
        let mut thresholds: Vec<f32> = quantiles(true).chain(quantiles(false)).collect();
        thresholds.sort_unstable_by(f32::total_cmp);
        thresholds.dedup();
        let bin = |value: &f32| thresholds.partition_point(|cut| cut < value) as u8;
        let bins = values.iter().map(bin).collect();
        BinnedColumn { thresholds, bins }
    }

    /// Whether a row is above a threshold.
    #[inline]
    pub(super) fn is_above(&self, row: usize, threshold: usize) -> bool {
        threshold < self.bins[row] as usize
    }
}

/// First and second derivative of the loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slope {
    pub(super) gradient: f64,
    pub(super) curvature: f64,
}

impl Slope {
    pub(super) fn add(&mut self, other: Slope) {
        self.gradient += other.gradient;
        self.curvature += other.curvature;
    }

    /// The gain of the best value of a leaf.
    fn gain(self) -> f64 {
        self.gradient * self.gradient / (self.curvature + SHRINKAGE)
    }

    /// The best value of a leaf.
    pub(super) fn value(self) -> f64 {
        -self.gradient / (self.curvature + SHRINKAGE)
    }
}

/// A question of one level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) column: usize,
    /// The place of the threshold among those of the column.
    pub(super) threshold: usize,
    gain: f64,
}

/// Derivatives by leaf and bin of one column.
type Sums = Vec<[Slope; MAX_BINS]>;

/// The rows of a tree in growth.
pub(super) struct Rows<'a> {
    /// gradient and curvature of every row.
    pub(super) slopes: &'a [(f32, f32)],
    /// The leaf of every row so far.
    pub(super) leaves: &'a [u8],
}

/// The derivatives of all columns, from level to level.
///
/// A question divides every leaf; only the half with fewer rows is counted, and the rest of the leaf is the other half.
pub(super) struct Histograms {
    columns: Vec<Sums>,
}

impl Histograms {
    /// One leaf with all rows, which are ascending.
    pub(super) fn new(columns: &[BinnedColumn], rows: &[u32], of: &Rows<'_>) -> Self {
        let count = |column| of.count(column, rows, 1);
        Histograms {
            columns: columns.par_iter().map(count).collect(),
        }
    }

    /// Divides every leaf by the question of a level, which the leaves of the rows have answered already.
    pub(super) fn divide(
        &mut self,
        columns: &[BinnedColumn],
        rows: &[u32],
        level: usize,
        of: &Rows<'_>,
    ) {
        let is_above = |row: &u32| of.leaves[*row as usize] >> level & 1 == 1;
        let n_above = rows.iter().filter(|row| is_above(row)).count();
        let counts_above = n_above < rows.len() - n_above;
        let fewer: Vec<u32> = rows
            .iter()
            .copied()
            .filter(|row| is_above(row) == counts_above)
            .collect();
        let n_leaves = 1 << level;
        self.columns
            .par_iter_mut()
            .zip(columns)
            .for_each(|(sums, column)| {
                let mut counted = of.count(column, &fewer, 2 * n_leaves);
                let (below, above) = counted.split_at_mut(n_leaves);
                let (few, rest) = if counts_above {
                    (above, below)
                } else {
                    (below, above)
                };
                for ((rest, few), whole) in rest.iter_mut().zip(few).zip(&*sums) {
                    for ((rest, few), whole) in rest.iter_mut().zip(few).zip(whole) {
                        rest.gradient = whole.gradient - few.gradient;
                        rest.curvature = whole.curvature - few.curvature;
                    }
                }
                *sums = counted;
            });
    }

    /// The question that gains most, if any gains; ties to the first column and threshold.
    pub(super) fn best_question(&self, columns: &[BinnedColumn]) -> Option<Question> {
        let best = |(column, (sums, binned))| best_of_column(column, sums, binned);
        let columns = self.columns.par_iter().zip(columns).enumerate();
        let of_columns: Vec<_> = columns.map(best).collect();
        let mut best: Option<Question> = None;
        for question in of_columns.into_iter().flatten() {
            if best.is_none_or(|best| best.gain < question.gain) {
                best = Some(question);
            }
        }
        best
    }
}

impl Rows<'_> {
    /// Derivatives of some rows by leaf and bin.
    fn count(&self, column: &BinnedColumn, rows: &[u32], n_leaves: usize) -> Sums {
        let mut sums = vec![[Slope::default(); MAX_BINS]; n_leaves];
        for &row in rows {
            let row = row as usize;
            let (gradient, curvature) = self.slopes[row];
            sums[self.leaves[row] as usize][column.bins[row] as usize].add(Slope {
                gradient: f64::from(gradient),
                curvature: f64::from(curvature),
            });
        }
        sums
    }
}

fn best_of_column(column: usize, sums: &Sums, binned: &BinnedColumn) -> Option<Question> {
    let mut all = [Slope::default(); N_LEAVES];
    for (all, bins) in all.iter_mut().zip(sums) {
        bins.iter().for_each(|&bin| all.add(bin));
    }
    let whole: f64 = all[..sums.len()].iter().map(|leaf| leaf.gain()).sum();
    let mut below = [Slope::default(); N_LEAVES];
    let mut best: Option<Question> = None;
    for threshold in 0..binned.thresholds.len() {
        let mut gain = -whole;
        for (leaf, bins) in sums.iter().enumerate() {
            below[leaf].add(bins[threshold]);
            let above = Slope {
                gradient: all[leaf].gradient - below[leaf].gradient,
                curvature: all[leaf].curvature - below[leaf].curvature,
            };
            gain += below[leaf].gain() + above.gain();
        }
        if best.map_or(1e-9, |best| best.gain) < gain {
            best = Some(Question {
                column,
                threshold,
                gain,
            });
        }
    }
    best
}
