//! The evidence on a member's candidates, for its judge.
//!
//! Candidates are the best of the index, those the neighbours of the text vote for, and those whose names it contains.

use super::member::{Member, MemberScratch, Position, check_finite};
use crate::error::Result;
use crate::ids::{LabelId, Scored};
use crate::judge::{Clues, Evidence, Judge, JudgeScratch, TextClues};
use crate::neighbours::{NameMatch, Names, NeighbourScratch, Neighbours, Vote};
use crate::ranker::Ranker;

/// Labels that the neighbours bring at most.
const MAX_VOTES: usize = 50;
/// Labels that the names bring at most.
const MAX_NAMES: usize = 20;

/// What the judges of all members hear besides the members.
#[derive(Clone, Copy)]
pub(crate) struct Witnesses<'a> {
    /// The training points by their words.
    pub(crate) neighbours: Option<&'a Neighbours>,
    /// The labels by their names.
    pub(crate) names: Option<&'a Names>,
    /// f of each label.
    pub(crate) frequencies: &'a [u32],
}

/// What the witnesses say of one text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony {
    /// Labels of the nearest points, best first.
    votes: Vec<Vote>,
    /// Labels with similar names, best first.
    names: Vec<NameMatch>,
    n_words: usize,
}

/// Buffers of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct JudgingScratch {
    clues: Vec<Clues>,
    neighbours: NeighbourScratch,
    judge: JudgeScratch,
    scores: Vec<f32>,
    /// The ranker's margins of the clusters.
    clusters: Vec<f32>,
    /// Candidates by label, with their places in the list.
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
        scratch: &mut MemberScratch,
    ) -> Result<Testimony> {
        let scratch = &mut scratch.judging.neighbours;
        let mut testimony = Testimony {
            n_words: bow.0.len(),
            ..Testimony::default()
        };
        if let Some(neighbours) = self.neighbours {
            neighbours.votes(bow, scratch, &mut testimony.votes)?;
        }
        if let Some(names) = self.names {
            names.matches(bow, scratch, &mut testimony.names)?;
        }
        Ok(testimony)
    }
}

/// Someone the judge hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expert {
    Network,
    Ranker,
    Neighbours,
    Names,
}

impl Expert {
    /// Takes back what the expert said of a candidate.
    fn silence(self, clues: &mut Clues) {
        match self {
            Expert::Network => (clues.p, clues.logit) = (0.0, 0.0),
            Expert::Ranker => (clues.margin, clues.cluster, clues.path) = (0.0, 0.0, 0.0),
            Expert::Neighbours => (clues.vote, clues.nearest) = (0.0, 0.0),
            Expert::Names => (clues.name, clues.contained) = (0.0, 0.0),
        }
    }
}

impl Testimony {
    /// What the neighbours say of a label.
    pub(crate) fn vote(&self, label: LabelId) -> Option<Vote> {
        self.votes.iter().find(|vote| vote.label == label).copied()
    }

    /// How a label's name matches the text.
    pub(crate) fn name(&self, label: LabelId) -> Option<NameMatch> {
        self.names.iter().find(|name| name.label == label).copied()
    }

    fn text_clues(&self) -> TextClues {
        let nearest = self.votes.iter().map(|vote| vote.nearest);
        TextClues {
            n_words: self.n_words,
            nearest: nearest.fold(0.0, f32::max),
        }
    }
}

impl Member {
    /// Candidates that witnesses bring at most.
    pub(crate) const MAX_BROUGHT: usize = MAX_VOTES + MAX_NAMES;

