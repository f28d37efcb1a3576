//! Dual coordinate descent of the squared hinge loss for sixteen labels of a cluster at once.
//!
//! They have the same points, so they visit them in the same order, and a row is read once for all. Their problems stay
//! apart: each is that of [`squared_hinge`](super::squared_hinge), which is the readable version, with its own α. A point
//! is set aside once all of them would, and they stop together.

use crate::kernels::{Kernels, LANES, Lanes};
use crate::random::Random;

use super::RankerOptions;
use super::rows::TrainingRows;

/// The tolerance at which all count as solved is so much larger than that of one: most are well below it when the last
/// comes there, and their objectives are as good.
const TOLERANCE_FACTOR: f32 = 2.0;

/// The classifiers of some labels in training, and scratch; one per thread.
#[derive(Default)]
pub(super) struct LockstepSolver {
    /// By word, in the columns of the rows.
    pub(super) words: Vec<Lanes>,
    /// Of the constant feature.
    pub(super) bias: Lanes,
    /// The factor of each label's losses.
    pub(super) shares: Lanes,
    alphas: Vec<Lanes>,
    /// A bit per lane: whether the row is a positive of its label.
    positives: Vec<u16>,
    order: Vec<u32>,
}

/// The extremes of the violations of a pass.
struct Violations {
    largest: Lanes,
    smallest: Lanes,
}

impl Violations {
    fn are_small(&self, tolerance: f32) -> [bool; LANES] {
        std::array::from_fn(|lane| self.largest[lane] - self.smallest[lane] <= tolerance)
    }
}

impl LockstepSolver {
    /// Bytes for so many rows of so many words.
    pub(super) fn n_bytes(n_rows: usize, n_words: usize) -> usize {
        let per_row = size_of::<Lanes>() + size_of::<u16>() + size_of::<u32>();
        n_rows * per_row + n_words * size_of::<Lanes>()
    }

    /// Trains on rows, from the weights that [`LockstepSolver::reset`] left at zero or that were set since.
    pub(super) fn solve(
        &mut self,
        rows: &TrainingRows<'_>,
        options: &RankerOptions,
        random: &mut Random,
    ) {
        let n_rows = rows.len();
        let tolerance = TOLERANCE_FACTOR * options.tolerance;
        let mut n_active = n_rows;
        let mut shrink_above = [f32::INFINITY; LANES];
        for _ in 0..options.max_iterations {
            random.shuffle(&mut self.order[..n_active]);
            let (violations, n_left) = self.pass(rows, n_active, &shrink_above, options);
            let are_small = violations.are_small(tolerance);
            if are_small == [true; LANES] {
                if n_active == n_rows {
                    return;
                }
                // The active points are solved: check all of them once more.
                n_active = n_rows;
                shrink_above = [f32::INFINITY; LANES];
            } else {
                n_active = n_left;
                shrink_above = std::array::from_fn(|lane| {
                    if are_small[lane] {
                        tolerance
                    } else if violations.largest[lane] <= 0.0 {
                        f32::INFINITY
                    } else {
                        violations.largest[lane]
                    }
                });
            }
        }
    }

    /// Begins with so many rows and zero weights; `positives` has the rows of each label, at most [`LANES`].
    pub(super) fn reset<'p>(
        &mut self,
        n_rows: usize,
        n_columns: usize,
        positives: impl Iterator<Item = &'p [u32]>,
    ) {
        self.words.clear();
        self.words.resize(n_columns, [0.0; LANES]);
        self.bias = [0.0; LANES];
        self.shares = [1.0; LANES];
        self.alphas.clear();
        self.alphas.resize(n_rows, [0.0; LANES]);
        self.order.clear();
        self.order.extend(0..n_rows as u32);
        self.positives.clear();
        self.positives.resize(n_rows, 0);
        for (lane, rows) in positives.enumerate() {
            for &row in rows {
                self.positives[row as usize] |= 1 << lane;
            }
        }
    }

    /// Visits the active rows; returns the violations, and how many rows stay active.
    fn pass(
        &mut self,
        rows: &TrainingRows<'_>,
        mut n_active: usize,
        shrink_above: &Lanes,
        options: &RankerOptions,
    ) -> (Violations, usize) {
        let kernels = Kernels::detect();
        let mut violations = Violations {
            largest: [f32::NEG_INFINITY; LANES],
            smallest: [f32::INFINITY; LANES],
        };
        let mut place = 0;
        while place < n_active {
            let row = self.order[place] as usize;
            let (columns, values, scale) = rows.words(row);
            let dots = kernels.lane_dots(columns, values, &self.words);
            let is_positive: [bool; LANES] =
                std::array::from_fn(|lane| self.positives[row] & 1 << lane != 0);
            let (squared_norm, weight) = (rows.squared_norm(row) as f32, rows.weight(row));
            let mut steps = [0.0; LANES];
            let (mut is_active, mut moves) = (false, false);
            for lane in 0..LANES {
                let alpha = self.alphas[row][lane];
                let (sign, cost) = if is_positive[lane] {
                    (1.0, options.cost_positive)
                } else {
                    (-1.0, options.cost_negative)
                };
                let diagonal = 0.5 / (weight * self.shares[lane] * cost);
                let margin = scale * dots[lane] + options.bias * self.bias[lane];
                let gradient = sign * margin - 1.0 + alpha * diagonal;
                let is_at_bound = alpha == 0.0;
                let is_aside = is_at_bound && gradient > shrink_above[lane];
                let violation = if is_at_bound {
                    gradient.min(0.0)
                } else {
                    gradient
                };
                is_active |= !is_aside;
                violations.largest[lane] = violations.largest[lane].max(violation);
                violations.smallest[lane] = violations.smallest[lane].min(violation);
                let updated = (alpha - gradient / (squared_norm + diagonal)).max(0.0);
                moves |= updated != alpha;
                self.alphas[row][lane] = updated;
                steps[lane] = (updated - alpha) * sign;
            }
            if moves {
                let of_words = steps.map(|step| step * scale);
                kernels.lane_axpy(&of_words, columns, values, &mut self.words);
                (0..LANES).for_each(|lane| self.bias[lane] += steps[lane] * options.bias);
            }
            if is_active {
                place += 1;
            } else {
                n_active -= 1;
                self.order.swap(place, n_active);
            }
        }
        (violations, n_active)
    }
}
