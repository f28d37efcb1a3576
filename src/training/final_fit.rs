//! Final scorers and probabilities, fitted on the candidates of held-out points (paper, Section 3.5).
//!
//! [`HeldOutAnswers`] collects the candidates fold by fold, each from members that were not trained on the fold; the fit
//! sees all of them together.

use rayon::prelude::*;

use super::split::HeldOut;
use crate::calibration::{Calibrator, CandidateScores, Isotonic, Mixing, TREE_LIMITS};
use crate::candidates::{
    Candidates, Encoded, Examples, Features, FinalScorer, Knowledge, Member, Merger, N_KIN,
    ScoreKind, Walk, WalkScratch,
};
use crate::config::{FinalScoreKind, Plan};
use crate::error::Result;
use crate::events::{Event, Observer, POINTS_PER_EVENT, Phase, Steps};
use crate::ids::{LabelId, Scored};
use crate::matrix::top_k;
use crate::predict::CHUNK;

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

/// The answers of members to points that they were not trained on.
#[derive(Default)]
pub(super) struct HeldOutAnswers {
    of_members: Vec<MemberAnswers>,
    /// Labels of every point, ascending.
    relevant: Vec<Vec<LabelId>>,
    /// Points of which a member has found a label.
    n_found: usize,
}

/// The candidates of one member.
#[derive(Default)]
struct MemberAnswers {
    /// Candidates of every point.
    labels: Vec<Vec<LabelId>>,
    examples: Examples,
    /// Scores of all candidates, for the paper's tree.
    scores: Vec<CandidateScores>,
}

impl HeldOutAnswers {
    /// Adds what members know of the candidates of points that are held out of their training.
    pub(super) fn add(
        &mut self,
        members: &[Member],
        held_out: &HeldOut<'_>,
        knowledge: Knowledge<'_>,
        plan: &Plan,
        observer: &dyn Observer,
    ) -> Result<()> {
        let n_points = held_out.points().len();
        let mut progress = Steps::start(Phase::Calibration, n_points * members.len(), observer)?;
        self.of_members.resize_with(members.len(), Default::default);
        for (member, answers) in members.iter().zip(&mut self.of_members) {
            let walk = FoldWalk {
                member,
                held_out,
                knowledge,
                plan,
            };
            match plan.recipe().final_score {
                FinalScoreKind::Boosted => walk.describe(answers)?,
                FinalScoreKind::Product => unreachable!("no point is held out for it"),
                FinalScoreKind::Tree | FinalScoreKind::Mixture => walk.score(answers)?,
            }
            progress.advance(n_points)?;
        }
        let n_before = self.relevant.len();
        self.relevant
            .extend((0..n_points).map(|point| held_out.labels(point)));
        let is_found = |&point: &usize| {
            let is_relevant = |label| self.relevant[point].binary_search(label).is_ok();
            let of_members = self.of_members.iter();
            of_members.flat_map(|of| &of.labels[point]).any(is_relevant)
        };
        self.n_found += (n_before..self.relevant.len()).filter(is_found).count();
        Ok(())
    }

    /// Points of which a member has found a label: without any there is nothing to learn from.
    pub(super) fn n_found(&self) -> usize {
        self.n_found
    }

    /// Fits the members' final scorers, and the probabilities of their merged scores.
    pub(super) fn fit(self, kind: FinalScoreKind) -> Result<FittedCalibration> {
        let relevant = &self.relevant;
        let of_members = self.of_members.into_iter();
        let fitted: Vec<FittedScorer> = of_members
            .map(|answers| match kind {
                FinalScoreKind::Tree => answers.fit_tree(relevant, Mixing::PAPER),
                FinalScoreKind::Mixture => answers.fit_tree(relevant, Mixing::RELEASED),
                FinalScoreKind::Boosted | FinalScoreKind::Product => answers.fit_boosted(),
            })
            .collect::<Result<_>>()?;

        let (mut seen, mut best) = (SeenAnswers::default(), Vec::new());
        let mut merger = Merger::default();
        for (point, labels) in relevant.iter().enumerate() {
            let mut merging = merger.start();
            for member in &fitted {
                merging.add(member.lists[point].iter().copied());
            }
            let merged = merging.finish();
            top_k(merged, N_KIN);
            best.push(merged.clone());
            merged.truncate(N_SEEN);
            seen.push(merged, |label| labels.binary_search(&label).is_ok());
        }
        let final_scorers: Vec<FinalScorer> = fitted.into_iter().map(|of| of.scorer).collect();
        Ok(FittedCalibration {
            probabilities: seen.fit(&final_scorers)?,
            event: seen.event(),
            final_scorers,
            best,
        })
    }
}

