//! The parts that ELIAS++ adds to a trained member: its ranker, and calibration on held-out points (paper, Section 3.5).

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use super::split::{HeldOut, LabelledPoints};
use crate::calibration::{Calibrator, Isotonic, Mixing, TREE_LIMITS};
use crate::candidates::{
    Candidates, Encoded, Examples, Features, FinalScorer, Knowledge, Member, Merger, N_KIN,
    ScoreKind, Walk, WalkScratch,
};
use crate::communicator::Communicator;
use crate::config::{FinalScoreKind, Plan, RankerNegatives, Recipe, paper_n_clusters};
use crate::error::Result;
use crate::events::{Event, Observer, POINTS_PER_EVENT, Phase, Steps};
use crate::ids::{ClusterId, LabelId, Scored};
use crate::matrix::{Matrix, top_k};
use crate::neighbours::Neighbours;
use crate::predict::CHUNK;
use crate::ranker::{CandidateLists, ClusterTree, Negatives, Ranker, RankerOptions, RankerProblem};

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
    let observer = &communicator.observer(observer);
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
    let own = levels.map(|n| communicator.own(n).len());
    let mut progress = Steps::start(Phase::Ranker, own.sum(), observer)?;
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

/// Points as a network sees them.
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
    let walk = Walk::to_columns(member, ScoreKind::P, Knowledge::default(), plan);
    let dim = if plan.recipe().ranker_embedding {
        member.encoder.dim()
    } else {
        0
    };
    let blocks = communicator.own_blocks(n_points, CHUNK);
    let n_own = blocks.clone().map(|block| block.len()).sum();
    let mut embeddings = vec![0.0; n_own * dim];
    let mut candidates = CandidateLists::with_capacity(n_own, walk.search.n_candidates);
    let mut progress = Steps::start(Phase::Candidates, n_own, observer)?;
    let mut unseen = &mut embeddings[..];
    for block in blocks {
        let rows: Vec<u32> = block.map(|row| row as u32).collect();
        let (seen, later) = unseen.split_at_mut(rows.len() * dim);
        unseen = later;
        let outs = chunks_of(seen, rows.len(), dim);
        let lists: Vec<Vec<Vec<LabelId>>> = rows
            .par_chunks(CHUNK)
            .zip(outs.into_par_iter())
            .map_init(
                || WalkScratch::new(&member.model),
                |scratch, (rows, out)| {
                    let points = (train.points.points(), rows);
                    let mut outs = out.chunks_mut(dim.max(1));
                    walk.map_columns(ScoreKind::P, points, scratch, |encoded, candidates| {
                        if let Some(out) = outs.next() {
                            out.copy_from_slice(encoded.embedding);
                        }
                        candidates.labels().to_vec()
                    })
                },
            )
            .collect::<Result<_>>()?;
        for (&row, list) in rows.iter().zip(lists.iter().flatten()) {
            // A point without labels does not count against any label.
            let is_labelled = !train.labels.row(row as usize).0.is_empty();
            candidates.push(list.iter().copied().filter(|_| is_labelled));
        }
        progress.advance(rows.len())?;
    }
    Ok(PointsSeen {
        candidates: candidates.gather(communicator),
        embeddings: Matrix::from_vec(communicator.gather_many(embeddings), n_points, dim),
    })
}

/// The texts by their words, for the final scorer and for explanations.
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

/// The result of a calibration.
pub(super) struct FittedCalibration {
    /// One per member.
    pub(super) final_scorers: Vec<FinalScorer>,
    /// From the members' mean score to a probability.
    pub(super) probabilities: Isotonic,
    pub(super) event: Event,
    /// The best labels of every held-out point, best first.
    pub(super) best: Vec<Vec<Scored>>,
}

/// A member's final scorer, and its scores of held-out points.
struct FittedScorer {
    scorer: FinalScorer,
    /// The candidates of every point with their final scores.
    lists: Vec<Vec<Scored>>,
}

/// Fits the members' final scorers, and the probabilities of their merged scores, on held-out points.
pub(super) fn calibrate(
    members: &[Member],
    held_out: &HeldOut<'_>,
    knowledge: Knowledge<'_>,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<FittedCalibration> {
    let n_points = held_out.points().len();
    let n_steps = n_points * members.len();
    let mut progress = Steps::start(Phase::Calibration, n_steps, observer)?;
    let mut fitted = Vec::new();
    for member in members {
        let columns = HeldOutColumns {
            member,
            held_out,
            knowledge,
            plan,
        };
        fitted.push(match plan.recipe().final_score {
            FinalScoreKind::Boosted => columns.fit_boosted()?,
            FinalScoreKind::Product => unreachable!("no point is held out for it"),
            FinalScoreKind::Tree => columns.fit_tree(Mixing::PAPER)?,
            FinalScoreKind::Mixture => columns.fit_tree(Mixing::RELEASED)?,
        });
        progress.advance(n_points)?;
    }

    let (mut seen, mut best) = (SeenAnswers::default(), Vec::new());
    let mut merger = Merger::default();
    for point in 0..n_points {
        let mut merging = merger.start();
        for member in &fitted {
            merging.add(member.lists[point].iter().copied());
        }
        let merged = merging.finish();
        top_k(merged, N_KIN);
        best.push(merged.clone());
        merged.truncate(N_SEEN);
        seen.push(merged, |label| held_out.has(point, label));
    }
    let final_scorers: Vec<FinalScorer> = fitted.into_iter().map(|of| of.scorer).collect();
    Ok(FittedCalibration {
        probabilities: seen.fit(&final_scorers)?,
        event: seen.event(),
        final_scorers,
        best,
    })
}

