//! From a text to its labels: what the command line and other front ends call.
//!
//! A [`Predictor`] holds everything a prediction needs. It is `Send + Sync`; buffers are pooled, so sharing it
//! between threads costs nothing. Each [`Member`] lists its best candidates by p and re-ranks them; the score of a
//! label is the mean over the members, and what calibration learnt turns it into a probability.

mod member;
mod stage;

pub use member::Member;
pub use stage::Stage;

pub(crate) use member::{MemberScratch, Scoring, Search};

use std::sync::Mutex;

use rayon::prelude::*;

use crate::calibration::Isotonic;
use crate::config::Plan;
use crate::data::{Dataset, LabelSet, Texts};
use crate::encoder::{PointSet, Points};
use crate::ensemble::Merger;
use crate::error::{Error, Result};
use crate::features::{TokenRows, TokenScratch, Vectorizer, WordPieces};
use crate::ids::Scored;
use crate::index::ShortlistOptions;
use crate::matrix::{CsrMatrix, top_k};
use crate::train::Stage1Model;

/// Points a task of a batch.
pub(crate) const CHUNK: usize = 64;

/// What a predictor consists of.
pub struct PredictorParts {
    /// What turns texts into features; none for a model of features.
    pub vectorizer: Option<Vectorizer>,
    /// What turns texts into the tokens of a transformer; none if no encoder reads them.
    pub pieces: Option<WordPieces>,
    /// Names of the labels.
    pub label_set: LabelSet,
    /// How many points of the data each label has.
    pub label_counts: Vec<u32>,
    /// At least one.
    pub members: Vec<Member>,
    /// What calibration learnt of the members together.
    pub calibration: Option<Calibration>,
    /// How it was trained.
    pub plan: Plan,
}

/// What calibration learns besides the members' own trees.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// f: points of each label that the members were trained on.
    pub frequencies: Vec<u32>,
    /// From final scores to probabilities.
    pub probabilities: Isotonic,
}

/// Everything a prediction needs.
pub struct Predictor {
    parts: PredictorParts,
    stage: Stage,
    scratch: Mutex<Vec<Scratch>>,
}

/// Buffers of one thread.
struct Scratch {
    member: MemberScratch,
    tokens: TokenScratch,
    words: Vec<(u32, f32)>,
    merger: Merger,
}

impl Predictor {
    /// A predictor over these parts; without a vectorizer it takes features, not texts.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if the parts do not fit each other.
    pub fn new(parts: PredictorParts) -> Result<Self> {
        check_parts(&parts)?;
        Ok(Predictor {
            parts,
            stage: Stage::default(),
            scratch: Mutex::new(Vec::new()),
        })
    }

    /// The parts, given up.
    pub fn into_parts(self) -> PredictorParts {
        self.parts
    }

    /// The same predictor, answering as a part of it would.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the model has no such part.
    pub fn at_stage(mut self, stage: Stage) -> Result<Self> {
        let first = &mut self.parts.members[0];
        let missing = match stage {
            Stage::Stage1 => match first.stage1.whole.take() {
                None => "train.keep_stage1",
                Some(Stage1Model { encoder, model }) => {
                    (first.encoder, first.model) = (encoder, model);
                    // Its answers are p of what now stands in the place of stage 2.
                    self.stage = Stage::Stage2;
                    return Ok(self);
                }
            },
            Stage::Ranker if first.ranker.is_none() => "ranker",
            Stage::Calibrated if first.calibrator.is_none() => "calibration",
            _ => {
                self.stage = stage;
                return Ok(self);
            }
        };
        Err(Error::Unpredictable(format!(
            "stage {stage}: the model was trained without {missing}"
        )))
    }

    /// Names of the labels it knows.
    pub fn label_set(&self) -> &LabelSet {
        &self.parts.label_set
    }

    /// Training points of each label.
    pub fn label_counts(&self) -> &[u32] {
        &self.parts.label_counts
    }

    /// How it was trained.
    pub fn plan(&self) -> &Plan {
        &self.parts.plan
    }

    /// What turns texts into features; none if it was trained on features.
    pub fn vectorizer(&self) -> Option<&Vectorizer> {
        self.parts.vectorizer.as_ref()
    }

    /// What turns texts into the tokens of a transformer; none if no encoder reads them.
    pub fn pieces(&self) -> Option<&WordPieces> {
        self.parts.pieces.as_ref()
    }

    /// The members, at least one.
    pub fn members(&self) -> &[Member] {
        &self.parts.members
    }

