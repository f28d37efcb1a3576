//! How a text got its answers: clusters, edges, classifiers, the ranker's words, calibration.

use serde::{Deserialize, Serialize};

use super::trace::Trace;
use crate::calibration::CandidateScores;
use crate::error::Result;
use crate::features::{PointSet, TermRow};
use crate::ids::{ClusterId, LabelId, Scored};
use crate::judge::Judge;
use crate::neighbours::NeighbourScratch;
use crate::predict::{
    Expert, Level, Member, MemberScratch, Position, Predictor, Search, Testimony, Verdict,
};
use crate::ranker::PointView;

/// Words of the ranker per answer.
const N_WORDS: usize = 8;
/// Paths per answer.
const N_PATHS: usize = 5;

/// One answer and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerExplanation {
    /// The label's name.
    pub label: String,
    /// The label's number.
    pub id: LabelId,
    /// The final score.
    pub score: f32,
    /// The probability that it is right; `None` if the model is not calibrated.
    pub probability: Option<f32>,
    /// Training points of the label.
    pub n_points: u32,
    /// Votes of similar training points; `None` if none of them has the label.
    pub votes: Option<VoteExplanation>,
    /// How the label's name matches the text; `None` if it does not, or names are not used.
    pub name: Option<NameExplanation>,
    /// The explanation by each member of the ensemble.
    pub members: Vec<MemberExplanation>,
}

/// How one member scores a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberExplanation {
    /// Place among the member's labels by p, from 1; `None` if the label is not in its shortlist.
    pub place: Option<usize>,
    /// Paths through the searched clusters, best first; only the first one counts.
    pub paths: Vec<LabelPath>,
    /// ŷ, the score of the best path; 0 without one.
    pub shortlist_score: f32,
    /// σ(w·φ + b).
    pub relevance: f32,
    /// p = σ·ŷ.
    pub model_score: f32,
    /// How the ranker scores it; `None` without a ranker, or if the label is not a candidate.
    pub ranker: Option<RankerExplanation>,
    /// What the member's judge made of it; `None` without a judge, or if the label is not a candidate.
    pub judge: Option<JudgeExplanation>,
    /// The member's final score; `None` if the label is not a candidate.
    pub score: Option<f32>,
}

/// What similar training points say of a label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoteExplanation {
    /// Sum of the squared cosines of those that have it.
    pub score: f32,
    /// Cosine of the nearest that has it.
    pub nearest: f32,
}

/// How a label's name matches a text.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NameExplanation {
    /// Cosine of name and text.
    pub cosine: f32,
    /// Share of the name that the text contains.
    pub contained: f32,
}

/// The score of a judge, and what it would be had one expert said nothing of any label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgeExplanation {
    /// The score.
    pub score: f32,
    /// Without the network.
    pub without_network: f32,
    /// Without the ranker.
    pub without_ranker: f32,
    /// Without the similar training points.
    pub without_neighbours: f32,
    /// Without the names of labels.
    pub without_names: f32,
}

/// A path to a label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelPath {
    /// The cluster.
    pub cluster: ClusterId,
    /// ŝ_c.
    pub cluster_score: f32,
    /// ŝ(c,ℓ).
    pub edge_score: f32,
}

/// How the ranker scores a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankerExplanation {
    /// The margin z = words + embedding + intercept.
    pub margin: f32,
    /// q.
    pub score: f32,
    /// The contribution of the embedding to the margin.
    pub embedding: f32,
    /// The label's intercept.
    pub intercept: f32,
    /// The words with the largest contributions.
    pub words: Vec<(String, f32)>,
}

/// A training point near a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neighbour {
    /// The training point.
    pub point: usize,
    /// Cosine of their words.
    pub similarity: f32,
    /// Its labels.
    pub labels: Vec<LabelId>,
}

/// The `k` best answers for the first of the points, each with its explanation.
///
/// # Errors
/// [`Error::CannotPredict`](crate::Error::CannotPredict) if a weight that is not finite was met.
pub(crate) fn explain(
    predictor: &Predictor,
    points: &PointSet,
    k: usize,
) -> Result<Vec<AnswerExplanation>> {
    let point = points.select_rows(&[0]);
    let answers = predictor.rank_points(point.points(), k.into())?;
    let search = Search::new(predictor.plan(), k, true);
    let traces: Vec<Trace<'_>> = predictor
        .members()
        .iter()
        .map(|member| Trace::follow(member, &point, 0, &search))
        .collect();
    let witnesses = predictor.witnesses();
    let bow = point.features.row(0);
    let mut scratch = MemberScratch::new(&predictor.members()[0].model);
    let testimony = witnesses.testify(bow, &mut scratch)?;
    let hearings = predictor
        .members()
        .iter()
        .map(|member| Hearing::hold(predictor, member, &point, &search, &testimony))
        .collect::<Result<Vec<_>>>()?;
    let explain = |label: LabelId| -> Vec<MemberExplanation> {
        let members = traces.iter().zip(&hearings);
        let explain = |(trace, hearing): (&Trace<'_>, &Option<Hearing<'_>>)| {
            let judge = hearing.as_ref().and_then(|hearing| hearing.explain(label));
            let n_candidates = search.n_candidates;
            explain_member(predictor, trace, &point, label, n_candidates, judge)
        };
        members.map(explain).collect()
    };
    let answers = answers.into_iter().next().unwrap_or_default();
    let explained = answers.iter().map(|answer| AnswerExplanation {
        label: predictor.labels().name(answer.label).to_owned(),
        id: answer.label,
        score: answer.score,
        probability: predictor.probability(answer.score),
        n_points: predictor.label_counts()[answer.label.idx()],
        votes: testimony.vote(answer.label).map(|vote| VoteExplanation {
            score: vote.score,
            nearest: vote.nearest,
        }),
        name: testimony.name(answer.label).map(|name| NameExplanation {
            cosine: name.cosine,
            contained: name.contained,
        }),
        members: explain(answer.label),
    });
    Ok(explained.collect())
}