/// Answers that people look at, on which probabilities are fitted.
#[derive(Default)]
pub(super) struct SeenAnswers {
    scores: Vec<f32>,
    relevant: Vec<bool>,
    n_points: usize,
    /// Points whose first answer is right.
    n_right: usize,
}

impl SeenAnswers {
    /// Adds the best answers of a point.
    pub(super) fn push(&mut self, best: &[Scored], is_relevant: impl Fn(LabelId) -> bool) {
        let is_right = |scored: &Scored| is_relevant(scored.label);
        self.n_points += 1;
        self.n_right += usize::from(best.first().is_some_and(is_right));
        self.scores.extend(best.iter().map(|scored| scored.score));
        self.relevant.extend(best.iter().map(is_right));
    }

    /// Fits probabilities to the mean scores of these final scorers.
    ///
    /// # Errors
    /// As [`Isotonic::fit`].
    pub(super) fn fit<'s>(
        &self,
        scorers: impl IntoIterator<Item = &'s FinalScorer>,
    ) -> Result<Isotonic> {
        let scorers = scorers.into_iter();
        let highest = scorers.map(FinalScorer::highest_score).fold(0.0, f32::max);
        Isotonic::fit(&self.scores, &self.relevant, highest)
    }

    /// Reports how many of them are right.
    pub(super) fn event(&self) -> Event {
        Event::CalibrationReady {
            n_points: self.n_points,
            precision_at_1: 100.0 * self.n_right as f64 / self.n_points.max(1) as f64,
        }
    }
}

/// The columns of a member's candidates of held-out points.
struct HeldOutColumns<'a> {
    member: &'a Member,
    held_out: &'a HeldOut<'a>,
    knowledge: Knowledge<'a>,
    plan: &'a Plan,
}

impl HeldOutColumns<'_> {
    /// Fits boosted trees; the scores of each point are those of trees that have not seen it.
    fn fit_boosted(&self) -> Result<FittedScorer> {
        let mut examples = Examples::default();
        let mut labels: Vec<Vec<LabelId>> = Vec::new();
        let n_points = self.held_out.points().len();
        for first in (0..n_points).step_by(POINTS_PER_EVENT) {
            let rows = first..n_points.min(first + POINTS_PER_EVENT);
            let described = self.map(ScoreKind::Boosted, rows, |candidates| {
                let mut features = Features::default();
                features.fill(candidates);
                (candidates.labels().to_vec(), features)
            })?;
            for (of_point, features) in described {
                let point = labels.len();
                let relevant = of_point
                    .iter()
                    .map(|&label| self.held_out.has(point, label));
                examples.push(&features, relevant);
                labels.push(of_point);
            }
        }
        let (trees, scores) = examples.fit()?;
        let mut scores = scores.into_iter();
        let mut scored = |label| Scored {
            label,
            score: scores.next().expect("a score per candidate"),
        };
        Ok(FittedScorer {
            scorer: FinalScorer::Boosted(trees),
            lists: labels
                .into_iter()
                .map(|of_point| of_point.into_iter().map(&mut scored).collect())
                .collect(),
        })
    }

    /// Fits the paper's tree.
    fn fit_tree(&self, mixing: Mixing) -> Result<FittedScorer> {
        let rows = 0..self.held_out.points().len();
        let described = self.map(ScoreKind::Tree, rows, |candidates| {
            let labels = candidates.labels().iter().enumerate();
            labels
                .map(|(row, &label)| (label, candidates.scores(row)))
                .collect::<Vec<_>>()
        })?;
        let (mut candidates, mut relevant) = (Vec::new(), Vec::new());
        for (point, of_point) in described.iter().enumerate() {
            candidates.extend(of_point.iter().map(|candidate| candidate.1));
            let is_relevant = |&(label, _): &(LabelId, _)| self.held_out.has(point, label);
            relevant.extend(of_point.iter().map(is_relevant));
        }
        let calibrator = Calibrator::fit(&candidates, &relevant, TREE_LIMITS, mixing)?;
        let scored = |(label, candidate)| Scored {
            label,
            score: calibrator.score(candidate),
        };
        let lists = described
            .into_iter()
            .map(|of_point| of_point.into_iter().map(scored).collect())
            .collect();
        Ok(FittedScorer {
            scorer: FinalScorer::Tree(calibrator),
            lists,
        })
    }

    /// Looks at the candidates of points with the columns of a kind.
    fn map<T: Send>(
        &self,
        kind: ScoreKind,
        rows: Range<usize>,
        look: impl Fn(&Candidates) -> T + Sync,
    ) -> Result<Vec<T>> {
        let walk = Walk::to_columns(self.member, kind, self.knowledge, self.plan);
        let points = self.held_out.points().points();
        let rows: Vec<u32> = rows.map(|row| row as u32).collect();
        let chunks: Vec<Vec<T>> = rows
            .par_chunks(CHUNK)
            .map_init(
                || WalkScratch::new(&self.member.model),
                |scratch, rows| {
                    let look = |_: Encoded<'_>, candidates: &Candidates| look(candidates);
                    walk.map_columns(kind, (points, rows), scratch, look)
                },
            )
            .collect::<Result<_>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }
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
