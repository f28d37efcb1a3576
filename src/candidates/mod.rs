//! Candidates: the labels under consideration for one point in one member, and what is known of each.
//!
//! A prediction is a walk in which [`Candidates`] is the data. *Sources* add rows, *scorers* add columns, and the
//! *final scorer* adds the last column from those it reads; [`Level`] says how far the walk goes. Prediction, the fit
//! of final scorers and explanations take the same walk and read columns; what comes after it (merging the members,
//! probabilities, the best `k`) sees final scores alone.
//!
//! A new source or scorer is one file, and one line in a list of [`sources`] or [`scorers`].

mod allowed;
mod boosting;
mod by_text;
mod final_score;
mod level;
mod member;
mod merge;
mod point;
mod scorers;
mod sources;
mod table;

pub use level::Level;

pub(crate) use allowed::AllowedLabels;
pub(crate) use boosting::{BoostedTrees, BoostingScratch, DEPTH, Examples, Features, Tree};
pub(crate) use by_text::{
    ByText, Evidence, LabelsByText, N_KIN, N_NEAREST_FORMS, RankedPoint, TextCandidates,
    TextColumns, TextScratch, Unused,
};
pub(crate) use final_score::{FinalScorer, ScoreKind};
pub(crate) use member::{Encoded, EncodedPoints, Member};
pub(crate) use merge::Merger;
pub(crate) use point::{Knowledge, MemberPoint, Point, PointBuffers};
pub(crate) use sources::{MAX_ADDED, Search};
pub(crate) use table::{Candidates, Column};

use crate::config::Plan;
use crate::error::Result;
use crate::features::Points;
use crate::ids::{LabelId, Scored};
use crate::model::{Model, RankScratch};
use crate::ranker::RankerScratch;

/// The way from points to candidates with final scores: through which members, how far, and with what all of them know.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub(crate) members: &'a [Member],
    pub(crate) level: Level,
    pub(crate) search: Search,
    pub(crate) knowledge: Knowledge<'a>,
    /// The labels that may be answers; all of them without it.
    pub(crate) allowed: Option<&'a AllowedLabels>,
}

/// Buffers of a walk; one per thread, for any member of the same predictor.
pub(crate) struct WalkScratch {
    /// By member.
    pub(crate) encoded: Vec<EncodedPoints>,
    pub(crate) point: PointBuffers,
    pub(crate) columns: CandidateScratch,
    pub(crate) candidates: Candidates,
}

/// Buffers of sources and scorers.
pub(crate) struct CandidateScratch {
    rank: RankScratch,
    ranker: RankerScratch,
    cluster_margins: Vec<f32>,
    boosting: BoostingScratch,
}

impl CandidateScratch {
    pub(crate) fn new(model: &Model) -> Self {
        CandidateScratch {
            rank: RankScratch::new(model),
            ranker: RankerScratch::default(),
            cluster_margins: Vec::new(),
            boosting: BoostingScratch::default(),
        }
    }
}

impl WalkScratch {
    pub(crate) fn new(model: &Model) -> Self {
        WalkScratch {
            encoded: Vec::new(),
            point: PointBuffers::default(),
            columns: CandidateScratch::new(model),
            candidates: Candidates::default(),
        }
    }
}

impl<'a> Walk<'a> {
    /// The walk to the `k` best labels at a level, of the first member alone where the level is one member's; more than
    /// `k` candidates are listed where their order may still change.
    pub(crate) fn new(
        members: &'a [Member],
        knowledge: Knowledge<'a>,
        plan: &Plan,
        level: Level,
        k: usize,
    ) -> Self {
        let n_members = if level.has_all_members() {
            members.len()
        } else {
            1
        };
        let members = &members[..n_members];
        let is_any = |kind| {
            let mut scorers = members.iter().map(|member| member.scorer_at(level));
            scorers.any(|scorer| scorer.kind() == kind)
        };
        Walk {
            members,
            level,
            search: if members.len() == 1 && is_any(ScoreKind::P) {
                Search::of_best(plan, k)
            } else {
                Search::to_rerank(plan, k)
            },
            knowledge: if is_any(ScoreKind::Boosted) {
                knowledge
            } else {
                knowledge.without_texts()
            },
            allowed: None,
        }
    }

    /// The same walk among the allowed labels.
    pub(crate) fn among(self, allowed: Option<&'a AllowedLabels>) -> Self {
        Walk { allowed, ..self }
    }