/// What a member's judge heard of one text.
struct Hearing<'a> {
    judge: &'a Judge,
    testimony: &'a Testimony,
    candidates: Vec<Scored>,
    scratch: MemberScratch,
}

impl<'a> Hearing<'a> {
    /// Hears what is said of the only point; `None` without a judge.
    fn hold(
        predictor: &'a Predictor,
        member: &'a Member,
        point: &PointSet,
        search: &Search,
        testimony: &'a Testimony,
    ) -> Result<Option<Self>> {
        let Some(Verdict::Judge(judge)) = &member.verdict else {
            return Ok(None);
        };
        let mut scratch = MemberScratch::new(&member.model);
        let network = member.network(Level::Ensemble);
        let listed = network.candidates(point.points(), &[0], search, &mut scratch)?;
        let mut candidates = listed.into_iter().next().unwrap_or_default();
        let (points, mut terms) = (point.points(), TermRow::default());
        let frequencies = predictor.witnesses().frequencies;
        let point = Position {
            bow: points.features.row(0),
            terms: points.terms(0, &mut terms),
            slot: 0,
        };
        member.hear(point, &mut candidates, testimony, frequencies, &mut scratch);
        scratch.judge(judge, &mut candidates)?;
        Ok(Some(Hearing {
            judge,
            testimony,
            candidates,
            scratch,
        }))
    }

    fn explain(&self, label: LabelId) -> Option<JudgeExplanation> {
        let mut candidates = self.candidates.iter();
        let place = candidates.position(|candidate| candidate.label == label)?;
        let without = |expert| {
            let (judge, testimony) = (self.judge, self.testimony);
            self.scratch.score_without(expert, judge, place, testimony)
        };
        Some(JudgeExplanation {
            score: self.candidates[place].score,
            without_network: without(Expert::Network),
            without_ranker: without(Expert::Ranker),
            without_neighbours: without(Expert::Neighbours),
            without_names: without(Expert::Names),
        })
    }
}

fn explain_member(
    predictor: &Predictor,
    trace: &Trace<'_>,
    point: &PointSet,
    label: LabelId,
    n_candidates: usize,
    judge: Option<JudgeExplanation>,
) -> MemberExplanation {
    let member = trace.member;
    let steps = trace.paths_to(label);
    let shortlist_score = steps
        .first()
        .map_or(0.0, |s| s.cluster_score * s.edge_score);
    let relevance = trace.relevance(label);
    let model_score = shortlist_score * relevance;
    let place = trace.place(label);
    let is_candidate = judge.is_some() || place.is_some_and(|place| place < n_candidates);
    let ranker = member.ranker.as_ref().filter(|_| is_candidate);
    let mut terms = TermRow::default();
    let ranker = ranker.map(|ranker| {
        let view = PointView {
            bow: point.points().terms(0, &mut terms),
            dense: &trace.embedding,
        };
        let all = ranker.explain(view, label, usize::MAX);
        let margin = all.intercept + all.dense + all.words.iter().map(|word| word.1).sum::<f32>();
        let words = all.words.iter().take(N_WORDS);
        RankerExplanation {
            margin,
            score: ranker.probability(margin),
            embedding: all.dense,
            intercept: all.intercept,
            words: words
                .map(|&(column, share)| (predictor.featurizer().name(column), share))
                .collect(),
        }
    });
    let frequencies = predictor.calibration().map(|c| &c.frequencies[..]);
    let frequencies = frequencies.unwrap_or(predictor.label_counts());
    let candidate = CandidateScores {
        model: model_score,
        ranker: ranker.as_ref().map_or(1.0, |ranker| ranker.score),
        frequency: frequencies[label.idx()],
    };
    let score = is_candidate.then(|| match (&member.verdict, judge) {
        (_, Some(judge)) => judge.score,
        (Some(Verdict::Tree(calibrator)), _) => calibrator.score(candidate),
        _ => candidate.product(),
    });
    MemberExplanation {
        place: place.map(|place| place + 1),
        paths: steps
            .iter()
            .take(N_PATHS)
            .map(|step| LabelPath {
                cluster: step.cluster,
                cluster_score: step.cluster_score,
                edge_score: step.edge_score,
            })
            .collect(),
        shortlist_score,
        relevance,
        model_score,
        ranker,
        judge,
        score,
    }
}

/// The `n` training points whose words are most like those of the first of the points, best first; none if the model
/// does not keep them.
///
/// # Errors
/// [`Error::CannotPredict`](crate::Error::CannotPredict) if the model is damaged.
pub(crate) fn neighbours(
    predictor: &Predictor,
    points: &PointSet,
    n: usize,
) -> Result<Vec<Neighbour>> {
    let Some(neighbours) = predictor.witnesses().neighbours else {
        return Ok(Vec::new());
    };
    let mut scratch = NeighbourScratch::default();
    let bow = points.features.row(0);
    let found = neighbours.postings().nearest(bow, n, &mut scratch)?;
    let found = found.iter().map(|found| Neighbour {
        point: found.row as usize,
        similarity: found.cosine,
        labels: neighbours.labels_of(found.row as usize),
    });
    Ok(found.collect())
}
