//! One member of a predictor: from points to its best candidates by p, and from those to its final scores.

use crate::calibration::{Calibrator, CandidateScores};
use crate::encoder::{Points, TrainableEncoder};
use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};
use crate::index::ShortlistOptions;
use crate::matrix::Matrix;
use crate::model::{Model, RankScratch};
use crate::predict::Stage;
use crate::ranker::{PointView, Ranker, RankerScratch};
use crate::train::Stage1;

/// A trained encoder with the index and classifiers behind it, and what re-ranks their answers.
pub struct Member {
    /// φ.
    pub encoder: Box<dyn TrainableEncoder>,
    /// Index and classifiers.
    pub model: Model,
    /// q; 1 for every candidate without it.
    pub ranker: Option<Ranker>,
    /// From p and q to the final score; p·q without it.
    pub calibrator: Option<Calibrator>,
    /// What is remembered of stage 1; no answer needs it.
    pub stage1: Stage1,
}

/// Buffers of one thread, for any member of the same predictor.
pub(crate) struct MemberScratch {
    rank: RankScratch,
    /// Embeddings of the rows that were asked for last.
    pub(crate) embeddings: Matrix,
    probabilities: Vec<f32>,
    ranker: RankerScratch,
    labels: Vec<LabelId>,
    /// q of the candidates that were scored last, in their order.
    pub(crate) ranker_scores: Vec<f32>,
}

impl MemberScratch {
    pub(crate) fn new(model: &Model) -> Self {
        MemberScratch {
            rank: RankScratch::new(model),
            embeddings: Matrix::default(),
            probabilities: Vec::new(),
            ranker: RankerScratch::default(),
            labels: Vec::new(),
            ranker_scores: Vec::new(),
        }
    }
}

/// How candidates are searched for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) options: ShortlistOptions,
    pub(crate) n_candidates: usize,
}

/// How candidates are scored: up to which stage, and with which f of each label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring<'a> {
    pub(crate) stage: Stage,
    pub(crate) frequencies: &'a [u32],
}

impl Member {
    /// The best candidates of every row by p, best first; leaves the embeddings in the scratch.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if a weight that is not finite was met.
    pub(crate) fn candidates(
        &self,
        points: Points<'_>,
        rows: &[u32],
        search: &Search,
        scratch: &mut MemberScratch,
    ) -> Result<Vec<Vec<Scored>>> {
        let MemberScratch {
            rank,
            embeddings,
            probabilities,
            ..
        } = scratch;
        self.encoder.encode(points, rows, embeddings);
        let (model, k) = (&self.model, search.n_candidates);
        if rows.len() == 1 {
            let ranked = model.rank(embeddings.row(0), &search.options, k, rank);
            check_finite(embeddings.row(0), &ranked)?;
            return Ok(vec![ranked]);
        }
        let n_clusters = model.clusters.n_clusters();
        probabilities.resize(rows.len() * n_clusters, 0.0);
        model
            .clusters
            .probabilities(embeddings.values(), probabilities);
        let one = |row: usize| {
            let embedding = embeddings.row(row);
            let probabilities = &probabilities[row * n_clusters..][..n_clusters];
            let ranked = model.rank_within(embedding, probabilities, &search.options, k, rank);
            check_finite(embedding, &ranked)?;
            Ok(ranked)
        };
        (0..rows.len()).map(one).collect()
    }

    /// q of candidates, in the scratch; `position` is that of the point among the rows asked for last.
    pub(crate) fn score_candidates(
        &self,
        (bow, position): ((&[u32], &[f32]), usize),
        listed: &[Scored],
        scratch: &mut MemberScratch,
    ) {
        let MemberScratch {
            embeddings,
            ranker: buffers,
            labels,
            ranker_scores,
            ..
        } = scratch;
        let Some(ranker) = &self.ranker else {
            ranker_scores.clear();
            ranker_scores.resize(listed.len(), 1.0);
            return;
        };
        labels.clear();
        labels.extend(listed.iter().map(|scored| scored.label));
        let dense = match ranker.n_dense() {
            0 => &[],
            _ => embeddings.row(position),
        };
        ranker.score(PointView { bow, dense }, labels, buffers, ranker_scores);
        for score in ranker_scores {
            *score = ranker.probability(*score);
        }
    }

    /// Puts the score of a stage in the place of p; the order is left as it was.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if a score is not finite.
    pub(crate) fn rescore(
        &self,
        point: ((&[u32], &[f32]), usize),
        scoring: &Scoring<'_>,
        listed: &mut [Scored],
        scratch: &mut MemberScratch,
    ) -> Result<()> {
        if scoring.stage == Stage::Stage2 {
            return Ok(());
        }
        self.score_candidates(point, listed, scratch);
        let calibrator = self
            .calibrator
            .as_ref()
            .filter(|_| scoring.stage != Stage::Ranker);
        for (scored, &ranker) in listed.iter_mut().zip(&scratch.ranker_scores) {
            let candidate = CandidateScores {
                model: scored.score,
                ranker,
                frequency: scoring.frequencies[scored.label.idx()],
            };
            scored.score = match calibrator {
                Some(calibrator) => calibrator.score(candidate),
                None => candidate.product(),
            };
        }
        check_finite(&[], listed)
    }
}

/// Large model files are not read before they are used: what is met in them is looked at here.
fn check_finite(embedding: &[f32], ranked: &[Scored]) -> Result<()> {
    let is_finite = embedding.iter().all(|value| value.is_finite())
        && ranked.iter().all(|scored| scored.score.is_finite());
    match is_finite {
        true => Ok(()),
        false => Err(Error::Unpredictable(
            "the model holds a weight that is not finite: it is damaged".into(),
        )),
    }
}
