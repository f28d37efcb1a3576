//! The votes of the nearest training points for each label.

use crate::candidates::{CandidateScratch, Candidates, Column, MemberPoint, Walk};

/// Fills the votes and the cosine of the nearest point; 0 where none of them has the label.
pub(super) fn score(
    _: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let votes = point.point.votes.iter();
    let values = votes.map(|vote| (vote.label, [vote.score, vote.nearest]));
    candidates.fill_listed([Column::Votes, Column::Nearest], values);
}
