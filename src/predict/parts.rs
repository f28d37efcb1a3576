//! The parts of a predictor, and how they must fit together.

use std::sync::Arc;

use super::retired::Retired;
use crate::calibration::Isotonic;
use crate::candidates::{LabelsByText, Member};
use crate::config::{DataCounts, Plan};
use crate::data::{DataSummary, LabelSet, SeenTexts};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::features::Featurizer;
use crate::neighbours::{Names, Neighbours};

/// Everything a predictor consists of.
///
/// Clones share what is large.
#[derive(Clone)]
pub(crate) struct PredictorParts {
    pub(crate) featurizer: Arc<Featurizer>,
    pub(crate) label_set: Arc<LabelSet>,
    /// Points of each label in the training data, and added since.
    pub(crate) label_counts: Vec<u32>,
    /// At least one.
    pub(crate) members: Arc<Vec<Member>>,
    pub(crate) calibration: Option<EnsembleCalibration>,
    /// The training points by their words.
    pub(crate) neighbours: Option<Neighbours>,
    /// The labels by the words of their names.
    pub(crate) names: Option<Arc<Names>>,
    /// The training texts, where there were any.
    pub(crate) seen: Option<Arc<SeenTexts>>,
    /// Labels known by their texts alone, which come after those of the members.
    pub(crate) by_text: Option<Arc<LabelsByText>>,
    /// Labels that are answers no more.
    pub(crate) retired: Retired,
    /// Texts of which labels were rejected, with those labels.
    pub(crate) rejected: Option<Neighbours>,
    pub(crate) plan: Plan,
    pub(crate) record: TrainingRecord,
}

/// The record of a training in its model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TrainingRecord {
    /// The training data.
    pub(crate) data: DataSummary,
    /// Epochs, validations, adjacencies and the calibration.
    pub(crate) history: Vec<Event>,
}

/// The part of calibration that all members share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EnsembleCalibration {
    /// f: points of each label that the members were trained on.
    pub(crate) frequencies: Vec<u32>,
    /// From final scores to probabilities.
    pub(crate) probabilities: Isotonic,
}

impl PredictorParts {
    /// Checks that the parts fit each other.
    ///
    /// # Errors
    /// [`Error::InvalidModel`].
    pub(super) fn check(&self) -> Result<()> {
        let invalid = |problem: String| Err(Error::InvalidModel(problem));
        let counts = self.plan.counts();
        let n_labels = counts.n_labels;
        let n_by_text = self.by_text.as_ref().map_or(0, |by| by.forms.n_labels());
        let n_all = n_labels + n_by_text;
        if self.members.is_empty() {
            return invalid("it has no members".into());
        }
        let n_frequencies = self.calibration.as_ref().map(|c| c.frequencies.len());
        for (n_names, n_counts) in [
            (self.label_set.len(), n_all),
            (self.label_set.len(), self.label_counts.len()),
            (n_labels, n_frequencies.unwrap_or(n_labels)),
        ] {
            if n_counts != n_names {
                return invalid(format!("{n_names} label names and {n_counts} counts"));
            }
        }
        if self.by_text.is_some() && self.names.is_none() {
            return invalid("labels by their texts, but no names".into());
        }
        let n_pairs = self.featurizer.n_pairs();
        if n_pairs != counts.n_pairs {
            let expected = counts.n_pairs;
            return invalid(format!("{n_pairs} pairs of words, expected {expected}"));
        }
        let n_parts = self.featurizer.n_parts();
        if n_parts != counts.n_parts {
            let expected = counts.n_parts;
            return invalid(format!("{n_parts} parts of words, expected {expected}"));
        }
        let neighbours = self.neighbours.as_ref();
        let neighbours = neighbours.map(Neighbours::shape);
        let names = self.names.as_ref().map(|names| names.words());
        let names = names.map(|words| (words.n_cols(), words.n_rows()));
        let rejected = self.rejected.as_ref();
        let rejected = rejected.map(Neighbours::shape);
        let forms = self.by_text.as_ref().map(|by| by.forms.words().n_cols());
        let forms = forms.map(|n_words| (n_words, n_labels));
        for (n_words, n_of_labels) in [neighbours, rejected, names, forms].into_iter().flatten() {
            let fits = n_words == counts.n_features && (n_labels..=n_all).contains(&n_of_labels);
            if !fits {
                return invalid(format!(
                    "neighbours or names with {n_words} words and {n_of_labels} labels for {} and {n_all}",
                    counts.n_features
                ));
            }
        }
        let n_names = self.names.as_ref().map(|names| names.words().n_rows());
        if n_names.is_some_and(|n_names| n_names != n_labels) {
            return invalid(format!(
                "the names of other than its {n_labels} trained labels"
            ));
        }
        let mut members = self.members.iter();
        members.try_for_each(|member| check_member(member, counts))
    }
}

fn check_member(member: &Member, counts: DataCounts) -> Result<()> {
    let n_labels = counts.n_labels;
    let n_classifiers = member.model.classifiers.n_labels();
    if n_classifiers != n_labels {
        return Err(Error::InvalidModel(format!(
            "{n_labels} label names for {n_classifiers} classifiers"
        )));
    }
    let Some(ranker) = &member.ranker else {
        return Ok(());
    };
    let dim = member.encoder.dim();
    let n_terms = counts.n_features + counts.n_pairs;
    let fits = ranker.n_labels() == n_labels
        && ranker.n_words() == n_terms
        && [0, dim].contains(&ranker.n_dense());
    if fits {
        return Ok(());
    }
    Err(Error::InvalidModel(format!(
        "a ranker of {} labels, {} words and {} dimensions for {n_labels}, {n_terms} and {dim}",
        ranker.n_labels(),
        ranker.n_words(),
        ranker.n_dense(),
    )))
}
