//! Labels with what is said of them.

use crate::data::{LabelSet, Texts};
use crate::error::{Error, Result};

/// Labels with a text about each, whose lines are its names, synonyms and descriptions.
///
/// Invariant: as many texts as labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribedLabels {
    labels: LabelSet,
    texts: Texts,
}

impl DescribedLabels {
    /// Labels with their texts.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if there are not as many texts as labels.
    pub fn new(labels: LabelSet, texts: Texts) -> Result<Self> {
        if labels.len() == texts.len() {
            return Ok(DescribedLabels { labels, texts });
        }
        let (n_texts, n_labels) = (texts.len(), labels.len());
        let problem = format!("{n_texts} texts about {n_labels} labels");
        Err(Error::InvalidDataset(problem))
    }

    /// The names.
    pub fn labels(&self) -> &LabelSet {
        &self.labels
    }

    /// One text per label.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}
