//! One point in one member: its candidates, and the paths through clusters that led to them.

use crate::candidates::{
    CandidateScratch, Candidates, EncodedPoints, Level, Member, MemberPoint, Point, ScoreKind,
    Search, Walk,
};
use crate::error::Result;
use crate::features::Points;
use crate::ids::{ClusterId, LabelId};
use crate::predict::Predictor;

/// A path to a label through a searched cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathStep {
    pub(super) cluster: ClusterId,
    pub(super) cluster_score: f32,
    pub(super) edge_score: f32,
}

/// One point in one member. Label ids are those of the data set.
pub(super) struct Trace<'a> {
    pub(super) member: &'a Member,
    pub(super) encoded: EncodedPoints,
    /// Labels of the shortlist by p, best first.
    pub(super) shortlist: Candidates,
    /// The candidates with their final scores, where the walk goes on to these.
    pub(super) candidates: Candidates,
}

impl<'a> Trace<'a> {
    /// Follows one of the points into the shortlist of a member.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if a weight that is not finite was met.
    pub(super) fn follow(
        predictor: &'a Predictor,
        member: &'a Member,
        points: Points<'_>,
        row: u32,
        point: &Point<'_>,
    ) -> Result<Self> {
        let mut encoded = EncodedPoints::default();
        member
            .network(Level::Stage2)
            .encode(points, &[row], &mut encoded)?;
        let walk = Walk {
            members: std::slice::from_ref(member),
            level: Level::Stage2,
            search: Search::of_all(predictor.plan()),
            knowledge: predictor.knowledge(),
            allowed: None,
        };
        let mut shortlist = Candidates::default();
        walk.columns(
            ScoreKind::P,
            &MemberPoint::new(member, point, encoded.get(0)),
            &mut CandidateScratch::new(&member.model),
            &mut shortlist,
        )?;
        Ok(Trace {
            member,
            encoded,
            shortlist,
            candidates: Candidates::default(),
        })
    }

    /// Goes on to the final scores.
    ///
    /// # Errors
    /// As [`Trace::follow`].
    pub(super) fn score(mut self, walk: &Walk<'_>, point: &Point<'_>) -> Result<Self> {
        walk.candidates(
            &MemberPoint::new(self.member, point, self.encoded.get(0)),
            &mut CandidateScratch::new(&self.member.model),
            &mut self.candidates,
        )?;
        Ok(self)
    }

    /// φ.
    pub(super) fn embedding(&self) -> &[f32] {
        self.encoded.get(0).embedding
    }

    /// Every path to a label through the searched clusters, best first.
    pub(super) fn paths_to(&self, label: LabelId) -> Vec<PathStep> {
        let adjacency = &self.member.model.adjacency;
        let row = self.member.model.numbering.row(label);
        let mut steps = Vec::new();
        for selection in &self.shortlist.searched().clusters {
            let range = adjacency.edges().range(selection.cluster);
            let labels = &adjacency.edges().rows()[range.clone()];
            if let Ok(offset) = labels.binary_search(&row) {
                steps.push(PathStep {
                    cluster: selection.cluster,
                    cluster_score: selection.score,
                    edge_score: adjacency.scores()[range.start + offset],
                });
            }
        }
        let score = |step: &PathStep| step.cluster_score * step.edge_score;
        steps.sort_by(|a, b| score(b).total_cmp(&score(a)));
        steps
    }

    /// σ(w·φ + b) of a label.
    pub(super) fn relevance(&self, label: LabelId) -> f32 {
        let model = &self.member.model;
        let row = model.numbering.row(label);
        model.classifiers.score(row, self.embedding())
    }

    /// The place of a label by p, from 0; `None` if it is not in the shortlist.
    pub(super) fn place(&self, label: LabelId) -> Option<usize> {
        self.shortlist.row_of(label)
    }
}
