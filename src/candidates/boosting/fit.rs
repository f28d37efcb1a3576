//! Fitting: gradient boosting of the logistic loss, with the number of trees chosen on points that were left out.

use rayon::prelude::*;

use super::features::{Features, N_FEATURES};
use super::histogram::{BinnedColumn, Histograms, Rows, Slope};
use super::trees::{BoostedTrees, DEPTH, N_LEAVES, Tree};
use crate::classifiers::sigmoid;
use crate::error::{Error, Result};

/// Parts into which the points are divided.
const N_FOLDS: usize = 3;
/// Most trees.
const MAX_TREES: usize = 150;
/// Share of a leaf's best value that a tree takes.
const RATE: f64 = 0.1;

/// Candidates of held-out points with their features.
#[derive(Default)]
pub(crate) struct Examples {
    columns: [Vec<f32>; N_FEATURES],
    relevant: Vec<bool>,
    /// Where its log-odds begin, besides the start of all.
    nudges: Vec<f32>,
    /// The point of every candidate.
    points: Vec<u32>,
    n_points: usize,
}

impl Examples {
    /// Bytes of the features of so many candidates, in numbers and in bins, and of trees being fitted on them.
    pub(crate) fn n_bytes(n_candidates: usize) -> usize {
        (5 * N_FEATURES + 40) * n_candidates
    }

    /// Bytes of the features of so many candidates before they are added.
    pub(crate) fn n_feature_bytes(n_candidates: usize) -> usize {
        4 * N_FEATURES * n_candidates
    }

    /// Adds the candidates of the next point.
    pub(crate) fn push(&mut self, features: &Features, relevant: impl Iterator<Item = bool>) {
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.extend_from_slice(features.column(at));
        }
        self.relevant.extend(relevant);
        self.nudges.extend(features.nudges());
        self.points
            .resize(self.relevant.len(), self.n_points as u32);
        self.n_points += 1;
    }

    /// Fits trees, and scores every candidate by others that were fitted without its point.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] without a relevant candidate.
    pub(crate) fn fit(&self) -> Result<(BoostedTrees, Vec<f32>)> {
        if !self.relevant.contains(&true) {
            let problem =
                "no candidate of the held-out points is right, there is nothing to learn from";
            return Err(Error::CannotTrain(problem.into()));
        }
        let columns: Vec<BinnedColumn> = self
            .columns
            .par_iter()
            .map(|values| BinnedColumn::new(values, &self.relevant))
            .collect();
        let fold = |row: &u32| self.points[*row as usize] as usize % N_FOLDS;
        let rows = 0..self.relevant.len() as u32;
        // One after the other: each uses all threads.
        let folds: Vec<Fold> = (0..N_FOLDS)
            .map(|of| {
                let (left_out, rows): (Vec<u32>, Vec<u32>) =
                    rows.clone().partition(|row| fold(row) == of);
                let trees = self.boost(&columns, &rows, MAX_TREES);
                Fold { left_out, trees }
            })
            .collect();
        let losses: Vec<Vec<f64>> = folds.par_iter().map(|fold| self.losses(fold)).collect();
        let loss = |n_trees: &usize| losses.iter().map(|of| of[*n_trees]).sum::<f64>();
        let n_trees = (0..=MAX_TREES)
            .min_by(|a, b| loss(a).total_cmp(&loss(b)))
            .unwrap_or(MAX_TREES);
        let mut scores = vec![0.0; self.relevant.len()];
        for Fold { left_out, trees } in &folds {
            for &row in left_out {
                let row = row as usize;
                let leaves = trees.trees()[..n_trees]
                    .iter()
                    .map(|tree| self.leaf(tree, row));
                let start = trees.start() + self.nudges[row];
                scores[row] = sigmoid(leaves.fold(start, |sum, leaf| sum + leaf));
            }
        }
        let all: Vec<u32> = rows.collect();
        Ok((self.boost(&columns, &all, n_trees), scores))
    }

    /// Boosts trees on some rows.
    fn boost(&self, columns: &[BinnedColumn], rows: &[u32], n_trees: usize) -> BoostedTrees {
        let n_relevant = rows.iter().filter(|row| self.relevant[**row as usize]);
        let share = (n_relevant.count() as f64 + 0.5) / (rows.len() as f64 + 1.0);
        let start = (share / (1.0 - share)).ln() as f32;
        let mut logits: Vec<f32> = self.nudges.iter().map(|nudge| start + nudge).collect();
        let mut slopes = vec![(0.0, 0.0); self.relevant.len()];
        let mut leaves = vec![0u8; self.relevant.len()];
        let mut trees = Vec::with_capacity(n_trees);
        for _ in 0..n_trees {
            for &row in rows {
                let row = row as usize;
                let p = sigmoid(logits[row]);
                let is_relevant = f32::from(u8::from(self.relevant[row]));
                slopes[row] = (p - is_relevant, p * (1.0 - p));
                leaves[row] = 0;
            }
            let tree = grow(columns, rows, &slopes, &mut leaves);
            for &row in rows {
                logits[row as usize] += tree.leaves[leaves[row as usize] as usize];
            }
            trees.push(tree);
        }
        BoostedTrees::from_parts(start, trees).expect("columns and leaves are valid")
    }

    /// Loss of the points left out after 0, 1, 2, ... trees.
    fn losses(&self, fold: &Fold) -> Vec<f64> {
        let mut losses = vec![0.0; fold.trees.trees().len() + 1];
        for &row in &fold.left_out {
            let row = row as usize;
            let sign = if self.relevant[row] { 1.0 } else { -1.0 };
            let mut logit = fold.trees.start() + self.nudges[row];
            let leaves = fold.trees.trees().iter().map(|tree| self.leaf(tree, row));
            for (loss, leaf) in losses.iter_mut().zip(leaves.chain([0.0])) {
                *loss += f64::from((-sign * logit).exp().ln_1p());
                logit += leaf;
            }
        }
        losses
    }

    /// The value that a tree adds to a row.
    fn leaf(&self, tree: &Tree, row: usize) -> f32 {
        let questions = tree.columns.iter().zip(&tree.thresholds).enumerate();
        let leaf = questions.fold(0, |leaf, (level, (&column, &threshold))| {
            leaf | usize::from(self.columns[column as usize][row] > threshold) << level
        });
        tree.leaves[leaf]
    }
}

