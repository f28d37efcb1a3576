//! Labels whose names occur in a text.

use super::postings::{NeighbourScratch, Postings};
use crate::ids::LabelId;
use crate::matrix::CsrMatrix;

/// Names that are looked at.
const N_NAMES: usize = 50;

/// The labels by the words of their names.
///
/// Invariant: as many rows of words as labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Names {
    postings: Postings,
    /// The words of each label's name, L×V, rows of length 1; empty where it has none.
    words: CsrMatrix,
}

/// A label whose name shares words with a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NameMatch {
    /// The label.
    pub(crate) label: LabelId,
    /// The cosine of name and text.
    pub(crate) cosine: f32,
    /// The share of the name that the text contains, by squared weight.
    pub(crate) contained: f32,
}

impl Names {
    /// The names of all labels as rows of length 1, L×V.
    pub(crate) fn new(words: CsrMatrix) -> Self {
        Names {
            postings: Postings::new(&words, words.n_rows()),
            words,
        }
    }

    /// The same names, and those of more labels after them.
    pub(crate) fn with(&self, more: &CsrMatrix) -> Self {
        let mut words = self.words.clone();
        words.append(more);
        Names::new(words)
    }

    /// The words of each name, L×V.
    pub(crate) fn words(&self) -> &CsrMatrix {
        &self.words
    }

    /// The names nearest to a text, best first, ties to the lower label.
    pub(crate) fn matches(
        &self,
        bow: (&[u32], &[f32]),
        scratch: &mut NeighbourScratch,
        matches: &mut Vec<NameMatch>,
    ) {
        let found = self.postings.nearest(bow, N_NAMES, scratch);
        matches.clear();
        matches.extend(found.iter().map(|found| NameMatch {
            label: LabelId(found.row),
            cosine: found.cosine,
            contained: self.contained(found.row as usize, bow.0),
        }));
    }

    fn contained(&self, label: usize, text: &[u32]) -> f32 {
        let (words, weights) = self.words.row(label);
        let of_words = words.iter().zip(weights);
        of_words
            .filter(|(word, _)| text.binary_search(word).is_ok())
            .map(|(_, weight)| weight * weight)
            .sum()
    }
}
