//! The evidence on a member's candidates, for its judge.
//!
//! Candidates are the best of the index and those the neighbours of the text vote for.

use super::member::{Member, MemberScratch, Position, check_finite};
use crate::error::Result;
use crate::ids::Scored;
use crate::judge::{Clues, Evidence, Judge, JudgeScratch, TextClues};
use crate::neighbours::{NeighbourScratch, Neighbours, Vote};

/// Labels that the neighbours bring at most.
const MAX_VOTES: usize = 50;

/// What the judges of all members hear besides the members.
#[derive(Clone, Copy)]
pub(crate) struct Witnesses<'a> {
    /// The training points by their words.
    pub(crate) neighbours: Option<&'a Neighbours>,
    /// f of each label.
    pub(crate) frequencies: &'a [u32],
}

/// What the witnesses say of one text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony {
    /// Labels of the nearest points, best first.
    votes: Vec<Vote>,
    n_words: usize,
}

/// Buffers of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct JudgingScratch {
    clues: Vec<Clues>,
    judge: JudgeScratch,
    scores: Vec<f32>,
    /// Labels the index has listed, with their places.
    places: Vec<(u32, u32)>,
    /// The evidence on the candidates that were heard last.
    pub(crate) evidence: Evidence,
}

impl Witnesses<'_> {
    /// What they say of a text with these words.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if the neighbours are damaged.
    pub(crate) fn testify(
        &self,
        bow: (&[u32], &[f32]),
        scratch: &mut NeighbourScratch,
    ) -> Result<Testimony> {
        let mut testimony = Testimony {
            votes: Vec::new(),
            n_words: bow.0.len(),
        };
        if let Some(neighbours) = self.neighbours {
            neighbours.votes(bow, scratch, &mut testimony.votes)?;
        }
        Ok(testimony)
    }
}

impl Member {
    /// Adds the candidates of the neighbours to those of the index, and puts the evidence on all of them into the
    /// scratch.
    pub(crate) fn hear(
        &self,
        point: Position<'_>,
        listed: &mut Vec<Scored>,
        testimony: &Testimony,
        frequencies: &[u32],
        scratch: &mut MemberScratch,
    ) {
        let judging = &mut scratch.judging;
        judging.places.clear();
        let places = listed.iter().zip(0..);
        judging
            .places
            .extend(places.map(|(scored, place)| (scored.label.0, place)));
        judging.places.sort_unstable();
        let place_of = |label: u32, places: &[(u32, u32)]| {
            let found = places.binary_search_by_key(&label, |&(label, _)| label);
            found.ok().map(|at| places[at].1 as usize)
        };
        let best = &testimony.votes[..testimony.votes.len().min(MAX_VOTES)];
        for vote in best {
            if place_of(vote.label.0, &judging.places).is_none() {
                listed.push(Scored {
                    label: vote.label,
                    score: 0.0,
                });
            }
        }
        self.margins(point, listed, scratch);
        let embedding = scratch.embeddings.row(point.slot);
        let judging = &mut scratch.judging;
        let classifiers = &self.model.classifiers;
        judging.clues.clear();
        for (scored, &margin) in listed.iter().zip(&scratch.ranker_scores) {
            let row = self.model.numbering.row(scored.label);
            judging.clues.push(Clues {
                p: scored.score,
                logit: classifiers.weights.dot(row.idx(), embedding) + classifiers.bias[row.idx()],
                margin,
                frequency: frequencies[scored.label.idx()] as f32,
                ..Clues::default()
            });
        }
        let mut added = judging.places.len()..;
        for (at, vote) in testimony.votes.iter().enumerate() {
            let place = place_of(vote.label.0, &judging.places);
            let place = match place {
                None if at < MAX_VOTES => added.next(),
                place => place,
            };
            if let Some(place) = place {
                judging.clues[place].vote = vote.score;
                judging.clues[place].nearest = vote.nearest;
            }
        }
        let text = TextClues {
            n_words: testimony.n_words,
            nearest: testimony
                .votes
                .iter()
                .map(|vote| vote.nearest)
                .fold(0.0, f32::max),
        };
        judging.evidence.fill(text, &judging.clues);
    }

    /// Replaces the scores of candidates by those of a judge, after [`Member::hear`]; the order is left as it was.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if a score is not finite.
    pub(crate) fn judge(
        &self,
        judge: &Judge,
        listed: &mut [Scored],
        scratch: &mut MemberScratch,
    ) -> Result<()> {
        let JudgingScratch {
            judge: buffers,
            scores,
            evidence,
            ..
        } = &mut scratch.judging;
        judge.score(evidence, buffers, scores);
        for (scored, &score) in listed.iter_mut().zip(&*scores) {
            scored.score = score;
        }
        check_finite(&[], listed)
    }
}
