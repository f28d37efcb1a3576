//! The labels that the index finds, the best by p = σ(w·φ + b)·ŷ.

use crate::candidates::table::{Rows, check_finite};
use crate::candidates::{CandidateScratch, MemberPoint, Walk};
use crate::config::Plan;
use crate::error::Result;
use crate::index::ShortlistOptions;

/// How the index is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) options: ShortlistOptions,
    /// Labels that become candidates.
    pub(crate) n_candidates: usize,
}

impl Search {
    /// The search for the `k` best labels by p.
    pub(crate) fn of_best(plan: &Plan, k: usize) -> Self {
        Search {
            options: ShortlistOptions {
                beam_size: plan.beam_size(),
                shortlist_size: plan.shortlist_size(),
                score_floor: 0.0,
                keeps_positives: false,
            },
            n_candidates: k.min(plan.counts().n_labels),
        }
    }

    /// The search for candidates of which the `k` best by another score are wanted.
    pub(crate) fn to_rerank(plan: &Plan, k: usize) -> Self {
        Search::of_best(plan, plan.config().ranker.n_candidates.max(k))
    }

    /// The search for every label of the shortlist.
    pub(crate) fn of_all(plan: &Plan) -> Self {
        Search::of_best(plan, plan.counts().n_labels)
    }
}

/// Adds the best labels of the index, and the best of those that are allowed.
pub(super) fn add(
    walk: &Walk<'_>,
    point: &MemberPoint<'_>,
    scratch: &mut CandidateScratch,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let model = point.member.network(walk.level).model;
    let Search {
        options,
        n_candidates,
    } = &walk.search;
    let (embedding, probabilities) = (point.encoded.embedding, point.encoded.clusters);
    let rank = &mut scratch.rank;
    model.search(probabilities, options, rank);
    let ranked = model.rank(embedding, *n_candidates, |_| true, rank);
    check_finite(ranked.iter().map(|scored| scored.score))?;
    rows.add_ranked(ranked.iter().copied());
    let mut n_scored = rank.n_rows_scored;
    let n_shortlisted = rank.n_shortlisted();
    if let Some(allowed) = walk.allowed {
        let mut known = rows.labels().to_vec();
        known.sort_unstable();
        let is_allowed = |label| allowed.contains(label);
        let listed = allowed.all_scored(*n_candidates).unwrap_or_default();
        let n_allowed = listed.len().max(*n_candidates);
        let ranked = model.rank(embedding, n_allowed, is_allowed, rank);
        check_finite(ranked.iter().map(|scored| scored.score))?;
        let ranked = ranked.iter().copied();
        rows.add_ranked(ranked.filter(|scored| known.binary_search(&scored.label).is_err()));
        n_scored += rank.n_rows_scored;
    }
    let searched = rows.searched();
    searched.clusters.extend_from_slice(rank.searched());
    searched.n_shortlisted = n_shortlisted;
    searched.n_scored = n_scored;
    Ok(())
}
