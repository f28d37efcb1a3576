//! The labels that a query lists as allowed.

use crate::candidates::table::{Rows, check_finite};
use crate::candidates::{CandidateScratch, MemberPoint, Walk};
use crate::error::Result;
use crate::ids::{LabelId, Scored};
use crate::matrix::top_k;

/// Adds all listed labels; of a long list those with the best logits, if the other sources found few.
pub(super) fn add(
    walk: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let n_wanted = walk.search.n_candidates;
    let Some(allowed) = walk.allowed else {
        return Ok(());
    };
    // Others are known by their texts alone.
    let n_known = walk.knowledge.frequencies.len();
    let known = |label: &&LabelId| label.idx() < n_known;
    if let Some(listed) = allowed.all_scored(n_wanted) {
        rows.add(listed.iter().filter(known).copied());
    } else if let Some(listed) = allowed.listed()
        && rows.n_found(|label| allowed.contains(label)) < n_wanted
    {
        let model = point.member.network(walk.level).model;
        let logit = |&label| Scored {
            label,
            score: model.logit(label, point.encoded.embedding),
        };
        let mut best: Vec<Scored> = listed.iter().filter(known).map(logit).collect();
        check_finite(best.iter().map(|scored| scored.score))?;
        top_k(&mut best, n_wanted);
        rows.add(best.iter().map(|scored| scored.label));
    }
    Ok(())
}
