//! w·φ + b of the labels' classifiers, also of labels that the index did not find.

use crate::candidates::{CandidateScratch, Candidates, Column, MemberPoint, Walk};

/// Fills the logits.
pub(super) fn score(
    walk: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let model = point.member.network(walk.level).model;
    candidates.fill([Column::Logit], |candidates, row| {
        [model.logit(candidates.labels()[row], point.encoded.embedding)]
    });
}