/// Points left out, and trees that have not seen them.
struct Fold {
    left_out: Vec<u32>,
    trees: BoostedTrees,
}

/// Grows one tree; leaves the leaf of every row in `leaves`, which must be 0.
fn grow(columns: &[BinnedColumn], rows: &[u32], slopes: &[(f32, f32)], leaves: &mut [u8]) -> Tree {
    let mut tree = Tree {
        columns: [0; DEPTH],
        // No value is above: nothing is asked.
        thresholds: [f32::MAX; DEPTH],
        leaves: [0.0; N_LEAVES],
    };
    let mut histograms = Histograms::new(columns, rows, &Rows { slopes, leaves });
    for level in 0..DEPTH {
        let Some(question) = histograms.best_question(columns) else {
            break;
        };
        let column = &columns[question.column];
        tree.columns[level] = question.column as u32;
        tree.thresholds[level] = column.thresholds[question.threshold];
        for &row in rows {
            let is_above = column.is_above(row as usize, question.threshold);
            leaves[row as usize] |= u8::from(is_above) << level;
        }
        if level + 1 < DEPTH {
            histograms.divide(columns, rows, level, &Rows { slopes, leaves });
        }
    }
    let mut sums = [Slope::default(); N_LEAVES];
    for &row in rows {
        let (gradient, curvature) = slopes[row as usize];
        sums[leaves[row as usize] as usize].add(Slope {
            gradient: f64::from(gradient),
            curvature: f64::from(curvature),
        });
    }
    tree.leaves = sums.map(|sum| (RATE * sum.value()) as f32);
    tree
}
