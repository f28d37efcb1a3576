//! Histograms of derivatives by leaf and bin, from which a tree chooses its questions.
//!
//! Derivatives are summed in `f64`, row after row, so that sums do not depend on the number of threads.

use rayon::prelude::*;

use super::bins::{BinnedRow, Bins, MAX_BINS, N_WORDS, WORD, bin_of};
use super::features::N_FEATURES;

/// Added to the curvature of every leaf: λ of the penalty λ/2·v².
const SHRINKAGE: f64 = 5.0;

/// Sums of the first and second derivatives of the loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slope {
    gradient: f64,
    curvature: f64,
}

impl Slope {
    #[inline]
    pub(super) fn add(&mut self, row: &SampledRow) {
        self.gradient += f64::from(row.gradient);
        self.curvature += f64::from(row.curvature);
    }

    fn sum<'s>(slopes: impl Iterator<Item = &'s Slope>) -> Slope {
        slopes.fold(Slope::default(), |sum, slope| Slope {
            gradient: sum.gradient + slope.gradient,
            curvature: sum.curvature + slope.curvature,
        })
    }

    fn minus(self, other: Slope) -> Slope {
        Slope {
            gradient: self.gradient - other.gradient,
            curvature: self.curvature - other.curvature,
        }
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

/// A row that a tree is grown on, with the derivatives of its loss, times its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampledRow {
    /// Its place among the rows of the tree.
    pub(super) place: u32,
    pub(super) gradient: f32,
    pub(super) curvature: f32,
}

/// The question of one level of a tree, which is the same for all leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) column: usize,
    /// The place of the threshold among those of the column.
    pub(super) threshold: usize,
    gain: f64,
}

impl Question {
    /// Whether a row is above the threshold.
    #[inline]
    pub(super) fn is_above(&self, row: &BinnedRow) -> bool {
        self.threshold < bin_of(row, self.column)
    }
}

/// Slopes of one leaf by the bins of the columns of one word.
type WordHistogram = [[Slope; MAX_BINS]; WORD];

/// Slopes of every leaf of a level.
pub(super) struct Histograms {
    /// By word, then by leaf.
    words: Vec<Vec<WordHistogram>>,
}

impl Histograms {
    /// One leaf with all rows.
    pub(super) fn new(bins: &[BinnedRow], rows: &[SampledRow]) -> Self {
        let words = (0..N_WORDS).into_par_iter();
        Histograms {
            words: words.map(|word| vec![count(bins, word, rows)]).collect(),
        }
    }

    /// Divides every leaf: `ends` has where the rows below and those above end, leaf after leaf. Counts the fewer of both.
    pub(super) fn divide(
        self,
        bins: &[BinnedRow],
        rows: &[SampledRow],
        ends: &[[usize; 2]],
    ) -> Self {
        let divide = |(word, leaves): (usize, Vec<WordHistogram>)| {
            let mut divided = Vec::with_capacity(2 * leaves.len());
            let mut start = 0;
            for (mut rest, &[middle, end]) in leaves.into_iter().zip(ends) {
                let is_below = middle - start <= end - middle;
                let fewer = if is_below { start..middle } else { middle..end };
                let few = count(bins, word, &rows[fewer]);
                for (rest, few) in rest.iter_mut().flatten().zip(few.iter().flatten()) {
                    *rest = rest.minus(*few);
                }
                divided.extend(if is_below { [few, rest] } else { [rest, few] });
                start = end;
            }
            divided
        };
        let words = self.words.into_par_iter().enumerate();
        Histograms {
            words: words.map(divide).collect(),
        }
    }

    /// The question that gains most, if any gains; ties to the first column and threshold.
    pub(super) fn best_question(&self, bins: &Bins) -> Option<Question> {
        let questions: Vec<Option<Question>> = (0..N_FEATURES)
            .into_par_iter()
            .map(|column| self.best_of_column(column, bins.thresholds(column).len()))
            .collect();
        let mut best: Option<Question> = None;
        for question in questions.into_iter().flatten() {
            if best.is_none_or(|best| best.gain < question.gain) {
                best = Some(question);
            }
        }
        best
    }

