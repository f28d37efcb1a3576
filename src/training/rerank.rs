//! What ELIAS++ adds to a trained member: its ranker, and calibration on held-out points (paper, Section 3.5).

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use super::split::{HeldOut, LabelledPoints};
use crate::calibration::{Calibrator, CandidateScores, Isotonic, Mixing, TREE_LIMITS};
use crate::communicator::{Communicator, gather_all, own_blocks, share};
use crate::config::{FinalScoreKind, Plan, RankerNegatives, Recipe, paper_n_clusters};
use crate::ensemble::Merger;
use crate::error::Result;
use crate::events::{Event, Observer, POINTS_PER_EVENT, Phase, Steps};
use crate::features::TermRow;
use crate::ids::{ClusterId, Scored};
use crate::judge::Examples;
use crate::matrix::Matrix;
use crate::neighbours::Neighbours;
use crate::predict::{CHUNK, Level, Member, MemberScratch, Position, Search, Verdict, Witnesses};
use crate::ranker::{CandidateLists, ClusterTree, Negatives, Ranker, RankerOptions, RankerProblem};
use crate::train::{agree, start_together};

/// Whether the ranker of a member needs to know what its network makes of the training points.
pub(super) fn ranker_sees_points(member: &Member, recipe: &Recipe) -> bool {
    let has_clusters = member.stage1.edges.is_some();
    let needs_candidates = recipe.ranker_negatives == RankerNegatives::Candidates || !has_clusters;
    recipe.ranker_embedding || needs_candidates
}

