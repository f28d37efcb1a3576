//! What ELIAS++ puts on top of a trained member: its ranker, and calibration on points held out (paper, Section 3.5).

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::split::Part;
use crate::calibration::{Calibrator, CandidateScores, Isotonic};
use crate::config::Plan;
use crate::ensemble::Merger;
use crate::error::Result;
use crate::events::{Event, Observer, POINTS_PER_EVENT, Phase, Steps};
use crate::ids::{LabelId, Scored};
use crate::matrix::Matrix;
use crate::predict::{CHUNK, Calibration, Member, MemberScratch, search};
use crate::ranker::{CandidateLists, Ranker, RankerProblem};

/// Trains the ranker of a member on its own candidates of the training points.
pub(super) fn train_ranker(
    member: &Member,
    train: &Part<'_>,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<Ranker> {
    let config = &plan.config().ranker;
    let n_points = train.points.len();
    let search = search(plan, 0, true);
    let dim = match config.use_embedding {
        true => member.encoder.dim(),
        false => 0,
    };
    // N×d
    let mut embeddings = Matrix::zeros(n_points, dim);
    let mut candidates = CandidateLists::with_capacity(n_points, search.n_candidates);
    let mut progress = Steps::start(Phase::Candidates, n_points, observer)?;
    let rows: Vec<u32> = (0..n_points as u32).collect();
    for (block, rows) in rows.chunks(POINTS_PER_EVENT).enumerate() {
        let first = block * POINTS_PER_EVENT * dim;
        let embeddings = &mut embeddings.values_mut()[first..][..rows.len() * dim];
        let outs = chunks_of(embeddings, rows.len(), dim);
        let lists: Vec<Vec<Vec<Scored>>> = rows
            .par_chunks(CHUNK)
            .zip(outs.into_par_iter())
            .map_init(
                || MemberScratch::new(&member.model),
                |scratch, (rows, out)| {
                    let lists = member.candidates(train.points.points(), rows, &search, scratch)?;
                    if 0 < dim {
                        out.copy_from_slice(scratch.embeddings.values());
                    }
                    Ok(lists)
                },
            )
            .collect::<Result<_>>()?;
        for (&row, list) in rows.iter().zip(lists.iter().flatten()) {
            // A point without a label says nothing of those it does not have.
            let is_labelled = !train.labels.row(row as usize).0.is_empty();
            let labels = list.iter().map(|scored| scored.label);
            candidates.push(labels.filter(|_| is_labelled));
        }
        progress.advance(rows.len())?;
    }
    let problem = RankerProblem {
        bow: &train.points.features,
        dense: (0 < dim).then_some(&embeddings),
        labels: &train.labels,
        candidates: &candidates,
    };
    let mut progress = Steps::start(Phase::Ranker, train.labels.n_cols(), observer)?;
    let seed = plan.config().train.seed;
    Ranker::train(&problem, config, seed, |n_done, _| {
        match progress.advance(n_done - progress.done) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
}

/// The embeddings of each chunk of points, to be written; empty ones if there is nothing to write.
fn chunks_of(embeddings: &mut [f32], n_points: usize, dim: usize) -> Vec<&mut [f32]> {
    let mut rest = embeddings;
    let mut chunks = Vec::new();
    for first in (0..n_points).step_by(CHUNK) {
        let n_values = CHUNK.min(n_points - first) * dim;
        let (chunk, later) = rest.split_at_mut(n_values);
        chunks.push(chunk);
        rest = later;
    }
    chunks
}

/// Answers a point on which probabilities are fitted: those that people look at. Of two answers with the same score
/// the one among a point's best is right more often than the one far behind better ones.
const SEEN: usize = 5;

/// Fits the members' trees and the probabilities of their merged scores.
pub(super) fn calibrate(
    members: &mut [Member],
    held_out: &Part<'_>,
    (frequencies, plan): (Vec<u32>, &Plan),
    observer: &dyn Observer,
) -> Result<(Calibration, Event)> {
    let n_points = held_out.points.len();
    let n_steps = n_points * members.len();
    let mut progress = Steps::start(Phase::Calibration, n_steps, observer)?;
    let mut of_members: Vec<Vec<Vec<Scored>>> = Vec::new();
    for member in &mut *members {
        let listed = score_all(member, held_out, plan)?;
        let (mut candidates, mut relevant) = (Vec::new(), Vec::new());
        for (point, list) in listed.iter().enumerate() {
            for &(scored, ranker) in list {
                candidates.push(CandidateScores {
                    model: scored.score,
                    ranker,
                    frequency: frequencies[scored.label.idx()],
                });
                relevant.push(held_out.has(point, scored.label));
            }
        }
        let calibrator = Calibrator::fit(&candidates, &relevant, &plan.config().calibration)?;
        let mut scores = candidates.iter().map(|&scores| calibrator.score(scores));
        let rescored = listed.iter().map(|list| {
            let labels = list.iter().map(|(scored, _)| scored.label);
            let rescored = labels.zip(&mut scores);
            rescored
                .map(|(label, score)| Scored { label, score })
                .collect()
        });
        of_members.push(rescored.collect());
        drop(scores);
        member.calibrator = Some(calibrator);
        progress.advance(n_points)?;
    }

    let n_answers = search(plan, 0, true).n_candidates;
    let (mut scores, mut relevant) = (Vec::new(), Vec::new());
    let (mut merger, mut merged) = (Merger::default(), Vec::new());
    let mut n_right = 0;
    for point in 0..n_points {
        let lists: Vec<&[Scored]> = of_members.iter().map(|lists| &lists[point][..]).collect();
        merger.merge(&lists, n_answers, &mut merged);
        let is_relevant = |scored: &Scored| held_out.has(point, scored.label);
        n_right += usize::from(merged.first().is_some_and(is_relevant));
        let seen = &merged[..merged.len().min(SEEN)];
        scores.extend(seen.iter().map(|scored| scored.score));
        relevant.extend(seen.iter().map(is_relevant));
    }
    let calibration = Calibration {
        frequencies,
        probabilities: Isotonic::fit(&scores, &relevant)?,
    };
    let ready = Event::CalibrationReady {
        n_points,
        precision_at_1: 100.0 * n_right as f64 / n_points.max(1) as f64,
    };
    Ok((calibration, ready))
}

/// The candidates of every point with p, and q beside it.
fn score_all(member: &Member, part: &Part<'_>, plan: &Plan) -> Result<Vec<Vec<(Scored, f32)>>> {
    let search = search(plan, 0, true);
    let rows: Vec<u32> = (0..part.points.len() as u32).collect();
    let chunks: Vec<Vec<_>> = rows
        .par_chunks(CHUNK)
        .map_init(
            || MemberScratch::new(&member.model),
            |scratch, rows| {
                let lists = member.candidates(part.points.points(), rows, &search, scratch)?;
                let with_ranker = |(position, list): (usize, Vec<Scored>)| {
                    let bow = part.points.features.row(rows[position] as usize);
                    member.score_candidates((bow, position), &list, scratch);
                    let scores = scratch.ranker_scores.iter().copied();
                    list.into_iter().zip(scores).collect()
                };
                Ok(lists.into_iter().enumerate().map(with_ranker).collect())
            },
        )
        .collect::<Result<_>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

impl Part<'_> {
    fn has(&self, point: usize, label: LabelId) -> bool {
        self.labels.row(point).0.binary_search(&label.0).is_ok()
    }
}
