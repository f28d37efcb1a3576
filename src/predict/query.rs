//! A question to a model: how many labels, which, above which threshold, from which part of the model.

use super::rules::{LabelRules, check_threshold};
use super::{Level, Predictor};
use crate::error::{Error, Result};

/// The labels that are wanted of each text.
///
/// A number alone asks for that many labels at the top level, without a threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Labels per text, at least 1.
    pub k: usize,
    /// Least probability of a label, or least score where answers have no probabilities; from 0 to 1.
    pub threshold: Option<f32>,
    /// The part of the model that answers.
    pub level: Level,
    /// The labels that may be answers, and thresholds of single labels.
    pub rules: LabelRules,
}

impl Default for Query {
    fn default() -> Self {
        Query {
            k: 10,
            threshold: None,
            level: Level::default(),
            rules: LabelRules::default(),
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

impl From<&Query> for Query {
    fn from(query: &Query) -> Self {
        query.clone()
    }
}

impl Predictor {
    /// Whether it can answer a query.
    ///
    /// # Errors
    /// [`Error::Query`] if a value of the query makes no sense, [`Error::CannotPredict`] naming the part that the model
    /// was trained without.
    pub fn check_query(&self, query: &Query) -> Result<()> {
        if query.k == 0 {
            return Err(Error::Query {
                name: "k",
                found: "0".into(),
                expected: "an integer of at least 1",
            });
        }
        if let Some(threshold) = query.threshold {
            check_threshold("threshold", threshold)?;
        }
        query.rules.check(self.labels().len())?;
        self.check_level(query.level)
    }

    /// Whether answers at this level have probabilities.
    pub(super) fn has_probabilities(&self, level: Level) -> bool {
        level == Level::Ensemble && self.is_calibrated()
    }
}
