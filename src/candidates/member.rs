//! One member of a predictor: its network, its ranker and its final scorer.

use super::final_score::FinalScorer;
use super::level::Level;
use super::table::check_finite;
use crate::encoder::{Encoder, TrainableEncoder};
use crate::error::{Error, Result};
use crate::features::Points;
use crate::ids::ClusterId;
use crate::matrix::Matrix;
use crate::model::{Model, Stage1};
use crate::ranker::Ranker;

/// A trained encoder with the index and classifiers behind it, and the parts that re-rank their answers.
#[derive(Clone)]
pub(crate) struct Member {
    /// φ.
    pub(crate) encoder: Box<dyn TrainableEncoder>,
    /// Index and classifiers.
    pub(crate) model: Model,
    /// q; 1 for every candidate without it.
    pub(crate) ranker: Option<Ranker>,
    /// From p, q and more to the final score; [`FinalScorer::Product`] until one is fitted.
    pub(crate) final_scorer: FinalScorer,
    /// The kept parts of stage 1.
    pub(crate) stage1: Stage1,
}

/// An encoder with the index and classifiers behind it, at one level of a member.
#[derive(Clone, Copy)]
pub(crate) struct Network<'a> {
    pub(crate) encoder: &'a dyn Encoder,
    pub(crate) model: &'a Model,
}

/// Some points, encoded by one network.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedPoints {
    /// φ, n×d.
    embeddings: Matrix,
    /// Softmax of the cluster logits, n×C.
    clusters: Vec<f32>,
}

/// One point, encoded by one network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    /// φ.
    pub(crate) embedding: &'a [f32],
    /// The probability of each cluster.
    pub(crate) clusters: &'a [f32],
}

impl Network<'_> {
    /// Encodes points and looks which clusters they belong to.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if an embedding is not finite.
    pub(crate) fn encode(
        &self,
        points: Points<'_>,
        rows: &[u32],
        encoded: &mut EncodedPoints,
    ) -> Result<()> {
        let EncodedPoints {
            embeddings,
            clusters: probabilities,
        } = encoded;
        self.encoder.encode(points, rows, embeddings);
        check_finite(embeddings.values().iter().copied())?;
        let clusters = &self.model.clusters;
        probabilities.resize(rows.len() * clusters.n_clusters(), 0.0);
        clusters.probabilities(embeddings.values(), probabilities);
        Ok(())
    }
}

impl EncodedPoints {
    /// One of the points.
    pub(crate) fn get(&self, place: usize) -> Encoded<'_> {
        let n_clusters = self.clusters.len() / self.embeddings.n_rows();
        Encoded {
            embedding: self.embeddings.row(place),
            clusters: &self.clusters[place * n_clusters..][..n_clusters],
        }
    }
}

impl Member {
    /// Checks that it has the parts of a level.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] naming the part that is missing.
    pub(crate) fn check_level(&self, level: Level) -> Result<()> {
        let is_fitted = !matches!(self.final_scorer, FinalScorer::P | FinalScorer::Product);
        let missing = match level {
            Level::Stage1 if self.stage1.whole.is_none() => "train.keep_stage1",
            Level::Ranker if self.ranker.is_none() => "ranker",
            Level::Calibrated if !is_fitted => "calibration",
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

    /// The final scorer of a level.
    pub(crate) fn scorer_at(&self, level: Level) -> &FinalScorer {
        match (level, &self.final_scorer) {
            (Level::Stage1 | Level::Stage2 | Level::Networks, _) => &FinalScorer::P,
            (Level::Ranker, _) => &FinalScorer::Product,
            // Without a ranker, q is 1.
            (_, FinalScorer::Product) if self.ranker.is_none() => &FinalScorer::P,
            (_, scorer) => scorer,
        }
    }

    /// The cluster of each label in stage 1, where there were clusters.
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
}
