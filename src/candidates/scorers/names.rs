//! How the name of each label matches the text.

use crate::candidates::{CandidateScratch, Candidates, Column, MemberPoint, Walk};

/// Fills the cosine of name and text, and the share of the name that the text contains; 0 where it does not match.
pub(super) fn score(
    _: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let names = point.point.names.iter();
    let values = names.map(|name| (name.label, [name.cosine, name.contained]));
    candidates.fill_listed([Column::NameMatch, Column::Contained], values);
}
