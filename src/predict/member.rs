//! One member of a predictor: from points to its best candidates by p, and from those to its final scores.

use super::Level;
use super::judging::JudgingScratch;
use crate::calibration::{Calibrator, CandidateScores};
use crate::config::Plan;
use crate::encoder::{Encoder, TrainableEncoder};
use crate::error::{Error, Result};
use crate::features::Points;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::index::ShortlistOptions;
use crate::judge::{Evidence, Judge};
use crate::matrix::Matrix;
use crate::model::{Model, RankScratch, Stage1};
use crate::ranker::{PointView, Ranker, RankerScratch};

/// A trained encoder with the index and classifiers behind it, and what re-ranks their answers.
pub(crate) struct Member {
    /// φ.
    pub(crate) encoder: Box<dyn TrainableEncoder>,
    /// Index and classifiers.
    pub(crate) model: Model,
    /// q; 1 for every candidate without it.
    pub(crate) ranker: Option<Ranker>,
    /// From p, q and more to the final score; p·q without it.
    pub(crate) verdict: Option<Verdict>,
    /// What is kept of stage 1.
    pub(crate) stage1: Stage1,
}

/// What makes the final score.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The paper's tree over p, q and f.
    Tree(Calibrator),
    /// Boosted trees over everything known.
    Judge(Judge),
}

impl Verdict {
    /// No score is higher.
    pub(crate) fn highest_score(&self) -> f32 {
        match self {
            Verdict::Tree(calibrator) => {
                calibrator.mixing().tree_weight + calibrator.mixing().product_weight
            }
            Verdict::Judge(_) => 1.0,
        }
    }
}

/// Buffers of one thread, for any member of the same predictor.
pub(crate) struct MemberScratch {
    rank: RankScratch,
    /// Embeddings of the rows that were asked for last.
    pub(crate) embeddings: Matrix,
    probabilities: Vec<f32>,
    ranker: RankerScratch,
    labels: Vec<LabelId>,
    /// q, or the margins, of the candidates that were scored last, in their order.
    pub(crate) ranker_scores: Vec<f32>,
    pub(super) judging: JudgingScratch,
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
            judging: JudgingScratch::default(),
        }
    }
}

impl MemberScratch {
    /// The evidence on the candidates that were heard last.
    pub(crate) fn evidence(&self) -> &Evidence {
        &self.judging.evidence
    }
}

/// How candidates are searched for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) options: ShortlistOptions,
    pub(crate) n_candidates: usize,
}

impl Search {
    /// The search for the `k` best labels; for more candidates where they are re-ranked.
    pub(crate) fn new(plan: &Plan, k: usize, reranks: bool) -> Self {
        let n_reranked = plan.config().ranker.n_candidates;
        let n_candidates = if reranks { n_reranked.max(k) } else { k };
        Search {
            options: ShortlistOptions {
                beam_size: plan.beam_size(),
                shortlist_size: plan.shortlist_size(),
                score_floor: 0.0,
                keeps_positives: false,
            },
            n_candidates: n_candidates.min(plan.counts().n_labels),
        }
    }
}

/// How candidates are scored: at which level, and with which f of each label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring<'a> {
    pub(crate) level: Level,
    pub(crate) frequencies: &'a [u32],
}

/// A point whose candidates were just listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position<'a> {
    /// Columns and values of its features.
    pub(crate) bow: (&'a [u32], &'a [f32]),
    /// The same, and pairs of words if the ranker reads them.
    pub(crate) terms: (&'a [u32], &'a [f32]),
    /// Its place among the rows that were encoded last.
    pub(crate) slot: usize,
}

/// An encoder with the index and classifiers behind it, at one level of a member.
#[derive(Clone, Copy)]
pub(crate) struct Network<'a> {
    pub(crate) encoder: &'a dyn Encoder,
    pub(crate) model: &'a Model,
}

