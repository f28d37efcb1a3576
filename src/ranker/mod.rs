//! The sparse ranker of ELIAS++: a linear classifier per label that re-ranks the model's best candidates
//! (Section 3.5 and appendix C.2 of the paper).
//!
//! A point is ψ = [bow/‖bow‖, φ/‖φ‖]. The classifier of a label is trained on the points that have the label and, as
//! negatives, on those that have another label of its cluster; further classifiers tell the clusters apart
//! ([`ClusterTree`]). The paper's negatives are the points that have the label among their best candidates. The margin
//! is z = w·ψ + b; the score q is a function of z, see [`Ranker::probability`].
//!
//! This module sees candidates and features, not models.

mod blocks;
mod candidates;
mod clusters;
mod lockstep;
mod logistic;
mod options;
mod problem;
mod rows;
mod score;
mod solver;
mod squared_hinge;
mod train;
mod training_points;
mod weights;

pub(crate) use candidates::CandidateLists;
pub(crate) use clusters::{ClusterTree, ClusterTreeParts};
pub(crate) use options::RankerOptions;
pub(crate) use problem::RankerProblem;
pub(crate) use score::{PointView, RankerScratch};
pub(crate) use training_points::Negatives;
pub(crate) use weights::{Ranker, RankerParts};

#[cfg(test)]
mod tests;