/// A member's final scorer, and its scores of held-out points.
struct FittedScorer {
    scorer: FinalScorer,
    /// The candidates of every point with their final scores.
    lists: Vec<Vec<Scored>>,
}

impl MemberAnswers {
    /// Fits boosted trees; the scores of each point are those of trees that have not seen it.
    fn fit_boosted(self) -> Result<FittedScorer> {
        let (trees, scores) = self.examples.fit()?;
        Ok(FittedScorer {
            scorer: FinalScorer::Boosted(trees),
            lists: scored_lists(self.labels, scores),
        })
    }

    /// Fits the paper's tree.
    fn fit_tree(self, relevant: &[Vec<LabelId>], mixing: Mixing) -> Result<FittedScorer> {
        let of_points = self.labels.iter().zip(relevant);
        let is_relevant: Vec<bool> = of_points
            .flat_map(|(labels, relevant)| {
                labels
                    .iter()
                    .map(|label| relevant.binary_search(label).is_ok())
            })
            .collect();
        let calibrator = Calibrator::fit(&self.scores, &is_relevant, TREE_LIMITS, mixing)?;
        let scores = self.scores.iter().map(|&scores| calibrator.score(scores));
        let lists = scored_lists(self.labels, scores.collect());
        Ok(FittedScorer {
            scorer: FinalScorer::Tree(calibrator),
            lists,
        })
    }
}

/// The candidates of every point with their scores, which come point after point.
fn scored_lists(labels: Vec<Vec<LabelId>>, scores: Vec<f32>) -> Vec<Vec<Scored>> {
    let mut scores = scores.into_iter();
    let mut scored = |label| Scored {
        label,
        score: scores.next().expect("a score per candidate"),
    };
    labels
        .into_iter()
        .map(|of_point| of_point.into_iter().map(&mut scored).collect())
        .collect()
}

/// Best answers per point on which probabilities are fitted: those that people look at. Of two answers with the same
/// score, one among a point's best is right more often than one far behind better ones.
pub(super) const N_SEEN: usize = 5;

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

/// The walk of one member over points that are held out of its training.
struct FoldWalk<'a> {
    member: &'a Member,
    held_out: &'a HeldOut<'a>,
    knowledge: Knowledge<'a>,
    plan: &'a Plan,
}

impl FoldWalk<'_> {
    /// Adds everything that boosted trees read.
    fn describe(&self, answers: &mut MemberAnswers) -> Result<()> {
        let n_points = self.held_out.points().len();
        for first in (0..n_points).step_by(POINTS_PER_EVENT) {
            let rows = first..n_points.min(first + POINTS_PER_EVENT);
            let described = self.map(ScoreKind::Boosted, rows.clone(), |candidates| {
                let mut features = Features::default();
                features.fill(candidates);
                (candidates.labels().to_vec(), features)
            })?;
            for (point, (labels, features)) in rows.zip(described) {
                let relevant = labels.iter().map(|&label| self.held_out.has(point, label));
                let weight = self.held_out.weight(point);
                answers.examples.push(&features, relevant, weight);
                answers.labels.push(labels);
            }
        }
        Ok(())
    }

    /// Adds the scores that the paper's tree reads.
    fn score(&self, answers: &mut MemberAnswers) -> Result<()> {
        let rows = 0..self.held_out.points().len();
        let scored = self.map(ScoreKind::Tree, rows, |candidates| {
            let labels = candidates.labels().to_vec();
            let scores = (0..labels.len()).map(|row| candidates.scores(row));
            let scores: Vec<CandidateScores> = scores.collect();
            (labels, scores)
        })?;
        for (labels, scores) in scored {
            answers.labels.push(labels);
            answers.scores.extend(scores);
        }
        Ok(())
    }

    /// Looks at the candidates of points with the columns of a kind. Labels that lost their last point are none: the
    /// finished model has no such candidates.
    fn map<T: Send>(
        &self,
        kind: ScoreKind,
        rows: std::ops::Range<usize>,
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
                    let frequencies = self.knowledge.frequencies;
                    let look = |_: Encoded<'_>, candidates: &Candidates| {
                        look(&candidates.of_labels(|label| 0 < frequencies[label.idx()]))
                    };
                    walk.map_columns(kind, (points, rows), scratch, look)
                },
            )
            .collect::<Result<_>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }
}