    fn best_of_column(&self, column: usize, n_thresholds: usize) -> Option<Question> {
        let mut gains = [0.0; MAX_BINS];
        for leaf in &self.words[column / WORD] {
            let slopes = &leaf[column % WORD];
            let all = Slope::sum(slopes.iter());
            let mut below = Slope::default();
            for (gain, slope) in gains[..n_thresholds].iter_mut().zip(slopes) {
                below = Slope::sum([below, *slope].iter());
                *gain += below.gain() + all.minus(below).gain() - all.gain();
            }
        }
        let mut best: Option<Question> = None;
        for (threshold, &gain) in gains[..n_thresholds].iter().enumerate() {
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

/// Slopes of some rows by the bins of the columns of a word.
fn count(bins: &[BinnedRow], word: usize, rows: &[SampledRow]) -> WordHistogram {
    let mut sums = [[Slope::default(); MAX_BINS]; WORD];
    for row in rows {
        let bins = bins[row.place as usize][word].to_le_bytes();
        for (sums, bin) in sums.iter_mut().zip(bins) {
            sums[bin as usize % MAX_BINS].add(row);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    /// The gain of a question by its definition: over all leaves, those of both sides minus that of the whole.
    fn gain(bins: &[BinnedRow], leaves: &[&[SampledRow]], column: usize, threshold: usize) -> f64 {
        let of = |rows: &mut dyn Iterator<Item = &SampledRow>| {
            let mut slope = Slope::default();
            rows.for_each(|row| slope.add(row));
            slope.gain()
        };
        let is_above = |row: &SampledRow| bin_of(&bins[row.place as usize], column) > threshold;
        let sides = leaves.iter().map(|rows| {
            of(&mut rows.iter().filter(|row| is_above(row)))
                + of(&mut rows.iter().filter(|row| !is_above(row)))
                - of(&mut rows.iter())
        });
        sides.sum()
    }

    proptest! {
        /// Against all questions, one by one, of the root and of the leaves that a first question makes.
        #[test]
        fn the_best_question_is_that_of_a_search_through_all(seed in 0u64..1000, n_rows in 1usize..60) {
            let mut random = Random::new(seed, "histograms", 0);
            let columns: Vec<Vec<f32>> = (0..N_FEATURES)
                .map(|_| (0..n_rows).map(|_| random.below(6) as f32).collect())
                .collect();
            let relevant: Vec<bool> = (0..n_rows).map(|_| random.below(3) == 0).collect();
            let bins = Bins::new(columns, &relevant);
            let by_row: Vec<BinnedRow> = (0..n_rows).map(|row| bins.row(row)).collect();
            let rows: Vec<SampledRow> = (0..n_rows as u32)
                .map(|place| SampledRow { place, gradient: random.normal(), curvature: random.f32() })
                .collect();
            let check = |histograms: &Histograms, leaves: &[&[SampledRow]]| {
                let all = (0..N_FEATURES).flat_map(|column| {
                    let thresholds = 0..bins.thresholds(column).len();
                    thresholds.map(move |threshold| (column, threshold))
                });
                let best = all.map(|(column, at)| gain(&by_row, leaves, column, at)).fold(0.0, f64::max);
                let found = histograms.best_question(&bins);
                let found_gain = found.map_or(0.0, |found| gain(&by_row, leaves, found.column, found.threshold));
                assert!((best - found_gain).abs() <= 1e-6 * (1.0 + best), "{best} {found_gain}");
            };
            let root = Histograms::new(&by_row, &rows);
            check(&root, &[&rows]);
            let (above, below): (Vec<SampledRow>, Vec<SampledRow>) =
                rows.iter().partition(|row| bin_of(&by_row[row.place as usize], 0) > 0);
            let divided = [&below[..], &above[..]].concat();
            let leaves = root.divide(&by_row, &divided, &[[below.len(), n_rows]]);
            check(&leaves, &[&below, &above]);
        }
    }
}
