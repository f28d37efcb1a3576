//! Columns cut into bins, and the best question to ask of all leaves at once.
//!
//! Each column has its own pass over the rows in their order, so that sums do not depend on the number of threads.

use rayon::prelude::*;

use super::trees::N_LEAVES;

/// Most bins of a column.
const MAX_BINS: usize = 64;
/// Added to the curvature of a leaf: leaves with little evidence say little.
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

    /// What the best value of a leaf gains.
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

/// The rows of a tree in growth.
pub(super) struct Rows<'a> {
    /// Rows that count, ascending.
    pub(super) rows: &'a [u32],
    /// gradient and curvature of every row.
    pub(super) slopes: &'a [(f32, f32)],
    /// The leaf of every row so far.
    pub(super) leaves: &'a [u8],
    pub(super) n_leaves: usize,
}

impl Rows<'_> {
    /// The question that gains most, if any gains; ties to the first column and threshold.
    pub(super) fn best_question(&self, columns: &[BinnedColumn]) -> Option<Question> {
        let best = |(column, binned)| self.best_of_column(column, binned);
        let of_columns: Vec<_> = columns.par_iter().enumerate().map(best).collect();
        let mut best: Option<Question> = None;
        for question in of_columns.into_iter().flatten() {
            if best.is_none_or(|best| best.gain < question.gain) {
                best = Some(question);
            }
        }
        best
    }

    fn best_of_column(&self, column: usize, binned: &BinnedColumn) -> Option<Question> {
        let mut sums = [[Slope::default(); MAX_BINS]; N_LEAVES / 2];
        for &row in self.rows {
            let row = row as usize;
            let leaf = self.leaves[row] as usize % (N_LEAVES / 2);
            let bin = binned.bins[row] as usize % MAX_BINS;
            let (gradient, curvature) = self.slopes[row];
            sums[leaf][bin].add(Slope {
                gradient: f64::from(gradient),
                curvature: f64::from(curvature),
            });
        }
        let sums = &sums[..self.n_leaves];
        let mut all = [Slope::default(); N_LEAVES];
        for (all, bins) in all.iter_mut().zip(sums) {
            bins.iter().for_each(|&bin| all.add(bin));
        }
        let whole: f64 = all[..self.n_leaves].iter().map(|leaf| leaf.gain()).sum();
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
}
