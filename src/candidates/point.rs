//! One point, as all members see it and as one member sees it, and what all members know of the labels.

use super::member::{Encoded, Member};
use crate::features::{Points, TermRow};
use crate::ids::LabelId;
use crate::neighbours::{NameMatch, Names, NeighbourScratch, Neighbours, Vote};

/// Knowledge of labels that all members share.
#[derive(Clone, Copy, Default)]
pub(crate) struct Knowledge<'a> {
    /// The training points by their words.
    pub(crate) neighbours: Option<&'a Neighbours>,
    /// The labels by their names.
    pub(crate) names: Option<&'a Names>,
    /// f of each label.
    pub(crate) frequencies: &'a [u32],
}

/// One point, whichever member answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<'a> {
    /// Columns and values of its features.
    pub(crate) words: (&'a [u32], &'a [f32]),
    /// The same, and pairs of words if the ranker reads them.
    pub(crate) terms: (&'a [u32], &'a [f32]),
    /// Labels of the nearest training points, best first.
    pub(crate) votes: &'a [Vote],
    /// Labels with similar names, best first.
    pub(crate) names: &'a [NameMatch],
}

/// One point in one member.
#[derive(Clone, Copy)]
pub(crate) struct MemberPoint<'a> {
    pub(crate) member: &'a Member,
    pub(crate) point: &'a Point<'a>,
    pub(crate) encoded: Encoded<'a>,
}

/// Buffers behind a [`Point`].
#[derive(Clone, Debug, Default)]
pub(crate) struct PointBuffers {
    terms: TermRow,
    votes: Vec<Vote>,
    names: Vec<NameMatch>,
    neighbours: NeighbourScratch,
}

impl<'a> Knowledge<'a> {
    /// The same without anything that is looked up by the words of a point.
    pub(super) fn without_texts(self) -> Self {
        Knowledge {
            neighbours: None,
            names: None,
            ..self
        }
    }

    /// One of the points, with the training points and the names that share its words.
    pub(crate) fn point<'b>(
        &self,
        points: Points<'b>,
        row: usize,
        buffers: &'b mut PointBuffers,
    ) -> Point<'b> {
        let PointBuffers {
            terms,
            votes,
            names,
            neighbours: scratch,
        } = buffers;
        let words = points.features.row(row);
        votes.clear();
        names.clear();
        if let Some(neighbours) = self.neighbours {
            neighbours.votes(words, scratch, votes);
        }
        if let Some(known) = self.names {
            known.matches(words, scratch, names);
        }
        Point {
            words,
            terms: points.terms(row, terms),
            votes,
            names,
        }
    }
}

impl<'a> MemberPoint<'a> {
    /// A point that the member's network has encoded.
    pub(crate) fn new(member: &'a Member, point: &'a Point<'a>, encoded: Encoded<'a>) -> Self {
        MemberPoint {
            member,
            point,
            encoded,
        }
    }
}

impl Point<'_> {
    /// The votes for a label.
    pub(crate) fn vote(&self, label: LabelId) -> Option<Vote> {
        self.votes.iter().find(|vote| vote.label == label).copied()
    }

    /// The match of a label's name.
    pub(crate) fn name(&self, label: LabelId) -> Option<NameMatch> {
        self.names.iter().find(|name| name.label == label).copied()
    }

    /// Cosine of the nearest training point with a label; 0 without one.
    pub(super) fn nearest(&self) -> f32 {
        let votes = self.votes.iter();
        votes.map(|vote| vote.nearest).fold(0.0, f32::max)
    }
}
