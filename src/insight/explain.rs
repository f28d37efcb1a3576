//! How a text got its answers: clusters, edges, classifiers, the ranker's words, and each source's part in the score.

use serde::{Deserialize, Serialize};

use super::trace::{PathStep, Trace};
use crate::candidates::{BoostingScratch, Column, FinalScorer, Merger, Point, PointBuffers};
use crate::error::Result;
use crate::features::PointSet;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::neighbours::NeighbourScratch;
use crate::predict::{CompletionScratch, Predictor, Query, best};
use crate::ranker::{PointView, Ranker};

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
    /// The part of each source in the final score; `None` unless that is made by boosted trees, or if the label is
    /// not a candidate.
    pub sources: Option<SourcesExplanation>,
    /// The member's final score; `None` if the label is not a candidate.
    pub score: Option<f32>,
}

/// The votes of similar training points for a label.
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

/// The final score of a label, and the score had one source found out nothing about any label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcesExplanation {
    /// The final score.
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
    let (query, points) = (Query::from(k), points.points());
    let walk = predictor.walk(&query)?;
    let mut buffers = PointBuffers::default();
    // Similar points and names are shown whether or not the final score reads them.
    let point = predictor.knowledge().point(points, 0, &mut buffers);
    let follow = |member| Trace::follow(predictor, member, points, 0, &point)?.score(&walk, &point);
    let members: Vec<Trace<'_>> = walk.members.iter().map(follow).collect::<Result<_>>()?;
    let mut merger = Merger::default();
    let mut merging = merger.start();
    members
        .iter()
        .for_each(|trace| merging.add(trace.candidates.scored()));
    let merged = merging.finish();
    predictor.complete(&walk, &point, &mut CompletionScratch::default(), merged)?;
    let answers = best(merged, &query);
    // A label that is known by its text alone is in no member.
    let is_trained = |label: LabelId| label.idx() < predictor.n_trained_labels();
    let explain = |&Scored { label, score }: &Scored| AnswerExplanation {
        label: predictor.labels().name(label).to_owned(),
        id: label,
        score,
        probability: predictor.probability(score),
        n_points: predictor.label_counts()[label.idx()],
        votes: point.vote(label).map(|vote| VoteExplanation {
            score: vote.score,
            nearest: vote.nearest,
        }),
        name: point.name(label).map(|name| NameExplanation {
            cosine: name.cosine,
            contained: name.contained,
        }),
        members: members
            .iter()
            .filter(|_| is_trained(label))
            .map(|trace| explain_member(predictor, trace, &point, label))
            .collect(),
    };
    Ok(answers.iter().map(explain).collect())
}

fn explain_member(
    predictor: &Predictor,
    trace: &Trace<'_>,
    point: &Point<'_>,
    label: LabelId,
) -> MemberExplanation {
    let steps = trace.paths_to(label);
    let shortlist_score = steps
        .first()
        .map_or(0.0, |s| s.cluster_score * s.edge_score);
    let relevance = trace.relevance(label);
    let row = trace.candidates.row_of(label);
    let ranker = trace.member.ranker.as_ref().filter(|_| row.is_some());
    let path = |step: &PathStep| LabelPath {
        cluster: step.cluster,
        cluster_score: step.cluster_score,
        edge_score: step.edge_score,
    };
    MemberExplanation {
        place: trace.place(label).map(|place| place + 1),
        paths: steps.iter().take(N_PATHS).map(path).collect(),
        shortlist_score,
        relevance,
        model_score: shortlist_score * relevance,
        ranker: ranker.map(|ranker| {
            let view = PointView {
                bow: point.terms,
                dense: trace.embedding(),
            };
            explain_margin(predictor, ranker, view, label)
        }),
        sources: row.and_then(|row| explain_sources(trace, row)),
        score: row.map(|row| trace.candidates.column(Column::FinalScore)[row]),
    }
}

/// The ranker's margin of a label, by words.
fn explain_margin(
    predictor: &Predictor,
    ranker: &Ranker,
    view: PointView<'_>,
    label: LabelId,
) -> RankerExplanation {
    let all = ranker.explain(view, label, usize::MAX);
    let margin = all.intercept + all.dense + all.words.iter().map(|word| word.1).sum::<f32>();
    let name = |&(column, share): &(u32, f32)| (predictor.featurizer().name(column), share);
    RankerExplanation {
        margin,
        score: ranker.probability(margin),
        embedding: all.dense,
        intercept: all.intercept,
        words: all.words.iter().take(N_WORDS).map(name).collect(),
    }
}

/// The score of a candidate with each source left out in turn; `None` if the final score is not made of them.
fn explain_sources(trace: &Trace<'_>, row: usize) -> Option<SourcesExplanation> {
    let FinalScorer::Boosted(trees) = &trace.member.final_scorer else {
        return None;
    };
    let without = |columns: &[Column]| {
        let mut rest = trace.candidates.without(columns);
        trees.score_candidates(&mut rest, &mut BoostingScratch::default());
        rest.column(Column::FinalScore)[row]
    };
    Some(SourcesExplanation {
        score: trace.candidates.column(Column::FinalScore)[row],
        without_network: without(&[Column::P, Column::Logit]),
        without_ranker: without(&[Column::Margin, Column::ClusterMargin, Column::PathScore]),
        without_neighbours: without(&[Column::Votes, Column::Nearest]),
        without_names: without(&[Column::NameMatch, Column::Contained]),
    })
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
    let Some(neighbours) = predictor.knowledge().neighbours else {
        return Ok(Vec::new());
    };
    let mut scratch = NeighbourScratch::default();
    let bow = points.features.row(0);
    let nearest = neighbours.nearest(bow, n, &mut scratch);
    let nearest = nearest.iter().map(|found| {
        let labels = neighbours.labels_of(found.row as usize).iter();
        Neighbour {
            point: found.row as usize,
            similarity: found.cosine,
            labels: labels.map(|&label| LabelId(label)).collect(),
        }
    });
    Ok(nearest.collect())
}
