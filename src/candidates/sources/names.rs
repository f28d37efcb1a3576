//! The labels whose names are in the text.

use crate::candidates::table::Rows;
use crate::candidates::{CandidateScratch, MemberPoint, Walk};
use crate::error::Result;

/// Labels added at most.
pub(super) const MAX_ADDED: usize = 20;

/// Adds the labels with the names nearest to the text.
pub(super) fn add(
    walk: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let labels = point.point.names.iter().map(|name| name.label);
    rows.add(walk.best_of(labels, MAX_ADDED));
    Ok(())
}
