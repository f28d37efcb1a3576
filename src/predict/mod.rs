//! From a text to its labels: what the command line and other front ends call.
//!
//! A [`Predictor`] is `Send + Sync`, and sharing it between threads costs nothing. Each member lists its candidates and
//! gives them final scores; the score of a label is the mean over the members, and calibration turns it into a
//! probability. A [`Query`] asks for the `k` best labels, at any [`Level`] of the stack.

mod by_text;
mod change;
mod embed;
mod inputs;
mod integrity;
mod parts;
mod promote;
mod query;
mod rename;
mod retired;
mod rules;
mod uncalibrated;

pub use crate::candidates::Level;
pub use change::Correction;
pub use embed::Embeddings;
pub use inputs::Inputs;
pub use query::Query;
pub use rules::{LabelLists, LabelRef, LabelRules};
pub use uncalibrated::Uncalibrated;

pub(crate) use by_text::CompletionScratch;
pub(crate) use change::Lessons;
pub(crate) use integrity::Integrity;
pub(crate) use parts::{EnsembleCalibration, PredictorParts, TrainingRecord};
pub(crate) use retired::Retired;

use std::sync::Arc;

use rayon::prelude::*;

use crate::candidates::{Knowledge, LabelsByText, Member, MemberPoint, Merger, Walk, WalkScratch};
use crate::config::Plan;
use crate::data::{DataSummary, Dataset, LabelSet, SeenTexts};
use crate::error::Result;
use crate::events::Event;
use crate::features::{FeatureScratch, Featurizer, PointSet, Points};
use crate::ids::{Prediction, Predictions, Scored};
use crate::matrix::top_k;
use crate::neighbours::Neighbours;
use crate::pool::Pool;

/// Points per task of a batch.
pub(crate) const CHUNK: usize = 64;

/// Everything a prediction needs.
///
/// A clone takes little time and memory: it shares what neither of them changes.
#[derive(Clone)]
pub struct Predictor {
    parts: PredictorParts,
    scratch: Arc<Pool<Scratch>>,
    integrity: Arc<Watched>,
    /// Corrections since it was written.
    learned: Vec<Arc<Correction>>,
}

