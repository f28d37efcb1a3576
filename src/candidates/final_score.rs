//! The final score of a candidate in one member, from the columns of the others.

use super::boosting::{BoostedTrees, BoostingScratch};
use super::table::{Candidates, Column};
use crate::calibration::Calibrator;

/// Makes the final score.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FinalScorer {
    /// p alone.
    P,
    /// p·q.
    Product,
    /// The paper's tree over p, q and f.
    Tree(Calibrator),
    /// Boosted trees over everything known.
    Boosted(BoostedTrees),
}

/// The kinds of final scores. Each reads the columns of its own sources and scorers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreKind {
    P,
    Product,
    Tree,
    Boosted,
}

impl FinalScorer {
    /// Its kind.
    pub(crate) fn kind(&self) -> ScoreKind {
        match self {
            FinalScorer::P => ScoreKind::P,
            FinalScorer::Product => ScoreKind::Product,
            FinalScorer::Tree(_) => ScoreKind::Tree,
            FinalScorer::Boosted(_) => ScoreKind::Boosted,
        }
    }

    /// Upper bound of the score.
    pub(crate) fn highest_score(&self) -> f32 {
        match self {
            FinalScorer::Tree(calibrator) => {
                calibrator.mixing().tree_weight + calibrator.mixing().product_weight
            }
            FinalScorer::P | FinalScorer::Product | FinalScorer::Boosted(_) => 1.0,
        }
    }

    /// Fills the final score.
    pub(super) fn score(&self, candidates: &mut Candidates, scratch: &mut BoostingScratch) {
        let column = [Column::FinalScore];
        match self {
            FinalScorer::P => candidates.fill(column, |all, row| [all.column(Column::P)[row]]),
            FinalScorer::Product => candidates.fill(column, |all, row| {
                [all.column(Column::P)[row] * all.column(Column::RankerScore)[row]]
            }),
            FinalScorer::Tree(calibrator) => {
                candidates.fill(column, |all, row| [calibrator.score(all.scores(row))])
            }
            FinalScorer::Boosted(trees) => trees.score_candidates(candidates, scratch),
        }
    }
}
