//! From a text to its labels: what the command line and other front ends call.
//!
//! A [`Predictor`] holds everything a prediction needs. It is `Send + Sync`; buffers are pooled, so sharing it
//! between threads costs nothing.

use std::sync::Mutex;

use rayon::prelude::*;

use crate::config::Plan;
use crate::data::{Dataset, LabelSet, Texts};
use crate::encoder::{Points, TrainableEncoder};
use crate::error::{Error, Result};
use crate::features::{TokenScratch, Vectorizer};
use crate::ids::Scored;
use crate::index::ShortlistOptions;
use crate::matrix::{CsrMatrix, Matrix};
use crate::model::{Model, RankScratch};

/// Points a task of a batch.
const CHUNK: usize = 64;

/// A trained encoder with the index and classifiers behind it.
pub struct Member {
    /// φ.
    pub encoder: Box<dyn TrainableEncoder>,
    /// Index and classifiers.
    pub model: Model,
}

/// Everything a prediction needs.
pub struct Predictor {
    vectorizer: Option<Vectorizer>,
    label_set: LabelSet,
    label_counts: Vec<u32>,
    member: Member,
    plan: Plan,
    scratch: Mutex<Vec<Scratch>>,
}

/// Buffers of one thread.
struct Scratch {
    rank: RankScratch,
    tokens: TokenScratch,
    words: Vec<(u32, f32)>,
}

impl Predictor {
    /// A predictor over these parts; without a vectorizer it takes features, not texts.
    ///
    /// `label_counts` says how many training points each label had.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if the parts do not fit each other.
    pub fn new(
        vectorizer: Option<Vectorizer>,
        (label_set, label_counts): (LabelSet, Vec<u32>),
        member: Member,
        plan: Plan,
    ) -> Result<Self> {
        let n_labels = member.model.classifiers.n_labels();
        if label_set.len() != n_labels || label_counts.len() != n_labels {
            let problem = format!(
                "{} label names and {} counts for {n_labels} classifiers",
                label_set.len(),
                label_counts.len()
            );
            return Err(Error::InvalidMatrix(problem));
        }
        Ok(Predictor {
            vectorizer,
            label_set,
            label_counts,
            member,
            plan,
            scratch: Mutex::new(Vec::new()),
        })
    }

    /// Names of the labels it knows.
    pub fn label_set(&self) -> &LabelSet {
        &self.label_set
    }

    /// Training points of each label.
    pub fn label_counts(&self) -> &[u32] {
        &self.label_counts
    }

    /// How it was trained.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What turns texts into features; none if it was trained on features.
    pub fn vectorizer(&self) -> Option<&Vectorizer> {
        self.vectorizer.as_ref()
    }

    /// Encoder, index and classifiers.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Encoder, index and classifiers, for whoever saves or changes them.
    pub fn member_mut(&mut self) -> &mut Member {
        &mut self.member
    }

    /// The `k` best labels of a text, best first, ties to the lower label.
    ///
    /// A text without a known word is answered from the biases alone.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the model was trained on features.
    pub fn predict(&self, text: &str, k: usize) -> Result<Vec<Scored>> {
        let vectorizer = self.vectorizer.as_ref().ok_or_else(needs_features)?;
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
        let mut embedding = Matrix::default();
        self.member.encoder.encode(
            Points {
                features: &features,
            },
            &[0],
            &mut embedding,
        );
        let ranked = self.member.model.rank(
            embedding.row(0),
            &self.shortlist_options(),
            k,
            &mut scratch.rank,
        );
        self.put_back(scratch);
        check_finite(embedding.row(0), &ranked)?;
        Ok(ranked)
    }

    /// The `k` best labels of every text, on the caller's thread pool.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn predict_texts(&self, texts: &Texts, k: usize) -> Result<Vec<Vec<Scored>>> {
        let vectorizer = self.vectorizer.as_ref().ok_or_else(needs_features)?;
        self.predict_features(&vectorizer.transform(texts), k)
    }

    /// The `k` best labels of every point of a data set.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the data has not what the model was trained on.
    pub fn predict_dataset(&self, data: &Dataset, k: usize) -> Result<Vec<Vec<Scored>>> {
        self.predict_features(&self.features(data)?, k)
    }

    /// The features of a data set, as the model wants them.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if the data has not what the model was trained on.
    pub fn features(&self, data: &Dataset) -> Result<CsrMatrix> {
        let n_features = self.plan.counts().n_features;
        match (&self.vectorizer, data.texts(), data.features()) {
            (Some(vectorizer), Some(texts), _) => Ok(vectorizer.transform(texts)),
            (None, _, Some(features)) if features.n_cols() <= n_features => {
                Ok(features.with_n_cols(n_features)?.with_unit_rows())
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

    /// The `k` best labels of every row of features, on the caller's thread pool.
    ///
    /// # Errors
    /// [`Error::Unpredictable`] if a weight that is not finite was met.
    pub fn predict_features(&self, features: &CsrMatrix, k: usize) -> Result<Vec<Vec<Scored>>> {
        let options = self.shortlist_options();
        let rows: Vec<u32> = (0..features.n_rows() as u32).collect();
        let chunks = rows.par_chunks(CHUNK).map(|rows| {
            let mut embeddings = Matrix::default();
            self.member
                .encoder
                .encode(Points { features }, rows, &mut embeddings);
            let mut scratch = self.take_scratch();
            let model = &self.member.model;
            let n_clusters = model.clusters.n_clusters();
            let mut probabilities = vec![0.0; rows.len() * n_clusters];
            model
                .clusters
                .probabilities(embeddings.values(), &mut probabilities);
            let rank = |row: usize| {
                let embedding = embeddings.row(row);
                let probabilities = &probabilities[row * n_clusters..][..n_clusters];
                let ranked =
                    model.rank_within(embedding, probabilities, &options, k, &mut scratch.rank);
                check_finite(embedding, &ranked)?;
                Ok(ranked)
            };
            let ranked = (0..rows.len()).map(rank).collect();
            self.put_back(scratch);
            ranked
        });
        let chunks: Vec<Vec<_>> = chunks.collect::<Result<_>>()?;
        Ok(chunks.into_iter().flatten().collect())
    }

    fn shortlist_options(&self) -> ShortlistOptions {
        ShortlistOptions {
            beam_size: self.plan.beam_size(),
            shortlist_size: self.plan.shortlist_size(),
            score_floor: 0.0,
        }
    }

    fn take_scratch(&self) -> Scratch {
        let idle = self
            .scratch
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .pop();
        idle.unwrap_or_else(|| Scratch {
            rank: RankScratch::new(&self.member.model),
            tokens: TokenScratch::default(),
            words: Vec::new(),
        })
    }

    fn put_back(&self, scratch: Scratch) {
        self.scratch
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .push(scratch);
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

fn needs_features() -> Error {
    Error::Unpredictable(
        "the model was trained on sparse features, not on texts: give it such features".into(),
    )
}
