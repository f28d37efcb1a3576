//! One tree: a question per level, the same for all leaves, and a value per leaf.

use super::bins::{BinnedRow, Bins};
use super::histogram::{Histograms, Question, SampledRow, Slope};
use super::trees::{DEPTH, N_LEAVES, Tree};

/// A tree over bins.
#[derive(Clone, Debug, Default)]
pub(super) struct BinnedTree {
    /// At most [`DEPTH`].
    questions: Vec<Question>,
    /// Bit n of a leaf's number answers question n.
    leaves: [f32; N_LEAVES],
}

/// The rows that a tree is grown on, and scratch; kept for the next tree.
#[derive(Default)]
pub(super) struct Grower {
    /// Their bins, by place.
    bins: Vec<BinnedRow>,
    /// Leaf after leaf.
    rows: Vec<SampledRow>,
    divided: Vec<SampledRow>,
    above: Vec<SampledRow>,
}

impl Grower {
    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.bins.clear();
        self.rows.clear();
    }

    /// Adds a row and the derivatives of its loss, times its weight.
    #[inline]
    pub(super) fn push(&mut self, bins: BinnedRow, gradient: f32, curvature: f32) {
        self.rows.push(SampledRow {
            place: self.bins.len() as u32,
            gradient,
            curvature,
        });
        self.bins.push(bins);
    }

    /// Grows a tree on the rows; its leaves have `rate` times their best values.
    pub(super) fn grow(&mut self, bins: &Bins, rate: f64) -> BinnedTree {
        let mut tree = BinnedTree::default();
        let mut ends = vec![self.rows.len()];
        let mut histograms = Histograms::new(&self.bins, &self.rows);
        while let Some(question) = histograms.best_question(bins) {
            tree.questions.push(question);
            let divided = self.divide(&ends, &question);
            ends = divided.as_flattened().to_vec();
            if tree.questions.len() == DEPTH {
                break;
            }
            histograms = histograms.divide(&self.bins, &self.rows, &divided);
        }
        let n_levels = tree.questions.len();
        let mut start = 0;
        for (place, end) in ends.into_iter().enumerate() {
            let mut slope = Slope::default();
            self.rows[start..end].iter().for_each(|row| slope.add(row));
            // The first question divides the rows first, and is the lowest bit of a leaf.
            let leaf = (0..n_levels).fold(0, |leaf, level| leaf << 1 | place >> level & 1);
            tree.leaves[leaf] = (rate * slope.value()) as f32;
            start = end;
        }
        tree
    }

    /// Divides the rows of every leaf, those below first; where these end, and where the leaf does.
    fn divide(&mut self, ends: &[usize], question: &Question) -> Vec<[usize; 2]> {
        self.divided.resize(self.rows.len(), SampledRow::default());
        self.above.resize(self.rows.len(), SampledRow::default());
        let mut start = 0;
        let mut divided = Vec::with_capacity(ends.len());
        for &end in ends {
            let (mut n_below, mut n_above) = (0, 0);
            for row in &self.rows[start..end] {
                // Both are written, for want of a branch that nobody could predict.
                self.divided[start + n_below] = *row;
                self.above[n_above] = *row;
                let is_above = question.is_above(&self.bins[row.place as usize]);
                n_below += usize::from(!is_above);
                n_above += usize::from(is_above);
            }
            let middle = start + n_below;
            self.divided[middle..end].copy_from_slice(&self.above[..n_above]);
            divided.push([middle, end]);
            start = end;
        }
        std::mem::swap(&mut self.rows, &mut self.divided);
        divided
    }
}

impl BinnedTree {
    /// Adds the leaves of rows to their log-odds: of all rows of the bins, from `first` on.
    pub(super) fn add_to(
        &self,
        bins: &Bins,
        first: usize,
        logits: &mut [f32],
        leaves: &mut Vec<u8>,
    ) {
        leaves.clear();
        leaves.resize(logits.len(), 0);
        for (level, question) in self.questions.iter().enumerate() {
            let threshold = question.threshold as u8;
            let of_rows = &bins.column(question.column)[first..];
            for (leaf, &bin) in leaves.iter_mut().zip(of_rows) {
                *leaf |= u8::from(threshold < bin) << level;
            }
        }
        for (logit, &leaf) in logits.iter_mut().zip(&*leaves) {
            *logit += self.leaves[leaf as usize % N_LEAVES];
        }
    }

    /// The tree over values.
    pub(super) fn unbinned(&self, bins: &Bins) -> Tree {
        let mut tree = Tree {
            columns: [0; DEPTH],
            // No value is above: nothing is asked.
            thresholds: [f32::MAX; DEPTH],
            leaves: self.leaves,
        };
        for (level, question) in self.questions.iter().enumerate() {
            tree.columns[level] = question.column as u32;
            tree.thresholds[level] = bins.thresholds(question.column)[question.threshold];
        }
        tree
    }
}
