//! Score calibration of ELIAS++: from the model's p and the ranker's q to one score, and to a probability
//! (Section 3.5 and appendix C.2 of the paper).
//!
//! The final score is T(p, q, p·q, f) + p·q, where f is the label's number of training points and T a decision tree
//! fitted on held-out points. [`Isotonic`] turns scores into calibrated probabilities, and [`Reliability`]
//! measures their calibration. This module sees scores, not models.

mod calibrator;
mod isotonic;
mod reliability;
mod tree;
mod tree_fit;

pub use calibrator::{Calibrator, CandidateScores, Mixing};
pub use isotonic::Isotonic;
pub use reliability::{Reliability, ReliabilityBin};
pub use tree::{DecisionTree, TreeNode};
pub use tree_fit::TreeLimits;
