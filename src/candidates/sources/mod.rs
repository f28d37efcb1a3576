//! Sources of candidates: each adds the labels that it would consider.

mod index;
mod listed;
mod names;
mod neighbours;

pub(crate) use index::Search;

use super::table::Rows;
use super::{CandidateScratch, MemberPoint, ScoreKind, Walk};
use crate::error::Result;

/// Adds labels to the candidates of a point.
type Source = fn(&Walk<'_>, &MemberPoint<'_>, &mut CandidateScratch, &mut Rows<'_>) -> Result<()>;

/// Upper bound of the candidates besides those of the index and those that a query lists.
pub(crate) const MAX_ADDED: usize = neighbours::MAX_ADDED + names::MAX_ADDED;

/// The sources of a final score.
pub(super) fn of(kind: ScoreKind) -> &'static [Source] {
    match kind {
        ScoreKind::P | ScoreKind::Product | ScoreKind::Tree => &[index::add, listed::add],
        ScoreKind::Boosted => &[index::add, neighbours::add, names::add, listed::add],
    }
}