/// The check of a model's files, which is given up with the last predictor that needs it.
struct Watched(Arc<Integrity>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Buffers of one thread.
struct Scratch {
    features: FeatureScratch,
    walk: WalkScratch,
    merger: Merger,
    completion: CompletionScratch,
}

impl Predictor {
    /// A predictor over these parts.
    ///
    /// # Errors
    /// [`crate::Error::InvalidModel`] if the parts do not fit each other.
    pub(crate) fn new(parts: PredictorParts) -> Result<Self> {
        Predictor::with_integrity(parts, Arc::default())
    }

    /// A predictor over parts whose files are still being checked.
    ///
    /// # Errors
    /// As [`Predictor::new`].
    pub(crate) fn with_integrity(parts: PredictorParts, integrity: Arc<Integrity>) -> Result<Self> {
        parts.check()?;
        Ok(Predictor {
            parts,
            scratch: Arc::default(),
            integrity: Arc::new(Watched(integrity)),
            learned: Vec::new(),
        })
    }

    /// Waits until all files of a loaded model have been checked, which goes on in the background after loading.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] naming a damaged file. Predictions fail with it, too, once it is known.
    pub fn check_files(&self) -> Result<()> {
        self.integrity.0.wait()
    }

    /// The best labels of a text, best first, ties to the lower id: `predict(text, 5)`.
    ///
    /// A text without a known word is answered from the biases alone, and the answer says so. What is re-ranked are the
    /// `ranker.n_candidates` best labels of each member, or `k` if that is more.
    ///
    /// # Errors
    /// As [`Predictor::check_query`]; [`crate::Error::CannotPredict`] if the model was trained on features, or holds a
    /// weight that is not finite.
    pub fn predict(&self, text: &str, query: impl Into<Query>) -> Result<Predictions<'_>> {
        let query = query.into();
        self.check_query(&query)?;
        self.with_scratch(|scratch| {
            let point = self.parts.featurizer.point(text, &mut scratch.features)?;
            let answers = self.answer(point.points(), &[0], &query, scratch)?;
            let ranking = answers.into_iter().next().unwrap_or_default();
            Ok(self.name((&point, 0), ranking, query.level))
        })
    }

    /// The best labels of every input, on the caller's thread pool.
    ///
    /// # Errors
    /// As [`Predictor::predict`], and if the inputs are not what the model was trained on.
    pub fn predict_batch<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        query: impl Into<Query>,
    ) -> Result<Vec<Predictions<'_>>> {
        let query = query.into();
        self.check_query(&query)?;
        let points = self.points(inputs)?;
        let rankings = self.rank_points(points.points(), &query)?;
        let rows = rankings.into_iter().enumerate();
        let named = rows.map(|(row, ranking)| self.name((&points, row), ranking, query.level));
        Ok(named.collect())
    }

    /// As [`Predictor::predict_batch`], without names and probabilities.
    pub(crate) fn rank<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        query: impl Into<Query>,
    ) -> Result<Vec<Vec<Scored>>> {
        self.rank_points(self.points(inputs)?.points(), &query.into())
    }

    /// Number of the texts of a data set that it was trained on; `None` if it cannot tell.
    ///
    /// A text that differs in surrounding spaces alone is the same. Very few others are taken for one: of n texts that it
    /// has not seen about n·N / 2³², where N is the number of training texts.
    pub fn n_seen(&self, data: &Dataset) -> Option<usize> {
        Some(self.parts.seen.as_ref()?.count(data.texts()?))
    }

    /// The fingerprint of its training texts, where there were any.
    pub(crate) fn seen(&self) -> Option<&SeenTexts> {
        self.parts.seen.as_deref()
    }

    /// Names of the labels it knows.
    pub fn labels(&self) -> &LabelSet {
        &self.parts.label_set
    }

    /// Number of labels that have training texts; those that come after them are known by their names, synonyms and
    /// descriptions alone.
    pub fn n_trained_labels(&self) -> usize {
        self.parts.plan.counts().n_labels
    }

    /// Training points of each label.
    pub fn label_counts(&self) -> &[u32] {
        &self.parts.label_counts
    }

    /// How it was trained: the configuration with every open value decided.
    pub fn plan(&self) -> &Plan {
        &self.parts.plan
    }

    /// Epochs, validations and the calibration of its training.
    pub fn history(&self) -> &[Event] {
        &self.parts.record.history
    }

    /// Counts and fingerprint of its training data.
    pub fn training_data(&self) -> &DataSummary {
        &self.parts.record.data
    }

    /// Whether it takes texts; otherwise it takes sparse features.
    pub fn takes_texts(&self) -> bool {
        self.parts.featurizer.words().is_some()
    }

    /// Number of members.
    pub fn n_members(&self) -> usize {
        self.parts.members.len()
    }

    /// Whether it can answer at a level.
    ///
    /// # Errors
    /// [`crate::Error::CannotPredict`] naming the part that the model was trained without.
    pub fn check_level(&self, level: Level) -> Result<()> {
        self.parts.members[0].check_level(level)
    }

    /// The probability that an answer of the top level with this score is right; it never decreases with the score.
    ///
    /// None if the model is not calibrated.
    pub fn probability(&self, score: f32) -> Option<f32> {
        let calibration = self.parts.calibration.as_ref()?;
        Some(calibration.probabilities.predict(score))
    }

    /// Whether answers of the top level have probabilities.
    pub fn is_calibrated(&self) -> bool {
        self.parts.calibration.is_some()
    }

    /// The points of inputs, for `insight`.
    pub(crate) fn points<'a>(&self, inputs: impl Into<Inputs<'a>>) -> Result<PointSet> {
        inputs.into().points(&self.parts.featurizer)
    }

    pub(crate) fn featurizer(&self) -> &Featurizer {
        &self.parts.featurizer
    }

    /// The members, at least one.
    pub(crate) fn members(&self) -> &[Member] {
        &self.parts.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut [Member] {
        // Buffers that others may share have the sizes of their members.
        self.scratch = Arc::default();
        let members: &mut Vec<Member> = Arc::make_mut(&mut self.parts.members);
        members
    }

    pub(crate) fn calibration(&self) -> Option<&EnsembleCalibration> {
        self.parts.calibration.as_ref()
    }

    /// Gives its scores other probabilities; the event says what they were fitted on.
    pub(crate) fn set_calibration(&mut self, calibration: EnsembleCalibration, event: Event) {
        self.parts.calibration = Some(calibration);
        self.parts.record.history.push(event);
    }

    pub(crate) fn labels_by_text(&self) -> Option<&LabelsByText> {
        self.parts.by_text.as_deref()
    }

    pub(crate) fn rejected(&self) -> Option<&Neighbours> {
        self.parts.rejected.as_ref()
    }

    pub(crate) fn retired(&self) -> &Retired {
        &self.parts.retired
    }

    pub(crate) fn record(&self) -> &TrainingRecord {
        &self.parts.record
    }

    /// The labels of a point with names and probabilities.
    fn name(
        &self,
        (points, row): (&PointSet, usize),
        ranking: Vec<Scored>,
        level: Level,
    ) -> Predictions<'_> {
        let has_probabilities = self.has_probabilities(level);
        let labels = ranking
            .into_iter()
            .map(|Scored { label, score }| Prediction {
                label: self.parts.label_set.name(label),
                id: label,
                score,
                probability: self.probability(score).filter(|_| has_probabilities),
            });
        let is_embedded = self.parts.featurizer.embedding_dim() > 0;
        Predictions {
            labels: labels.collect(),
            has_known_word: is_embedded || !points.is_blank(row),
        }
    }

    /// Drops labels below their thresholds, so that others take their places among the best.
    fn keep_relevant(&self, merged: &mut Vec<Scored>, query: &Query) {
        if query.threshold.is_none() && !query.rules.has_thresholds() {
            return;
        }
        let has_probabilities = self.has_probabilities(query.level);
        merged.retain(|scored| {
            let threshold = query.rules.threshold(scored.label).or(query.threshold);
            let probability = self.probability(scored.score).filter(|_| has_probabilities);
            threshold.is_none_or(|threshold| threshold <= probability.unwrap_or(scored.score))
        });
    }

    /// The best labels of every point, on the caller's thread pool.
    pub(crate) fn rank_points(
        &self,
        points: Points<'_>,
        query: &Query,
    ) -> Result<Vec<Vec<Scored>>> {
        let rows: Vec<u32> = (0..points.features.n_rows() as u32).collect();
        let chunks: Vec<Vec<_>> = rows
            .par_chunks(CHUNK)
            .map(|rows| self.with_scratch(|scratch| self.answer(points, rows, query, scratch)))
            .collect::<Result<_>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// The best labels of some points: candidates of every member with their final scores, merged.
    fn answer(
        &self,
        points: Points<'_>,
        rows: &[u32],
        query: &Query,
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<Scored>>> {
        let walk = self.walk(query)?;
        let (buffers, merger) = (&mut scratch.walk, &mut scratch.merger);
        walk.encode(points, rows, &mut buffers.encoded)?;
        let answer = |(place, &row): (usize, &u32)| {
            let knowledge = &walk.knowledge;
            let point = &knowledge.point(points, row as usize, &mut buffers.point);
            let mut merging = merger.start();
            for (member, encoded) in walk.members.iter().zip(&buffers.encoded) {
                let point = MemberPoint::new(member, point, encoded.get(place));
                walk.candidates(&point, &mut buffers.columns, &mut buffers.candidates)?;
                merging.add(buffers.candidates.scored());
            }
            let merged = merging.finish();
            self.complete(&walk, point, &mut scratch.completion, merged)?;
            self.keep_relevant(merged, query);
            Ok(best(merged, query))
        };
        rows.iter().enumerate().map(answer).collect()
    }

    /// The walk to the answers of a query.
    ///
    /// # Errors
    /// As [`Predictor::check_level`], and [`crate::Error::CannotPredict`] once a file is known to be damaged.
    pub(crate) fn walk<'a>(&'a self, query: &'a Query) -> Result<Walk<'a>> {
        let Query { k, level, .. } = *query;
        self.integrity.0.check()?;
        self.check_level(level)?;
        let (members, plan) = (&self.parts.members, &self.parts.plan);
        let walk = Walk::new(members, self.knowledge(), plan, level, k);
        Ok(walk.among(query.rules.allowed()))
    }

    /// Knowledge of labels that all members share.
    pub(crate) fn knowledge(&self) -> Knowledge<'_> {
        let calibration = self.parts.calibration.as_ref();
        Knowledge {
            neighbours: self.parts.neighbours.as_ref(),
            names: self.parts.names.as_deref(),
            frequencies: match calibration {
                Some(calibration) => &calibration.frequencies,
                None => &self.parts.label_counts[..self.n_trained_labels()],
            },
        }
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let new = || Scratch {
            features: FeatureScratch::default(),
            walk: WalkScratch::new(&self.parts.members[0].model),
            merger: Merger::default(),
            completion: CompletionScratch::default(),
        };
        self.scratch.with(new, work)
    }
}

/// The labels of merged candidates that a query asks for, best first, ties to the lower id.
pub(crate) fn best(merged: &mut Vec<Scored>, query: &Query) -> Vec<Scored> {
    top_k(merged, query.k);
    merged.clone()
}

#[cfg(test)]
mod tests;
