//! Stacking: boosted trees over everything known of a candidate.
//!
//! The network has p, the ranker its margin, the nearest training points their votes, and each is right on other data.
//! Trees over [`Features`] made of all columns, fitted on held-out points, learn which to trust. The score is an
//! estimate of the probability that the candidate is right; `calibration` makes an honest one of it.
//!
//! Points are divided into folds. Trees fitted without a fold score the fold, and on these scores the number of trees
//! is chosen and, later, probabilities are fitted: no point fits both.

mod bins;
mod features;
mod fit;
mod grow;
mod histogram;
mod trees;

pub(crate) use features::Features;
pub(crate) use fit::Examples;
pub(crate) use trees::{BoostedTrees, BoostingScratch, DEPTH, Tree};

#[cfg(test)]
mod tests;
