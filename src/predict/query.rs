//! A question to a model: how many labels, above which threshold, from which part of the model.

use super::{Level, Predictor};
use crate::error::{Error, Result};

/// The labels that are wanted of each text.
///
/// A number alone asks for that many labels at the top level, without a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query {
    /// Labels per text, at least 1.
    pub k: usize,
    /// Least probability of a label, or least score where answers have no probabilities; from 0 to 1.
    pub threshold: Option<f32>,
    /// The part of the model that answers.
    pub level: Level,
}

impl Default for Query {
    fn default() -> Self {
        Query {
            k: 10,
            threshold: None,
            level: Level::default(),
        }
    }
}

impl From<usize> for Query {
    fn from(k: usize) -> Self {
        Query {
            k,
            ..Query::default()
        }
    }
}

impl Predictor {
    /// Whether it can answer a query.
    ///
    /// # Errors
    /// [`Error::Query`] if a value of the query makes no sense, [`Error::CannotPredict`] naming the part that the model
    /// was trained without.
    pub fn check_query(&self, query: Query) -> Result<()> {
        if query.k == 0 {
            return Err(Error::Query {
                name: "k",
                found: "0".into(),
                expected: "an integer of at least 1",
            });
        }
        if let Some(threshold) = query.threshold
            && !(0.0..=1.0).contains(&threshold)
        {
            return Err(Error::Query {
                name: "threshold",
                found: threshold.to_string(),
                expected: "a number from 0 to 1",
            });
        }
        self.check_level(query.level)
    }

    /// Whether answers at this level have probabilities.
    pub(super) fn has_probabilities(&self, level: Level) -> bool {
        level == Level::Ensemble && self.is_calibrated()
    }
}
