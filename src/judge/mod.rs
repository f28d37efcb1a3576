//! The judge: what all experts together make of a candidate.
//!
//! The network says p, the ranker its margin, the neighbours their votes, and each is right on other data. Boosted
//! trees over all of it ([`Evidence`]), fitted on held-out points, learn whom to trust. The judge's score is its
//! estimate of the probability that the candidate is right; `calibration` makes an honest one of it.
//!
//! Points are divided into folds. A judge fitted without a fold scores the fold, and on these scores the number of
//! trees is chosen and, later, probabilities are fitted: no point fits both.

mod evidence;
mod fit;
mod histogram;
mod trees;

pub(crate) use evidence::{Clues, Evidence, TextClues};
pub(crate) use fit::Examples;
pub(crate) use trees::{DEPTH, Judge, JudgeScratch, Tree};

#[cfg(test)]
mod tests;
