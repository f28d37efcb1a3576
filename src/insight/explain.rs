//! How a text got its answers: clusters, edges, classifiers, the ranker's words, calibration.

use serde::{Deserialize, Serialize};

use super::trace::Trace;
use crate::calibration::CandidateScores;
use crate::error::Result;
use crate::features::PointSet;
use crate::ids::LabelId;
use crate::kernels::Kernels;
use crate::matrix::{CsrMatrix, Matrix};
use crate::predict::{Predictor, Search, Verdict};
use crate::ranker::PointView;

/// Words of the ranker per answer.
const N_WORDS: usize = 8;
/// Paths per answer.
const N_PATHS: usize = 5;
/// Points embedded at once.
const CHUNK: usize = 1024;

/// One answer and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerExplanation {
    /// The label's name.
    pub label: String,
    /// The final score.
    pub score: f32,
    /// The probability that it is right; `None` if the model is not calibrated.
    pub probability: Option<f32>,
    /// Training points of the label.
    pub n_points: u32,
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
    /// The member's final score; `None` if the label is not a candidate.
    pub score: Option<f32>,
}

/// A path to a label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelPath {
    /// The cluster.
    pub cluster: u32,
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The training point.
    pub point: usize,
    /// Cosine of the angle between the embeddings.
    pub similarity: f32,
}

/// The `k` best answers for the first of the points, each with its explanation.
///
/// # Errors
/// [`Error::CannotPredict`](crate::Error::CannotPredict) if a weight that is not finite was met.
pub fn explain(
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
    let explain = |label: LabelId| -> Vec<MemberExplanation> {
        let traces = traces.iter();
        let explain = |trace| {
            explain_member(
                predictor,
                trace,
                &point.features,
                label,
                search.n_candidates,
            )
        };
        traces.map(explain).collect()
    };
    let answers = answers.into_iter().next().unwrap_or_default();
    let explained = answers.iter().map(|answer| AnswerExplanation {
        label: predictor.labels().name(answer.label).to_owned(),
        score: answer.score,
        probability: predictor.probability(answer.score),
        n_points: predictor.label_counts()[answer.label.idx()],
        members: explain(answer.label),
    });
    Ok(explained.collect())
}

fn explain_member(
    predictor: &Predictor,
    trace: &Trace<'_>,
    point: &CsrMatrix,
    label: LabelId,
    n_candidates: usize,
) -> MemberExplanation {
    let member = trace.member;
    let steps = trace.paths_to(label);
    let shortlist_score = steps
        .first()
        .map_or(0.0, |s| s.cluster_score * s.edge_score);
    let relevance = trace.relevance(label);
    let model_score = shortlist_score * relevance;
    let place = trace.place(label);
    let is_candidate = place.is_some_and(|place| place < n_candidates);
    let ranker = member.ranker.as_ref().filter(|_| is_candidate);
    let ranker = ranker.map(|ranker| {
        let view = PointView {
            bow: point.row(0),
            dense: &trace.embedding,
        };
        let all = ranker.explain(view, label, usize::MAX);
        let margin = all.intercept + all.dense + all.words.iter().map(|word| word.1).sum::<f32>();
        let name = |column: u32| match predictor.featurizer().words() {
            Some(vectorizer) => vectorizer.vocabulary().get(column as usize).to_owned(),
            None => format!("feature {column}"),
        };
        let words = all.words.iter().take(N_WORDS);
        RankerExplanation {
            margin,
            score: ranker.probability(margin),
            embedding: all.dense,
            intercept: all.intercept,
            words: words
                .map(|&(column, share)| (name(column), share))
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
    let score = is_candidate.then(|| match &member.verdict {
        Some(Verdict::Tree(calibrator)) => calibrator.score(candidate),
        _ => candidate.product(),
    });
    MemberExplanation {
        place: place.map(|place| place + 1),
        paths: steps
            .iter()
            .take(N_PATHS)
            .map(|step| LabelPath {
                cluster: step.cluster.0,
                cluster_score: step.cluster_score,
                edge_score: step.edge_score,
            })
            .collect(),
        shortlist_score,
        relevance,
        model_score,
        ranker,
        score,
    }
}

/// The `n` training points whose embeddings by the first member are nearest to that of the first of the points.
pub fn neighbours(
    predictor: &Predictor,
    points: &PointSet,
    training: &PointSet,
    n: usize,
) -> Vec<Neighbour> {
    let encoder = &predictor.members()[0].encoder;
    let mut own = Matrix::default();
    encoder.encode(points.points(), &[0], &mut own);
    let own = own.row(0);
    let length = |values: &[f32]| Kernels::detect().dot(values, values).sqrt();
    let mut found: Vec<Neighbour> = Vec::with_capacity(training.len());
    let rows: Vec<u32> = (0..training.len() as u32).collect();
    let mut embeddings = Matrix::default();
    for rows in rows.chunks(CHUNK) {
        encoder.encode(training.points(), rows, &mut embeddings);
        for (position, &point) in rows.iter().enumerate() {
            let other = embeddings.row(position);
            let lengths = length(own) * length(other);
            let similarity = Kernels::detect().dot(own, other) / lengths.max(f32::MIN_POSITIVE);
            found.push(Neighbour {
                point: point as usize,
                similarity,
            });
        }
    }
    found.sort_by(|a, b| {
        b.similarity
            .total_cmp(&a.similarity)
            .then(a.point.cmp(&b.point))
    });
    found.truncate(n);
    found
}
