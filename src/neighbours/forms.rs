//! Labels by their forms: names, synonyms and descriptions, of which a text may contain one and not the others.

use std::collections::BTreeMap;

use super::postings::{NeighbourScratch, Postings};
use crate::data::Texts;
use crate::error::{Error, Result};
use crate::features::Featurizer;
use crate::matrix::{CsrBuilder, CsrMatrix};

/// The forms of labels, which are counted from 0.
///
/// Invariant: `ends` never decreases and ends at the number of forms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forms {
    postings: Postings,
    /// The words of each form, F×V, rows of length 1; empty where it has none.
    words: CsrMatrix,
    /// Where the forms of each label end.
    ends: Vec<u32>,
}

/// How well the forms of a label match a text; of several forms the best value of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FormMatch {
    /// The cosine of form and text.
    pub(crate) cosine: f32,
    /// The share of the form that the text contains, by squared weight.
    pub(crate) contained: f32,
    /// The share of the text that the form contains, by squared weight.
    pub(crate) covered: f32,
    /// Words of the form of which the largest share is contained.
    pub(crate) n_words: f32,
}

impl Forms {
    /// The lines of texts about labels, a text per label.
    ///
    /// # Errors
    /// As [`Featurizer::words_of_texts`].
    pub(crate) fn of_texts(featurizer: &Featurizer, texts: &Texts) -> Result<Self> {
        let (mut lines, mut ends) = (Texts::default(), Vec::new());
        for text in texts.iter() {
            text.lines().for_each(|line| lines.push(line));
            ends.push(lines.len() as u32);
        }
        Forms::new(featurizer.words_of_texts(&lines)?.features, ends)
    }

    /// The forms of labels, F×V, with the end of each label's.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if they do not fit each other.
    pub(crate) fn new(words: CsrMatrix, ends: Vec<u32>) -> Result<Self> {
        let fits = ends.last().copied().unwrap_or(0) as usize == words.n_rows()
            && ends.windows(2).all(|pair| pair[0] <= pair[1]);
        if !fits {
            let problem = "the forms of its labels do not fit their ends";
            return Err(Error::InvalidModel(problem.into()));
        }
        Ok(Forms {
            postings: Postings::new(&words, words.n_rows()),
            words,
            ends,
        })
    }

    /// Number of labels.
    pub(crate) fn n_labels(&self) -> usize {
        self.ends.len()
    }

    /// The words of each form, F×V.
    pub(crate) fn words(&self) -> &CsrMatrix {
        &self.words
    }

    /// Where the forms of each label end.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The words of all forms of some labels together, rows of length 1.
    pub(crate) fn joined(&self, labels: impl Iterator<Item = usize>) -> CsrMatrix {
        let mut rows = CsrBuilder::default();
        for label in labels {
            let mut words: BTreeMap<u32, f32> = BTreeMap::new();
            for form in self.of(label) {
                let (columns, weights) = self.words.row(form);
                for (&column, &weight) in columns.iter().zip(weights) {
                    *words.entry(column).or_default() += weight;
                }
            }
            rows.push_row(words);
        }
        let rows = rows.finish(self.words.n_cols());
        rows.expect("words of a matrix").with_unit_rows()
    }

    /// Number of forms of a label.
    pub(crate) fn n_forms(&self, label: usize) -> usize {
        self.of(label).len()
    }

    /// The forms of some labels, which are counted from 0 in their order.
    pub(crate) fn select(&self, labels: impl Iterator<Item = usize>) -> Forms {
        let (mut rows, mut ends) = (CsrBuilder::default(), Vec::new());
        let mut n_forms = 0;
        for label in labels {
            for form in self.of(label) {
                let (words, weights) = self.words.row(form);
                rows.push_row(words.iter().copied().zip(weights.iter().copied()));
                n_forms += 1;
            }
            ends.push(n_forms);
        }
        let words = rows.finish(self.words.n_cols());
        Forms::new(words.expect("rows of a matrix"), ends).expect("ends were counted")
    }

    /// The same forms, and then those of more labels.
    pub(crate) fn with(&self, more: &Forms) -> Forms {
        let mut words = self.words.clone();
        words.append(&more.words);
        let n_forms = self.words.n_rows() as u32;
        let ends = self.ends.iter().copied();
        let ends = ends.chain(more.ends.iter().map(|end| n_forms + end));
        Forms::new(words, ends.collect()).expect("ends were counted")
    }

    /// Adds the labels with the `n_forms` forms nearest to a text, best first; a label once for each of its forms.
    pub(crate) fn nearest(
        &self,
        text: (&[u32], &[f32]),
        n_forms: usize,
        scratch: &mut NeighbourScratch,
        labels: &mut Vec<u32>,
    ) {
        let found = self.postings.nearest(text, n_forms, scratch);
        let label_of = |form: u32| self.ends.partition_point(|&end| end <= form) as u32;
        labels.extend(found.iter().map(|found| label_of(found.row)));
    }

    /// How well a label matches a text.
    pub(crate) fn matched(&self, label: usize, (text, values): (&[u32], &[f32])) -> FormMatch {
        let mut best = FormMatch::default();
        for form in self.of(label) {
            let (words, weights) = self.words.row(form);
            let (mut cosine, mut contained, mut covered) = (0.0, 0.0, 0.0);
            for (word, weight) in words.iter().zip(weights) {
                if let Ok(at) = text.binary_search(word) {
                    cosine += weight * values[at];
                    contained += weight * weight;
                    covered += values[at] * values[at];
                }
            }
            let is_longer = contained == best.contained && best.n_words < words.len() as f32;
            if best.contained < contained || is_longer {
                best.n_words = words.len() as f32;
            }
            best.cosine = best.cosine.max(cosine);
            best.contained = best.contained.max(contained);
            best.covered = best.covered.max(covered);
        }
        best
    }

    fn of(&self, label: usize) -> std::ops::Range<usize> {
        let start = label.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[label] as usize
    }
}
