//! Fitting boosted trees on held-out points, by second-order steps on the cross entropy.
//!
//! Most candidates are wrong and soon known to be: such easy ones, recognised every few trees, are sampled, another part
//! of them for every tree, and weigh as many as they stand for. Points are divided into folds: the scores of a point come
//! from trees that have not seen it, so that probabilities can be fitted to them.

use rayon::prelude::*;

use super::bins::Bins;
use super::features::{Features, N_FEATURES};
use super::grow::{BinnedTree, Grower};
use super::trees::BoostedTrees;
use crate::classifiers::sigmoid;
use crate::error::{Error, Result};
use crate::random::Random;

/// Parts of the points, each scored by trees that were fitted on the others.
const N_FOLDS: usize = 3;
/// Most trees, and what each has of its leaves' best values.
const MAX_TREES: usize = 150;
const RATE: f64 = 0.1;
/// Trees after which easy candidates are recognised again, and the loss of points left out is taken.
const ROUND: usize = 10;
/// Log-odds below which a wrong candidate is easy.
const EASY: f32 = -4.0;
/// Of the easy candidates every tree has at most one in so many.
const MAX_PARTS: usize = 16;
/// Candidates per part, at least.
const PER_PART: usize = 20_000;
/// Rows that a thread adds a tree to.
const CHUNK: usize = 1 << 14;

/// The candidates of held-out points, to fit on.
#[derive(Default)]
pub(crate) struct Examples {
    columns: [Vec<f32>; N_FEATURES],
    relevant: Vec<bool>,
    /// Where its log-odds begin, besides the start of all.
    nudges: Vec<f32>,
    /// The point of every candidate.
    points: Vec<u32>,
    /// The factor of each point's losses.
    weights: Vec<f32>,
}

impl Examples {
    /// Bytes of the features of so many candidates, in numbers and in bins, and of trees being fitted on them.
    pub(crate) fn n_bytes(n_candidates: usize) -> usize {
        // A column at a time is there in both forms. Of every fit the log-odds and a part of the rows.
        let columns = (4 * N_FEATURES).max(4 + Bins::n_bytes() + (N_FOLDS + 1) * 16);
        (columns + 16) * n_candidates
    }

    /// Bytes of the features of so many candidates before they are added.
    pub(crate) fn n_feature_bytes(n_candidates: usize) -> usize {
        4 * N_FEATURES * n_candidates
    }

    /// Adds the candidates of the next point, whose losses have this factor.
    pub(crate) fn push(
        &mut self,
        features: &Features,
        relevant: impl Iterator<Item = bool>,
        weight: f32,
    ) {
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.extend_from_slice(features.column(at));
        }
        self.relevant.extend(relevant);
        self.nudges.extend(features.nudges());
        self.points
            .resize(self.relevant.len(), self.weights.len() as u32);
        self.weights.push(weight);
    }

    /// Fits trees, and scores every candidate by others that were fitted without its point.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] without a relevant candidate.
    pub(crate) fn fit(self) -> Result<(BoostedTrees, Vec<f32>)> {
        if !self.relevant.contains(&true) {
            let problem =
                "no candidate of the held-out points is right, there is nothing to learn from";
            return Err(Error::CannotTrain(problem.into()));
        }
        let n_parts = (self.relevant.len() / PER_PART).clamp(1, MAX_PARTS);
        let part = |row| Random::new(0, "easy candidates", row).below(n_parts) as u8;
        let problem = Problem {
            parts: (0..self.relevant.len() as u64).map(part).collect(),
            n_parts,
            bins: Bins::new(self.columns.into(), &self.relevant),
            relevant: self.relevant,
            nudges: self.nudges,
            weights: self
                .points
                .iter()
                .map(|&of| self.weights[of as usize])
                .collect(),
            folds: self
                .points
                .iter()
                .map(|of| (of % N_FOLDS as u32) as u8)
                .collect(),
        };
        let left_out = (0..N_FOLDS as u8).map(Some).chain([None]);
        let fits: Vec<Fit> = left_out
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|left_out| problem.boost(left_out))
            .collect();
        let (all, folds) = fits.split_last().expect("all points are the last fit");
        let loss = |round: &usize| folds.iter().map(|fold| fold.losses[*round]).sum::<f64>();
        let best = (0..=MAX_TREES / ROUND).min_by(|a, b| loss(a).total_cmp(&loss(b)));
        let n_trees = ROUND * best.expect("there is a round");
        let logits: Vec<Vec<f32>> = folds
            .iter()
            .map(|fold| problem.logits(fold, n_trees))
            .collect();
        let of_folds = problem.folds.iter().enumerate();
        let scores = of_folds
            .map(|(row, &fold)| sigmoid(logits[fold as usize][row]))
            .collect();
        let trees = all.trees[..n_trees].iter();
        let trees = trees.map(|tree| tree.unbinned(&problem.bins)).collect();
        Ok((BoostedTrees::from_parts(all.start, trees)?, scores))
    }
}