    /// The first `n` of these labels, and the first `n` that are allowed; some of them twice.
    fn best_of(
        &self,
        labels: impl Iterator<Item = LabelId> + Clone,
        n: usize,
    ) -> impl Iterator<Item = LabelId> {
        let first = labels.clone().take(n);
        let allowed = self.allowed.into_iter();
        first.chain(allowed.flat_map(move |allowed| {
            let labels = labels.clone();
            labels.filter(|&label| allowed.contains(label)).take(n)
        }))
    }

    /// Drops labels that may not be answers.
    pub(crate) fn keep_allowed(&self, scored: &mut Vec<Scored>) {
        if let Some(allowed) = self.allowed {
            scored.retain(|scored| allowed.contains(scored.label));
        }
    }

    /// The labels that a query lists, if they are so few that all are scored.
    pub(crate) fn listed(&self) -> &'a [LabelId] {
        let allowed = self.allowed;
        let listed = allowed.and_then(|allowed| allowed.all_scored(self.search.n_candidates));
        listed.unwrap_or_default()
    }

    /// The walk to the columns of a member that has no final scorer yet.
    pub(crate) fn to_columns(
        member: &'a Member,
        kind: ScoreKind,
        knowledge: Knowledge<'a>,
        plan: &Plan,
    ) -> Self {
        Walk {
            members: std::slice::from_ref(member),
            level: Level::Calibrated,
            search: Search::to_rerank(plan, 0),
            knowledge: match kind {
                ScoreKind::Boosted => knowledge,
                ScoreKind::P | ScoreKind::Product | ScoreKind::Tree => knowledge.without_texts(),
            },
            allowed: None,
        }
    }

    /// Encodes points, once per member.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if an embedding is not finite.
    pub(crate) fn encode(
        &self,
        points: Points<'_>,
        rows: &[u32],
        encoded: &mut Vec<EncodedPoints>,
    ) -> Result<()> {
        encoded.resize_with(self.members.len().max(encoded.len()), Default::default);
        let mut members = self.members.iter().zip(encoded);
        members.try_for_each(|(member, encoded)| {
            member.network(self.level).encode(points, rows, encoded)
        })
    }

    /// The candidates of a point in a member, with their final scores.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if a score is not finite.
    pub(crate) fn candidates(
        &self,
        point: &MemberPoint<'_>,
        scratch: &mut CandidateScratch,
        candidates: &mut Candidates,
    ) -> Result<()> {
        let scorer = point.member.scorer_at(self.level);
        self.columns(scorer.kind(), point, scratch, candidates)?;
        scorer.score(candidates, &mut scratch.boosting);
        candidates.check_finite(Column::FinalScore)
    }

    /// Looks at the first member's candidates of each of some points, with the columns that final scores of a kind are
    /// made of.
    ///
    /// # Errors
    /// As [`Walk::candidates`].
    pub(crate) fn map_columns<T>(
        &self,
        kind: ScoreKind,
        (points, rows): (Points<'_>, &[u32]),
        scratch: &mut WalkScratch,
        mut look: impl FnMut(Encoded<'_>, &Candidates) -> T,
    ) -> Result<Vec<T>> {
        let WalkScratch {
            encoded,
            point: buffers,
            columns,
            candidates,
        } = scratch;
        self.encode(points, rows, encoded)?;
        let look = |(place, &row): (usize, &u32)| {
            let point = &self.knowledge.point(points, row as usize, buffers);
            let point = MemberPoint::new(&self.members[0], point, encoded[0].get(place));
            self.columns(kind, &point, columns, candidates)?;
            Ok(look(point.encoded, candidates))
        };
        rows.iter().enumerate().map(look).collect()
    }

    /// The candidates of a point in a member, with the columns that final scores of a kind are made of.
    ///
    /// # Errors
    /// As [`Walk::candidates`].
    pub(crate) fn columns(
        &self,
        kind: ScoreKind,
        point: &MemberPoint<'_>,
        scratch: &mut CandidateScratch,
        candidates: &mut Candidates,
    ) -> Result<()> {
        let mut rows = candidates.start(point.point);
        for source in sources::of(kind) {
            source(self, point, scratch, &mut rows)?;
        }
        rows.settle();
        for scorer in scorers::of(kind) {
            scorer(self, point, scratch, candidates);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
