//! Boosted trees that ask one question per level.
//!
//! All nodes of a level compare the same column with the same threshold, so a tree is [`DEPTH`] comparisons that give
//! the number of a leaf: no branches, and many candidates at once.

use super::features::{Features, N_FEATURES};
use crate::candidates::{Candidates, Column};
use crate::classifiers::sigmoid;
use crate::error::{Error, Result};

/// Questions of a tree.
pub(crate) const DEPTH: usize = 5;
/// Its leaves.
pub(crate) const N_LEAVES: usize = 1 << DEPTH;

/// One tree: the leaf's bit `i` is whether column `columns[i]` is greater than `thresholds[i]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    pub(crate) columns: [u32; DEPTH],
    pub(crate) thresholds: [f32; DEPTH],
    pub(crate) leaves: [f32; N_LEAVES],
}

/// Boosted trees.
///
/// Invariants: columns are below [`N_FEATURES`], thresholds, leaves and start are finite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoostedTrees {
    /// Log-odds before any tree.
    start: f32,
    trees: Vec<Tree>,
}

/// Buffers of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoostingScratch {
    features: Features,
    leaves: Vec<u32>,
}

impl BoostedTrees {
    /// Trees from their parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_parts(start: f32, trees: Vec<Tree>) -> Result<Self> {
        let is_valid = |tree: &Tree| {
            tree.columns.iter().all(|&of| (of as usize) < N_FEATURES)
                && tree.thresholds.iter().all(|at| at.is_finite())
                && tree.leaves.iter().all(|leaf| leaf.is_finite())
        };
        if start.is_finite() && trees.iter().all(is_valid) {
            Ok(BoostedTrees { start, trees })
        } else {
            let problem = format!(
                "boosted trees must ask about columns below {N_FEATURES} and have finite leaves"
            );
            Err(Error::InvalidModel(problem))
        }
    }

    /// Log-odds before any tree.
    pub(crate) fn start(&self) -> f32 {
        self.start
    }

    /// The trees.
    pub(crate) fn trees(&self) -> &[Tree] {
        &self.trees
    }

    /// Fills the final score of candidates: an estimate of the probability that each is right.
    pub(crate) fn score_candidates(
        &self,
        candidates: &mut Candidates,
        scratch: &mut BoostingScratch,
    ) {
        let BoostingScratch { features, leaves } = scratch;
        features.fill(candidates);
        let (_, scores) = candidates.labels_and(Column::FinalScore);
        self.score(features, leaves, scores);
    }

    /// Writes the score of every candidate with these features to `out`.
    pub(crate) fn score(&self, features: &Features, leaves: &mut Vec<u32>, out: &mut Vec<f32>) {
        out.clear();
        out.extend(features.nudges().map(|nudge| self.start + nudge));
        for tree in &self.trees {
            tree.add_to(features, out, leaves);
        }
        out.iter_mut().for_each(|logit| *logit = sigmoid(*logit));
    }
}

impl Tree {
    /// Adds its leaves to the log-odds of rows.
    fn add_to(&self, features: &Features, logits: &mut [f32], buffer: &mut Vec<u32>) {
        buffer.clear();
        buffer.resize(logits.len(), 0);
        for (level, (&of, &threshold)) in self.columns.iter().zip(&self.thresholds).enumerate() {
            let values = features.column(of as usize);
            for (leaf, &value) in buffer.iter_mut().zip(values) {
                *leaf |= u32::from(value > threshold) << level;
            }
        }
        for (logit, &leaf) in logits.iter_mut().zip(&*buffer) {
            *logit += self.leaves[leaf as usize % N_LEAVES];
        }
    }
}