/// The candidates in bins.
struct Problem {
    bins: Bins,
    relevant: Vec<bool>,
    nudges: Vec<f32>,
    /// The factor of every candidate's loss.
    weights: Vec<f32>,
    /// The fold of every candidate's point.
    folds: Vec<u8>,
    /// The part that a candidate is in while it is easy.
    parts: Vec<u8>,
    n_parts: usize,
}

/// Trees fitted on all folds but one, or on all.
struct Fit {
    /// Log-odds before any tree.
    start: f32,
    trees: Vec<BinnedTree>,
    /// Loss of the fold left out, before the first tree and after every round.
    losses: Vec<f64>,
}

impl Problem {
    /// Boosts trees on all folds but one.
    fn boost(&self, left_out: Option<u8>) -> Fit {
        let rows: Vec<u32> = (0..self.relevant.len() as u32)
            .filter(|&row| Some(self.folds[row as usize]) != left_out)
            .collect();
        let n_relevant = rows.iter().filter(|row| self.relevant[**row as usize]);
        let share = (n_relevant.count() as f64 + 0.5) / (rows.len() as f64 + 1.0);
        let start = (share / (1.0 - share)).ln() as f32;
        let mut logits: Vec<f32> = self.nudges.iter().map(|nudge| start + nudge).collect();
        let mut fit = Fit {
            start,
            trees: Vec::with_capacity(MAX_TREES),
            losses: vec![self.loss(left_out, &logits)],
        };
        let mut grower = Grower::default();
        while fit.trees.len() < MAX_TREES {
            let sample = self.sample(&rows, &logits);
            for _ in 0..ROUND {
                let part = &sample.easy[fit.trees.len() % self.n_parts];
                grower.clear();
                for (rows, weight) in [(&sample.hard, 1.0), (part, self.n_parts as f32)] {
                    for &row in rows {
                        let row = row as usize;
                        let p = sigmoid(logits[row]);
                        let weight = self.weights[row] * weight;
                        let gradient = p - f32::from(u8::from(self.relevant[row]));
                        let curvature = p * (1.0 - p);
                        grower.push(self.bins.row(row), weight * gradient, weight * curvature);
                    }
                }
                let tree = grower.grow(&self.bins, RATE);
                self.add(&tree, &mut logits);
                fit.trees.push(tree);
            }
            fit.losses.push(self.loss(left_out, &logits));
        }
        fit
    }

    /// Divides rows into hard ones and parts of the easy ones.
    fn sample(&self, rows: &[u32], logits: &[f32]) -> Sample {
        let mut sample = Sample {
            hard: Vec::new(),
            easy: vec![Vec::new(); self.n_parts],
        };
        for &row in rows {
            let at = row as usize;
            if self.n_parts == 1 || self.relevant[at] || EASY < logits[at] {
                sample.hard.push(row);
            } else {
                sample.easy[self.parts[at] as usize].push(row);
            }
        }
        sample
    }

    /// Adds a tree to the log-odds of all rows.
    fn add(&self, tree: &BinnedTree, logits: &mut [f32]) {
        let chunks = logits.par_chunks_mut(CHUNK).enumerate();
        chunks.for_each_init(Vec::new, |leaves, (chunk, logits)| {
            tree.add_to(&self.bins, chunk * CHUNK, logits, leaves);
        });
    }

    /// The log-odds of all rows after some trees.
    fn logits(&self, fit: &Fit, n_trees: usize) -> Vec<f32> {
        let mut logits: Vec<f32> = self.nudges.iter().map(|nudge| fit.start + nudge).collect();
        let trees = fit.trees[..n_trees].iter();
        trees.for_each(|tree| self.add(tree, &mut logits));
        logits
    }

    /// The loss of a fold.
    fn loss(&self, fold: Option<u8>, logits: &[f32]) -> f64 {
        let rows = (0..logits.len()).filter(|&row| Some(self.folds[row]) == fold);
        let loss = |row: usize| {
            let sign = if self.relevant[row] { 1.0 } else { -1.0 };
            f64::from(self.weights[row]) * f64::from((-sign * logits[row]).exp().ln_1p())
        };
        rows.map(loss).sum()
    }
}

/// The rows of a round of trees.
struct Sample {
    /// Every tree has them.
    hard: Vec<u32>,
    /// Every tree has one of these parts.
    easy: Vec<Vec<u32>>,
}