    /// The members, for whoever changes them.
    pub fn members_mut(&mut self) -> &mut [Member] {
        &mut self.parts.members
    }

    /// What calibration learnt of the members together; none if there was no calibration.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.parts.calibration.as_ref()
    }

    /// The probability that an answer with this score is right; it never decreases with the score.
    ///
    /// None if the model is not calibrated, or answers as a part of it only.
    pub fn probability(&self, score: f32) -> Option<f32> {
        let calibration = self.parts.calibration.as_ref();
        let calibration = calibration.filter(|_| self.stage == Stage::Ensemble)?;
        Some(calibration.probabilities.predict(score))
    }

    /// The `k` best labels of a text, best first, ties to the lower label.
    ///
    /// A text without a known word is answered from the biases alone. What is re-ranked are the
    /// `ranker.n_candidates` best labels of each member, or `k` if that is more.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the model was trained on features.
    pub fn predict(&self, text: &str, k: usize) -> Result<Vec<Scored>> {
        let vectorizer = self.vectorizer().ok_or_else(needs_features)?;
        let mut scratch = self.take_scratch();
        let mut words = std::mem::take(&mut scratch.words);
        vectorizer.transform_one(text, &mut scratch.tokens, &mut words);
        let (columns, values) = words.iter().copied().unzip();
        let features = CsrMatrix::new(
            vec![0, words.len()],
            columns,
            values,
            vectorizer.n_columns(),
        )?;
        scratch.words = words;
        let pieces = self.parts.pieces.as_ref();
        let tokens = pieces.map(|pieces| pieces.ids(text)).transpose()?;
        let tokens: Option<TokenRows> = tokens.map(|ids| [ids].into_iter().collect());
        let points = Points {
            tokens: tokens.as_ref(),
            ..Points::of_features(&features)
        };
        let answers = self.answer(points, &[0], k, &mut scratch)?;
        self.put_back(scratch);
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// The `k` best labels of every text, on the caller's thread pool.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn predict_texts(&self, texts: &Texts, k: usize) -> Result<Vec<Vec<Scored>>> {
        self.predict_points(self.points_of_texts(texts)?.points(), k)
    }

    /// The `k` best labels of every point of a data set.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the data has not what the model was trained on.
    pub fn predict_dataset(&self, data: &Dataset, k: usize) -> Result<Vec<Vec<Scored>>> {
        self.predict_points(self.points(data)?.points(), k)
    }

    /// The points of a data set, as the model wants them.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the data has not what the model was trained on.
    pub fn points(&self, data: &Dataset) -> Result<PointSet> {
        let n_features = self.plan().counts().n_features;
        match (&self.parts.vectorizer, data.texts(), data.features()) {
            (Some(_), Some(texts), _) => self.points_of_texts(texts),
            (None, _, Some(features)) if features.n_cols() <= n_features => {
                let features = features.with_n_cols(n_features)?;
                Ok(PointSet::of_features(features.with_unit_rows()))
            }
            (None, _, Some(features)) => Err(Error::Unpredictable(format!(
                "the data has {} feature columns, the model was trained on {n_features}",
                features.n_cols()
            ))),
            (Some(_), None, _) => Err(Error::Unpredictable(
                "the model was trained on texts, the data has none".into(),
            )),
            (None, _, None) => Err(needs_features()),
        }
    }

    /// Texts as points.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the model was trained on features.
    pub fn points_of_texts(&self, texts: &Texts) -> Result<PointSet> {
        let vectorizer = self.vectorizer().ok_or_else(needs_features)?;
        let pieces = self.parts.pieces.as_ref();
        Ok(PointSet {
            tokens: pieces.map(|pieces| pieces.rows(texts)).transpose()?,
            ..PointSet::of_features(vectorizer.transform(texts))
        })
    }

    /// The `k` best labels of every point, on the caller's thread pool.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if a weight that is not finite was met.
    pub fn predict_points(&self, points: Points<'_>, k: usize) -> Result<Vec<Vec<Scored>>> {
        let rows: Vec<u32> = (0..points.features.n_rows() as u32).collect();
        let chunks = rows.par_chunks(CHUNK).map(|rows| {
            let mut scratch = self.take_scratch();
            let answers = self.answer(points, rows, k, &mut scratch)?;
            self.put_back(scratch);
            Ok(answers)
        });
        let chunks: Vec<Vec<_>> = chunks.collect::<Result<_>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    /// Every member's candidates, re-ranked and merged.
    fn answer(
        &self,
        points: Points<'_>,
        rows: &[u32],
        k: usize,
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<Scored>>> {
        let members = match self.stage {
            Stage::Ensemble => &self.parts.members[..],
            _ => &self.parts.members[..1],
        };
        let reranks = self.reranks(members);
        let search = search(self.plan(), k, reranks);
        let calibration = self.parts.calibration.as_ref();
        let scoring = Scoring {
            stage: self.stage,
            frequencies: calibration.map_or(&self.parts.label_counts, |c| &c.frequencies),
        };
        let mut lists = Vec::with_capacity(members.len());
        for member in members {
            let buffers = &mut scratch.member;
            let mut of_member = member.candidates(points, rows, &search, buffers)?;
            if reranks {
                for (position, (&row, listed)) in rows.iter().zip(&mut of_member).enumerate() {
                    let point = (points.features.row(row as usize), position);
                    member.rescore(point, &scoring, listed, buffers)?;
                }
            }
            lists.push(of_member);
        }
        if let [_] = members {
            let mut answers = lists.remove(0);
            answers.iter_mut().for_each(|listed| top_k(listed, k));
            return Ok(answers);
        }
        let mut of_row: Vec<&[Scored]> = Vec::with_capacity(members.len());
        let merge = |position: usize| {
            of_row.clear();
            of_row.extend(lists.iter().map(|of_member| &of_member[position][..]));
            let mut merged = Vec::new();
            scratch.merger.merge(&of_row, k, &mut merged);
            merged
        };
        Ok((0..rows.len()).map(merge).collect())
    }

    /// Whether the order by p may change.
    fn reranks(&self, members: &[Member]) -> bool {
        let has_more = |member: &Member| member.ranker.is_some() || member.calibrator.is_some();
        self.stage != Stage::Stage2 && (1 < members.len() || members.iter().any(has_more))
    }

    fn take_scratch(&self) -> Scratch {
        let idle = self
            .scratch
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .pop();
        idle.unwrap_or_else(|| Scratch {
            member: MemberScratch::new(&self.parts.members[0].model),
            tokens: TokenScratch::default(),
            words: Vec::new(),
            merger: Merger::default(),
        })
    }

    fn put_back(&self, scratch: Scratch) {
        self.scratch
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .push(scratch);
    }
}

/// How the `k` best labels are searched for: more of them where they are re-ranked.
pub(crate) fn search(plan: &Plan, k: usize, reranks: bool) -> Search {
    let n_candidates = match reranks {
        true => plan.config().ranker.n_candidates.max(k),
        false => k,
    };
    Search {
        options: ShortlistOptions {
            beam_size: plan.beam_size(),
            shortlist_size: plan.shortlist_size(),
            score_floor: 0.0,
        },
        n_candidates: n_candidates.min(plan.counts().n_labels),
    }
}

fn check_parts(parts: &PredictorParts) -> Result<()> {
    let invalid = |problem: String| Err(Error::InvalidMatrix(problem));
    let counts = parts.plan.counts();
    let n_labels = parts.label_set.len();
    if parts.members.is_empty() {
        return invalid("a predictor without members".into());
    }
    let frequencies = parts.calibration.as_ref().map(|c| c.frequencies.len());
    let label_counts = parts.label_counts.len();
    for n_counts in [
        counts.n_labels,
        label_counts,
        frequencies.unwrap_or(n_labels),
    ] {
        if n_counts != n_labels {
            return invalid(format!("{n_labels} label names and {n_counts} counts"));
        }
    }
    for member in &parts.members {
        let n_classifiers = member.model.classifiers.n_labels();
        if n_classifiers != n_labels {
            return invalid(format!(
                "{n_labels} label names for {n_classifiers} classifiers"
            ));
        }
        let Some(ranker) = &member.ranker else {
            continue;
        };
        let dim = member.encoder.dim();
        let fits = ranker.n_labels() == n_labels
            && ranker.n_words() == counts.n_features
            && [0, dim].contains(&ranker.n_dense());
        if !fits {
            return invalid(format!(
                "a ranker of {} labels, {} words and {} dimensions for {n_labels}, {} and {dim}",
                ranker.n_labels(),
                ranker.n_words(),
                ranker.n_dense(),
                counts.n_features
            ));
        }
    }
    Ok(())
}

fn needs_features() -> Error {
    Error::Unpredictable(
        "the model was trained on sparse features, not on texts: give it such features".into(),
    )
}