    /// Adds the candidates of the witnesses to those of the index, and puts the evidence on all of them into the
    /// scratch.
    pub(crate) fn hear(
        &self,
        point: Position<'_>,
        listed: &mut Vec<Scored>,
        testimony: &Testimony,
        frequencies: &[u32],
        scratch: &mut MemberScratch,
    ) {
        let Testimony { votes, names, .. } = testimony;
        let places = &mut scratch.judging.places;
        places.clear();
        places.extend(listed.iter().map(|scored| scored.label.0).zip(0..));
        let best = votes[..votes.len().min(MAX_VOTES)].iter();
        let named = names[..names.len().min(MAX_NAMES)].iter();
        let brought = best
            .map(|vote| vote.label)
            .chain(named.map(|name| name.label));
        places.extend(brought.map(|label| label.0).zip(listed.len() as u32..));
        // Of a label that several bring, the first place stays.
        places.sort_unstable();
        places.dedup_by_key(|place| place.0);
        let n_listed = listed.len() as u32;
        for (label, place) in places.iter_mut().filter(|place| n_listed <= place.1) {
            *place = listed.len() as u32;
            listed.push(Scored {
                label: LabelId(*label),
                score: 0.0,
            });
        }

        self.margins(point, listed, scratch);
        let embedding = scratch.embeddings.row(point.slot);
        let JudgingScratch {
            clues,
            clusters: cluster_margins,
            places,
            evidence,
            ..
        } = &mut scratch.judging;
        let ranker = self.ranker.as_ref();
        let clusters = ranker.and_then(Ranker::clusters);
        if let Some(clusters) = clusters {
            clusters.score(point.terms, cluster_margins);
        }
        let classifiers = &self.model.classifiers;
        clues.clear();
        for (scored, &margin) in listed.iter().zip(&scratch.ranker_scores) {
            let row = self.model.numbering.row(scored.label).idx();
            let above = clusters.iter().flat_map(|of| of.above(scored.label));
            let mut above = above
                .map(|cluster| cluster_margins[cluster.idx()])
                .peekable();
            let log_score = |margin| ranker.map_or(0.0, |ranker| ranker.log_probability(margin));
            clues.push(Clues {
                p: scored.score,
                logit: classifiers.weights.dot(row, embedding) + classifiers.bias[row],
                margin,
                cluster: above.peek().copied().unwrap_or(0.0),
                path: match above.peek() {
                    Some(_) => above.map(log_score).sum::<f32>() + log_score(margin),
                    None => 0.0,
                },
                frequency: frequencies[scored.label.idx()] as f32,
                ..Clues::default()
            });
        }
        let place_of = |label: LabelId| {
            let found = places.binary_search_by_key(&label.0, |place| place.0);
            found.ok().map(|at| places[at].1 as usize)
        };
        for vote in votes {
            if let Some(place) = place_of(vote.label) {
                (clues[place].vote, clues[place].nearest) = (vote.score, vote.nearest);
            }
        }
        for name in names {
            if let Some(place) = place_of(name.label) {
                (clues[place].name, clues[place].contained) = (name.cosine, name.contained);
            }
        }
        evidence.fill(testimony.text_clues(), clues);
    }
}

impl MemberScratch {
    /// Replaces the scores of candidates by those of a judge, after [`Member::hear`]; the order is left as it was.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] if a score is not finite.
    pub(crate) fn judge(&mut self, judge: &Judge, listed: &mut [Scored]) -> Result<()> {
        let JudgingScratch {
            judge: buffers,
            scores,
            evidence,
            ..
        } = &mut self.judging;
        judge.score(evidence, buffers, scores);
        for (scored, &score) in listed.iter_mut().zip(&*scores) {
            scored.score = score;
        }
        check_finite(&[], listed)
    }

    /// The score of the candidate at a place had an expert said nothing, after [`Member::hear`].
    pub(crate) fn score_without(
        &self,
        expert: Expert,
        judge: &Judge,
        place: usize,
        testimony: &Testimony,
    ) -> f32 {
        let mut clues = self.judging.clues.clone();
        clues.iter_mut().for_each(|clues| expert.silence(clues));
        let (mut evidence, mut scores) = (Evidence::default(), Vec::new());
        evidence.fill(testimony.text_clues(), &clues);
        judge.score(&evidence, &mut JudgeScratch::default(), &mut scores);
        scores[place]
    }
}
