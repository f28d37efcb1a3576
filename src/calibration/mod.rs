//! Score calibration of ELIAS++: from the model's p and the ranker's q to one score, and to a probability
//! (Section 3.5 and appendix C.2 of the paper).
//!
//! The final score is T(p, q, p·q, f) + p·q, where f is the label's number of training points and T a decision tree
//! fitted on held-out points. [`Isotonic`] turns scores into calibrated probabilities. This module sees scores, not models.

mod calibrator;
mod isotonic;
mod tree;
mod tree_fit;

pub(crate) use calibrator::TREE_LIMITS;
pub(crate) use calibrator::{Calibrator, CandidateScores, Mixing};
pub(crate) use isotonic::Isotonic;
pub(crate) use tree::{DecisionTree, TreeNode};
#[cfg(test)]
pub(crate) use tree_fit::TreeLimits;

#[cfg(test)]
mod tests;