/// Trains the ranker of a member, each process its part; process 0 gets it. Unless [`ranker_sees_points`], the network is not
/// used, and the member may have the process's own rows of W_L alone.
pub(super) fn train_ranker(
    member: &Member,
    train: &LabelledPoints<'_>,
    plan: &Plan,
    observer: &dyn Observer,
    communicator: &dyn Communicator,
) -> Result<Option<Ranker>> {
    let recipe = plan.recipe();
    let cluster_of = match recipe.ranker_negatives {
        RankerNegatives::Clusters => member.cluster_of().map(joined),
        RankerNegatives::Candidates => None,
    };
    let look = if ranker_sees_points(member, recipe) {
        see_points(member, train, plan, observer, communicator)?
    } else {
        PointsSeen::default()
    };
    let problem = RankerProblem {
        bow: &train.points.terms(),
        dense: recipe.ranker_embedding.then_some(&look.embeddings),
        labels: &train.labels,
        negatives: match &cluster_of {
            Some(cluster_of) => Negatives::Clusters(cluster_of),
            None => Negatives::Candidates(&look.candidates),
        },
        communicator,
    };
    let clusters = cluster_of.iter().flatten();
    let n_clusters = clusters.map(|cluster| cluster.idx() + 1).max();
    let above = n_clusters.into_iter().flat_map(ClusterTree::level_sizes);
    let levels = std::iter::once(train.labels.n_cols()).chain(above);
    let own = levels.map(|n| share(n, communicator.process(), communicator.n_processes()).len());
    let mut progress = start_together(Phase::Ranker, own.sum(), observer, communicator)?;
    let seed = plan.config().train.seed;
    let options = RankerOptions::new(plan.config(), recipe);
    Ranker::train(&problem, &options, seed, |n_trained| {
        match progress.advance(n_trained) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
}

/// Clusters of 50 to 100 labels, as linear trees have them: neighbours, which are siblings, are joined.
fn joined(mut cluster_of: Vec<ClusterId>) -> Vec<ClusterId> {
    let n_wanted = paper_n_clusters(cluster_of.len());
    let n_clusters = cluster_of.iter().map(|cluster| cluster.idx() + 1).max();
    let n_joined = n_clusters.unwrap_or(0).div_ceil(n_wanted) as u32;
    cluster_of
        .iter_mut()
        .for_each(|cluster| cluster.0 /= n_joined.max(1));
    cluster_of
}

/// What a network makes of points.
#[derive(Default)]
struct PointsSeen {
    candidates: CandidateLists,
    /// N×d, if the ranker reads embeddings.
    embeddings: Matrix,
}

/// Candidates and embeddings of the training points, of which each process sees a part.
fn see_points(
    member: &Member,
    train: &LabelledPoints<'_>,
    plan: &Plan,
    observer: &dyn Observer,
    communicator: &dyn Communicator,
) -> Result<PointsSeen> {
    let n_points = train.points.len();
    let search = Search::new(plan, 0, true);
    let network = member.network(Level::Stage2);
    let dim = if plan.recipe().ranker_embedding {
        member.encoder.dim()
    } else {
        0
    };
    let blocks = || own_blocks(n_points, CHUNK, communicator);
    let n_own = blocks().map(|block| block.len()).sum();
    let mut embeddings = vec![0.0; n_own * dim];
    let mut candidates = CandidateLists::with_capacity(n_own, search.n_candidates);
    let mut progress = start_together(Phase::Candidates, n_own, observer, communicator)?;
    let mut unseen = &mut embeddings[..];
    for block in blocks() {
        let rows: Vec<u32> = block.map(|row| row as u32).collect();
        let (seen, later) = unseen.split_at_mut(rows.len() * dim);
        unseen = later;
        let outs = chunks_of(seen, rows.len(), dim);
        let lists: Vec<Vec<Vec<Scored>>> = rows
            .par_chunks(CHUNK)
            .zip(outs.into_par_iter())
            .map_init(
                || MemberScratch::new(&member.model),
                |scratch, (rows, out)| {
                    let points = train.points.points();
                    let lists = network.candidates(points, rows, &search, scratch)?;
                    if dim > 0 {
                        out.copy_from_slice(scratch.embeddings.values());
                    }
                    Ok(lists)
                },
            )
            .collect::<Result<_>>()?;
        for (&row, list) in rows.iter().zip(lists.iter().flatten()) {
            // A point without labels is no evidence against any label.
            let is_labelled = !train.labels.row(row as usize).0.is_empty();
            let labels = list.iter().map(|scored| scored.label);
            candidates.push(labels.filter(|_| is_labelled));
        }
        agree(communicator, progress.advance(rows.len()))?;
    }
    Ok(PointsSeen {
        candidates: candidates.gather(communicator),
        embeddings: Matrix::from_vec(gather_all(communicator, embeddings), n_points, dim),
    })
}

/// The texts by their words, for the judge and for explanations.
pub(super) fn find_neighbours(points: &LabelledPoints<'_>, recipe: &Recipe) -> Option<Neighbours> {
    let (features, labels) = (&points.points.features, &points.labels);
    recipe
        .neighbours
        .then(|| Neighbours::new(features, labels, points.n_texts))
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

/// Best answers per point on which probabilities are fitted: those that people look at. Of two answers with the same
/// score, one among a point's best is right more often than one far behind better ones.
pub(super) const N_SEEN: usize = 5;

/// What calibration fits.
pub(super) struct FittedCalibration {
    /// One per member.
    pub(super) verdicts: Vec<Verdict>,
    /// From the members' mean score to a probability.
    pub(super) probabilities: Isotonic,
    pub(super) event: Event,
}

/// The candidates of every point, each with a score.
type Lists = Vec<Vec<Scored>>;

/// Fits the members' verdicts, and the probabilities of their merged scores, on held-out points.
pub(super) fn calibrate(
    members: &[Member],
    held_out: &HeldOut<'_>,
    witnesses: &Witnesses<'_>,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<FittedCalibration> {
    let n_points = held_out.points().len();
    let n_steps = n_points * members.len();
    let mut progress = Steps::start(Phase::Calibration, n_steps, observer)?;
    let (mut verdicts, mut of_members) = (Vec::new(), Vec::new());
    for member in members {
        let (verdict, lists) = match plan.recipe().final_score {
            FinalScoreKind::Boosted => fit_judge(member, held_out, witnesses, plan)?,
            FinalScoreKind::Tree => {
                fit_tree(member, held_out, witnesses.frequencies, plan, Mixing::PAPER)?
            }
            FinalScoreKind::Product => unreachable!("no point is held out for it"),
            FinalScoreKind::Mixture => {
                let mixing = Mixing::RELEASED;
                fit_tree(member, held_out, witnesses.frequencies, plan, mixing)?
            }
        };
        verdicts.push(verdict);
        of_members.push(lists);
        progress.advance(n_points)?;
    }

    let highest = verdicts
        .iter()
        .map(Verdict::highest_score)
        .fold(0.0, f32::max);
    let (mut scores, mut relevant) = (Vec::new(), Vec::new());
    let (mut merger, mut merged) = (Merger::default(), Vec::new());
    let mut n_right = 0;
    for point in 0..n_points {
        let lists: Vec<&[Scored]> = of_members
            .iter()
            .map(|lists: &Lists| &lists[point][..])
            .collect();
        merger.merge(&lists, N_SEEN, &mut merged);
        let is_relevant = |scored: &Scored| held_out.has(point, scored.label);
        n_right += usize::from(merged.first().is_some_and(is_relevant));
        scores.extend(merged.iter().map(|scored| scored.score));
        relevant.extend(merged.iter().map(is_relevant));
    }
    Ok(FittedCalibration {
        verdicts,
        probabilities: Isotonic::fit(&scores, &relevant, highest)?,
        event: Event::CalibrationReady {
            n_points,
            precision_at_1: 100.0 * n_right as f64 / n_points.max(1) as f64,
        },
    })
}

/// Fits a member's judge; the scores of each point are those of a judge that has not seen it.
fn fit_judge(
    member: &Member,
    held_out: &HeldOut<'_>,
    witnesses: &Witnesses<'_>,
    plan: &Plan,
) -> Result<(Verdict, Lists)> {
    let mut examples = Examples::default();
    let mut lists = Lists::new();
    let n_points = held_out.points().len();
    for first in (0..n_points).step_by(POINTS_PER_EVENT) {
        let rows = first..n_points.min(first + POINTS_PER_EVENT);
        let heard = list(member, held_out, rows, plan, |point, list, scratch| {
            let testimony = witnesses.testify(point.bow, scratch)?;
            member.hear(point, list, &testimony, witnesses.frequencies, scratch);
            Ok(scratch.evidence().clone())
        })?;
        for (list, evidence) in heard {
            let point = lists.len();
            let relevant = list.iter().map(|scored| held_out.has(point, scored.label));
            examples.push(&evidence, relevant);
            lists.push(list);
        }
    }
    let (judge, scores) = examples.fit()?;
    for (candidate, score) in lists.iter_mut().flatten().zip(scores) {
        candidate.score = score;
    }
    Ok((Verdict::Judge(judge), lists))
}

/// Fits a member's tree.
fn fit_tree(
    member: &Member,
    held_out: &HeldOut<'_>,
    frequencies: &[u32],
    plan: &Plan,
    mixing: Mixing,
) -> Result<(Verdict, Lists)> {
    let rows = 0..held_out.points().len();
    let mut lists = list(member, held_out, rows, plan, |point, list, scratch| {
        member.score_candidates(point, list, scratch);
        Ok(scratch.ranker_scores.clone())
    })?;
    let (mut candidates, mut relevant) = (Vec::new(), Vec::new());
    for (point, (list, ranker)) in lists.iter().enumerate() {
        for (scored, &ranker) in list.iter().zip(ranker) {
            candidates.push(CandidateScores {
                model: scored.score,
                ranker,
                frequency: frequencies[scored.label.idx()],
            });
            relevant.push(held_out.has(point, scored.label));
        }
    }
    let calibrator = Calibrator::fit(&candidates, &relevant, TREE_LIMITS, mixing)?;
    let scored = lists.iter_mut().flat_map(|(list, _)| list);
    for (scored, &candidate) in scored.zip(&candidates) {
        scored.score = calibrator.score(candidate);
    }
    let lists = lists.into_iter().map(|(list, _)| list).collect();
    Ok((Verdict::Tree(calibrator), lists))
}

/// The candidates of held-out points by p, and what else is wanted of them.
fn list<T: Send>(
    member: &Member,
    held_out: &HeldOut<'_>,
    rows: Range<usize>,
    plan: &Plan,
    look: impl Fn(Position<'_>, &mut Vec<Scored>, &mut MemberScratch) -> Result<T> + Sync,
) -> Result<Vec<(Vec<Scored>, T)>> {
    let search = Search::new(plan, 0, true);
    let network = member.network(Level::Stage2);
    let points = held_out.points().points();
    let rows: Vec<u32> = rows.map(|row| row as u32).collect();
    let chunks: Vec<Vec<_>> = rows
        .par_chunks(CHUNK)
        .map_init(
            || (MemberScratch::new(&member.model), TermRow::default()),
            |(scratch, terms), rows| {
                let lists = network.candidates(points, rows, &search, scratch)?;
                let look = |(slot, mut list): (usize, Vec<Scored>)| {
                    let row = rows[slot] as usize;
                    let point = Position {
                        bow: points.features.row(row),
                        terms: points.terms(row, terms),
                        slot,
                    };
                    let found = look(point, &mut list, scratch)?;
                    Ok((list, found))
                };
                lists.into_iter().enumerate().map(look).collect()
            },
        )
        .collect::<Result<_>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_joined_into_clusters_of_at_most_a_hundred_labels() {
        // 800 labels in 32 clusters of 25 become 8 of 100; the paper's 8 stay as they are.
        for (n_clusters, n_joined) in [(32, 4), (8, 1), (4, 1)] {
            let cluster_of: Vec<ClusterId> = (0..800)
                .map(|label| ClusterId(label % n_clusters))
                .collect();
            let expected: Vec<ClusterId> = (0..800)
                .map(|label| ClusterId(label % n_clusters / n_joined))
                .collect();
            assert_eq!(joined(cluster_of), expected);
        }
        assert_eq!(joined(Vec::new()), []);
    }
}
