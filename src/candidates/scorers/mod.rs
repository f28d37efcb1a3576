//! Scorers of candidates: each fills columns, for candidates of whichever source.

mod classifiers;
mod clusters;
mod frequency;
mod names;
mod ranker;
mod votes;

use super::{CandidateScratch, Candidates, MemberPoint, ScoreKind, Walk};

/// Fills columns of the candidates of a point.
type Scorer = fn(&Walk<'_>, &MemberPoint<'_>, &mut CandidateScratch, &mut Candidates);

/// The scorers of a final score; one may read the columns of those before it.
pub(super) fn of(kind: ScoreKind) -> &'static [Scorer] {
    match kind {
        ScoreKind::P => &[],
        ScoreKind::Product => &[ranker::margins, ranker::scores],
        ScoreKind::Tree => &[ranker::margins, ranker::scores, frequency::score],
        ScoreKind::Boosted => &[
            classifiers::score,
            ranker::margins,
            clusters::score,
            votes::score,
            names::score,
            frequency::score,
        ],
    }
}
