//! The test points with the most confident wrong answers, and the step at which each of their labels was lost.

use serde::{Deserialize, Serialize};

use super::trace::Trace;
use crate::candidates::{Knowledge, PointBuffers, Search};
use crate::error::Result;
use crate::features::PointSet;
use crate::ids::{LabelId, Scored};
use crate::matrix::CsrMatrix;
use crate::predict::Predictor;

/// A label counts as found if it is among this many answers.
const WITHIN: usize = 10;

/// A point whose labels were missed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HardPoint {
    /// The test point.
    pub point: usize,
    /// The best answers with their final scores.
    pub answers: Vec<(u32, f32)>,
    /// Its true labels.
    pub misses: Vec<Miss>,
}

/// A true label, and where it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Miss {
    /// The label.
    pub label: u32,
    /// Its training points.
    pub n_points: u32,
    /// Its place among the answers, from 1; `None` if it is not among them.
    pub place: Option<usize>,
    /// The step at which it was lost.
    pub reason: MissReason,
    /// ŷ; 0 if no path leads to it.
    pub shortlist_score: f32,
    /// σ(w·φ + b).
    pub relevance: f32,
}

/// The step at which a true label was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MissReason {
    /// It was not lost.
    Found,
    /// The label has no training points.
    Unseen,
    /// It is in none of the searched clusters.
    NoPath,
    /// Its best path is too weak for the shortlist.
    WeakPath,
    /// It is in the shortlist, but its relevance σ(w·φ) is low.
    LowRelevance,
    /// It is in the shortlist, but its path score ŷ is low.
    LowPath,
    /// The ranker or calibration demoted it.
    Ranker,
}

/// The `n` points with the most confident first answer among those with no true label in the first ten answers.
///
/// True labels are traced through the first member.
///
/// # Errors
/// [`Error::CannotPredict`](crate::Error::CannotPredict) if a weight that is not finite was met.
pub(crate) fn find_hardest(
    predictor: &Predictor,
    points: &PointSet,
    truth: &CsrMatrix,
    rankings: &[Vec<Scored>],
    n: usize,
) -> Result<Vec<HardPoint>> {
    let has = |point: usize, scored: &Scored| {
        let labels = truth.row(point).0;
        labels.binary_search(&scored.label.0).is_ok()
    };
    let mut missed: Vec<usize> = (0..rankings.len())
        .filter(|&point| !truth.row(point).0.is_empty())
        .filter(|&point| !rankings[point].iter().take(WITHIN).any(|s| has(point, s)))
        .collect();
    let confidence = |point: usize| rankings[point].first().map_or(0.0, |first| first.score);
    missed.sort_by(|&a, &b| confidence(b).total_cmp(&confidence(a)).then(a.cmp(&b)));
    missed.truncate(n);
    let n_candidates = Search::to_rerank(predictor.plan(), 0).n_candidates;
    let trace = |row: usize| {
        let (member, all) = (&predictor.members()[0], points.points());
        let mut buffers = PointBuffers::default();
        let point = Knowledge::default().point(all, row, &mut buffers);
        let trace = Trace::follow(predictor, member, all, row as u32, &point)?;
        let misses = truth.row(row).0.iter().map(|&label| {
            let place = rankings[row]
                .iter()
                .position(|scored| scored.label.0 == label);
            find_reason(predictor, &trace, LabelId(label), place, n_candidates)
        });
        Ok(HardPoint {
            point: row,
            answers: rankings[row]
                .iter()
                .take(5)
                .map(|scored| (scored.label.0, scored.score))
                .collect(),
            misses: misses.collect(),
        })
    };
    missed.into_iter().map(trace).collect()
}

fn find_reason(
    predictor: &Predictor,
    trace: &Trace<'_>,
    label: LabelId,
    place: Option<usize>,
    n_candidates: usize,
) -> Miss {
    let n_points = predictor
        .label_counts()
        .get(label.idx())
        .copied()
        .unwrap_or(0);
    let mut miss = Miss {
        label: label.0,
        n_points,
        place: place.map(|place| place + 1),
        reason: MissReason::Unseen,
        shortlist_score: 0.0,
        relevance: 0.0,
    };
    if label.idx() >= predictor.labels().len() || n_points == 0 {
        return miss;
    }
    let best = trace.paths_to(label).first().copied();
    miss.shortlist_score = best.map_or(0.0, |step| step.cluster_score * step.edge_score);
    miss.relevance = trace.relevance(label);
    let by_model = trace.place(label);
    miss.reason = match (place, best, by_model) {
        (Some(place), ..) if place < WITHIN => MissReason::Found,
        (_, None, _) => MissReason::NoPath,
        (_, Some(_), None) => MissReason::WeakPath,
        (_, Some(_), Some(at)) if at < WITHIN && at < n_candidates => MissReason::Ranker,
        _ if miss.relevance < miss.shortlist_score => MissReason::LowRelevance,
        _ => MissReason::LowPath,
    };
    miss
}
