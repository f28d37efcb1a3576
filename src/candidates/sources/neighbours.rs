//! The labels of the nearest training points.

use crate::candidates::table::Rows;
use crate::candidates::{CandidateScratch, MemberPoint, Walk};
use crate::error::Result;

/// Labels added at most.
pub(super) const MAX_ADDED: usize = 50;

/// Adds the labels with the most votes.
pub(super) fn add(
    walk: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    rows: &mut Rows<'_>,
) -> Result<()> {
    // Others are known by their texts alone.
    let n_known = walk.knowledge.frequencies.len();
    let labels = point.point.votes.iter().map(|vote| vote.label);
    let labels = labels.filter(|label| label.idx() < n_known);
    rows.add(walk.best_of(labels, MAX_ADDED));
    Ok(())
}
