//! f: how many training points have each label.

use crate::candidates::{CandidateScratch, Candidates, Column, MemberPoint, Walk};

/// Fills the frequencies.
pub(super) fn score(
    walk: &Walk<'_>,
    _: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let frequencies = walk.knowledge.frequencies;
    candidates.fill([Column::Frequency], |candidates, row| {
        [frequencies[candidates.labels()[row].idx()] as f32]
    });
}
