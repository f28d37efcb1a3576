//! The labels whose names are in the text.

use crate::candidates::table::Rows;
use crate::candidates::{CandidateScratch, MemberPoint, Walk};
use crate::error::Result;

/// Labels added at most.
pub(super) const MAX_ADDED: usize = 20;

/// Adds the labels with the names nearest to the text.
pub(super) fn add(
    _: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let best = point.point.names.iter().take(MAX_ADDED);
    rows.add(best.map(|name| name.label));
    Ok(())
}
