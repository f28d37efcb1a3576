//! Boosted trees that ask one question per level.
//!
//! All nodes of a level compare the same column with the same threshold, so a tree is [`DEPTH`] comparisons that give
//! the number of a leaf: no branches, and many candidates at once.

use super::evidence::{Evidence, N_COLUMNS};
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
/// Invariants: columns are below [`N_COLUMNS`], thresholds, leaves and start are finite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judge {
    /// Log-odds before any tree.
    start: f32,
    trees: Vec<Tree>,
}

/// Buffers of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct JudgeScratch {
    leaves: Vec<u32>,
}

impl Judge {
    /// A judge from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_parts(start: f32, trees: Vec<Tree>) -> Result<Self> {
        let is_valid = |tree: &Tree| {
            tree.columns.iter().all(|&of| (of as usize) < N_COLUMNS)
                && tree.thresholds.iter().all(|at| at.is_finite())
                && tree.leaves.iter().all(|leaf| leaf.is_finite())
        };
        if start.is_finite() && trees.iter().all(is_valid) {
            Ok(Judge { start, trees })
        } else {
            let problem = format!(
                "the judge's trees must ask about columns below {N_COLUMNS} and have finite leaves"
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

    /// Writes the score of every candidate to `out`: an estimate of the probability that it is right.
    pub(crate) fn score(
        &self,
        evidence: &Evidence,
        scratch: &mut JudgeScratch,
        out: &mut Vec<f32>,
    ) {
        out.clear();
        out.extend(evidence.nudges().map(|nudge| self.start + nudge));
        for tree in &self.trees {
            tree.add_to(|column| evidence.column(column), out, &mut scratch.leaves);
        }
        out.iter_mut().for_each(|logit| *logit = sigmoid(*logit));
    }
}

impl Tree {
    /// Adds its leaves to the log-odds of rows.
    pub(super) fn add_to<'c>(
        &self,
        column: impl Fn(usize) -> &'c [f32],
        logits: &mut [f32],
        buffer: &mut Vec<u32>,
    ) {
        buffer.clear();
        buffer.resize(logits.len(), 0);
        for (level, (&of, &threshold)) in self.columns.iter().zip(&self.thresholds).enumerate() {
            let values = column(of as usize);
            for (leaf, &value) in buffer.iter_mut().zip(values) {
                *leaf |= u32::from(value > threshold) << level;
            }
        }
        for (logit, &leaf) in logits.iter_mut().zip(&*buffer) {
            *logit += self.leaves[leaf as usize % N_LEAVES];
        }
    }
}
