//! The ranker's margin z and score q of each label.

use crate::candidates::{CandidateScratch, Candidates, Column, MemberPoint, Walk};
use crate::ranker::PointView;

/// Fills the margins; 0 without a ranker.
pub(super) fn margins(
    _: &Walk<'_>,
    point: &MemberPoint<'_>,
    scratch: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let Some(ranker) = &point.member.ranker else {
        candidates.fill([Column::Margin], |_, _| [0.0]);
        return;
    };
    let (labels, margins) = candidates.labels_and(Column::Margin);
    let view = PointView {
        bow: point.point.terms,
        dense: match ranker.n_dense() {
            0 => &[],
            _ => point.encoded.embedding,
        },
    };
    ranker.score(view, labels, &mut scratch.ranker, margins);
}

/// Fills q from the margins; 1 without a ranker.
pub(super) fn scores(
    _: &Walk<'_>,
    point: &MemberPoint<'_>,
    _: &mut CandidateScratch,
    candidates: &mut Candidates,
) {
    let ranker = point.member.ranker.as_ref();
    candidates.fill([Column::RankerScore], |candidates, row| {
        let margin = candidates.column(Column::Margin)[row];
        [ranker.map_or(1.0, |ranker| ranker.probability(margin))]
    });
}
