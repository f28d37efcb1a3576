//! The door `explain`: a text, its answers with their reasons, and the training points near it.

use serde::Serialize;

use super::browse::known_words;
use super::explain::{AnswerExplanation, explain, neighbours};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::predict::Predictor;

/// Nearest training points.
const N_NEIGHBOURS: usize = 5;

/// Why a text gets its labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The text.
    pub text: String,
    /// The words of the text that the model knows, with their tf-idf weights, the heaviest first.
    pub words: Vec<(String, f32)>,
    /// The labels, best first.
    pub answers: Vec<AnswerExplanation>,
    /// Training points with similar words, the nearest first; none if the model does not keep them.
    pub neighbours: Vec<NearPoint>,
}

/// A training point with similar words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NearPoint {
    /// Its number in the training data.
    pub point: usize,
    /// Cosine of the words.
    pub similarity: f32,
    /// Its text, once it is known.
    pub text: Option<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
}

impl Predictor {
    /// The `k` best labels of a text, each with its explanation.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if the model was trained on features, which have no words to explain with, or if a
    /// weight that is not finite was met.
    pub fn explain(&self, text: &str, k: usize) -> Result<Explanation> {
        if !self.takes_texts() {
            return Err(Error::CannotPredict(
                "the model was trained on features, not on texts: there are no words to explain with"
                    .into(),
            ));
        }
        self.check_query(&k.into())?;
        let points = self.points(&[text])?;
        let near = neighbours(self, &points, N_NEIGHBOURS)?;
        let names = |near: &super::explain::Neighbour| {
            let labels = near.labels.iter();
            let names = labels.map(|&label| self.labels().name(label).to_owned());
            names.collect()
        };
        Ok(Explanation {
            text: text.to_owned(),
            words: known_words(self, &points),
            answers: explain(self, &points, k)?,
            neighbours: near
                .iter()
                .map(|near| NearPoint {
                    point: near.point,
                    similarity: near.similarity,
                    text: None,
                    labels: names(near),
                })
                .collect(),
        })
    }
}

impl Explanation {
    /// Adds the texts of the training points, which the model does not keep.
    pub fn add_texts(&mut self, train: &Dataset) {
        let texts = train.texts();
        for near in &mut self.neighbours {
            let texts = texts.filter(|texts| near.point < texts.len());
            near.text = texts.map(|texts| texts.get(near.point).to_owned());
        }
    }
}