impl Network<'_> {
    /// The best candidates of every row by p, best first; leaves the embeddings in the scratch.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if a weight that is not finite was met.
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
        let Network { encoder, model } = *self;
        encoder.encode(points, rows, embeddings);
        let k = search.n_candidates;
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
}

impl Member {
    /// Whether it has what a level needs.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] naming what is missing.
    pub(super) fn check_level(&self, level: Level) -> Result<()> {
        let missing = match level {
            Level::Stage1 if self.stage1.whole.is_none() => "train.keep_stage1",
            Level::Ranker if self.ranker.is_none() => "ranker",
            Level::Calibrated if self.verdict.is_none() => "calibration",
            _ => return Ok(()),
        };
        Err(Error::CannotPredict(format!(
            "stage {level}: the model was trained without {missing}"
        )))
    }

    /// The network of stage 1 where it was kept and is asked for, otherwise that of stage 2.
    pub(crate) fn network(&self, level: Level) -> Network<'_> {
        match &self.stage1.whole {
            Some(stage1) if level == Level::Stage1 => Network {
                encoder: stage1.encoder.as_encoder(),
                model: &stage1.model,
            },
            _ => Network {
                encoder: self.encoder.as_encoder(),
                model: &self.model,
            },
        }
    }

    /// The cluster of each label in stage 1.
    pub(crate) fn cluster_of(&self) -> Option<Vec<ClusterId>> {
        let edges = self.stage1.edges.as_ref()?;
        let mut cluster_of = vec![ClusterId(0); self.model.numbering.labels().len()];
        for cluster in (0..edges.n_clusters() as u32).map(ClusterId) {
            for &row in &edges.rows()[edges.range(cluster)] {
                cluster_of[self.model.numbering.label(row).idx()] = cluster;
            }
        }
        Some(cluster_of)
    }

    /// q of candidates, into the scratch; 1 without a ranker.
    pub(crate) fn score_candidates(
        &self,
        point: Position<'_>,
        listed: &[Scored],
        scratch: &mut MemberScratch,
    ) {
        self.margins(point, listed, scratch);
        let scores = &mut scratch.ranker_scores;
        match &self.ranker {
            Some(ranker) => scores
                .iter_mut()
                .for_each(|score| *score = ranker.probability(*score)),
            None => scores.fill(1.0),
        }
    }

    /// The ranker's margins of candidates, into the scratch; 0 without a ranker.
    pub(super) fn margins(
        &self,
        point: Position<'_>,
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
            ranker_scores.resize(listed.len(), 0.0);
            return;
        };
        labels.clear();
        labels.extend(listed.iter().map(|scored| scored.label));
        let dense = match ranker.n_dense() {
            0 => &[],
            _ => embeddings.row(point.slot),
        };
        let view = PointView {
            bow: point.terms,
            dense,
        };
        ranker.score(view, labels, buffers, ranker_scores);
    }

    /// Replaces p by the score of a level above it; the order is left as it was.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if a score is not finite.
    pub(crate) fn rescore(
        &self,
        point: Position<'_>,
        scoring: &Scoring<'_>,
        listed: &mut [Scored],
        scratch: &mut MemberScratch,
    ) -> Result<()> {
        self.score_candidates(point, listed, scratch);
        let calibrator = match &self.verdict {
            Some(Verdict::Tree(calibrator)) if scoring.level != Level::Ranker => Some(calibrator),
            _ => None,
        };
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

/// Large model files are not checked when they are loaded, so what is read from them is checked here.
pub(super) fn check_finite(embedding: &[f32], ranked: &[Scored]) -> Result<()> {
    let is_finite = embedding.iter().all(|value| value.is_finite())
        && ranked.iter().all(|scored| scored.score.is_finite());
    if is_finite {
        Ok(())
    } else {
        let problem = "the model holds a weight that is not finite: it is damaged";
        Err(Error::CannotPredict(problem.into()))
    }
}
