//! The ranker's margin of each label's cluster, and its score of the path from the top to the label.

use crate::candidates::{CandidateScratch, Candidates, Column, MemberPoint, Walk};
use crate::ranker::Ranker;

/// Fills both; 0 without a ranker that knows clusters.
pub(super) fn score(
    _: &Walk<'_>,
    point: &MemberPoint<'_>,
    scratch: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let columns = [Column::ClusterMargin, Column::PathScore];
    let ranker = point.member.ranker.as_ref();
    let Some((ranker, clusters)) = ranker.and_then(|ranker| Some((ranker, ranker.clusters()?)))
    else {
        candidates.fill(columns, |_, _| [0.0, 0.0]);
        return;
    };
    let margins = &mut scratch.cluster_margins;
    clusters.score(point.point.terms, margins);
    let log_score = |margin| Ranker::log_probability(ranker, margin);
    candidates.fill(columns, |candidates, row| {
        let above = clusters.above(candidates.labels()[row]);
        let mut above = above.map(|cluster| margins[cluster.idx()]).peekable();
        let of_cluster = above.peek().copied().unwrap_or(0.0);
        let of_label = candidates.column(Column::Margin)[row];
        [
            of_cluster,
            above.map(log_score).sum::<f32>() + log_score(of_label),
        ]
    });
}
