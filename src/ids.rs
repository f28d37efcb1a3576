//! Identifiers: a label, its row in the model, a cluster; and labels with their scores.
//!
//! A bare `u32` never crosses a function border in the method; these newtypes do.

use std::ops::Deref;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// A label, as its column in Y and its position in the label set.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Pod,
    Zeroable,
    Serialize,
    Deserialize,
)]
#[repr(transparent)]
pub struct LabelId(pub u32);

/// A row of W_L. A model orders its rows by cluster; `Numbering` maps between rows and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct LabelRow(pub u32);

/// A cluster, as its row in W_C and in the adjacency A.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Pod,
    Zeroable,
    Serialize,
    Deserialize,
)]
#[repr(transparent)]
pub struct ClusterId(pub u32);

impl LabelId {
    /// The id as an index into per-label arrays.
    #[inline]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

impl LabelRow {
    /// The row as an index into per-row arrays.
    #[inline]
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

impl ClusterId {
    /// The id as an index into per-cluster arrays.
    #[inline]
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// A label and its score; higher is more relevant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The label.
    pub label: LabelId,
    /// Its score.
    pub score: f32,
}

/// One predicted label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction<'a> {
    /// The label's name.
    pub label: &'a str,
    /// The label's position in [`Predictor::labels`](crate::Predictor::labels).
    pub id: LabelId,
    /// Final score; comparable between texts, but not a probability.
    pub score: f32,
    /// The probability that the label is right; `None` if the model is not calibrated or answers below the top level.
    pub probability: Option<f32>,
}

/// The best labels of a point, best first: a slice of [`Prediction`] that knows how much its point says.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions<'a> {
    /// The labels.
    pub labels: Vec<Prediction<'a>>,
    /// Whether the model knows a word of the text, or a feature; without one, the labels are those of any such text.
    pub has_known_word: bool,
}

impl<'a> Deref for Predictions<'a> {
    type Target = [Prediction<'a>];

    fn deref(&self) -> &Self::Target {
        &self.labels
    }
}

impl<'a> IntoIterator for Predictions<'a> {
    type Item = Prediction<'a>;
    type IntoIter = std::vec::IntoIter<Prediction<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.labels.into_iter()
    }
}

impl<'p, 'a> IntoIterator for &'p Predictions<'a> {
    type Item = &'p Prediction<'a>;
    type IntoIter = std::slice::Iter<'p, Prediction<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.labels.iter()
    }
}

impl Prediction<'_> {
    /// The probability, or the score where there is none: the value that thresholds are compared with.
    pub fn relevance(&self) -> f32 {
        self.probability.unwrap_or(self.score)
    }
}
