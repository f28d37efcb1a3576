//! Words of a text that the vocabulary does not have, as parts of words that outside vectors know.
//!
//! A word that is not known weighs as much as the rarest that is: the largest idf. The weights of a row's parts belong to the
//! row of its known words, which has length 1: they are divided by the length that both would have together. A word's weight is
//! divided among its parts.

use super::terms::TokenScratch;
use super::{Vectorizer, WordParts};
use crate::data::Texts;
use crate::matrix::CsrMatrix;

use super::vectorizer::{rows_of, term_frequency};

/// Buffers of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct UnseenScratch {
    tokens: TokenScratch,
    unknown: Vec<Box<str>>,
    parts: Vec<u32>,
}

/// The parts of the words of texts that are not in a vocabulary.
pub(super) struct UnseenWords<'a> {
    words: &'a Vectorizer,
    parts: &'a WordParts,
    largest_idf: f32,
}

impl<'a> UnseenWords<'a> {
    pub(super) fn new(words: &'a Vectorizer, parts: &'a WordParts) -> Self {
        UnseenWords {
            words,
            parts,
            largest_idf: words.idf().iter().copied().fold(1.0, f32::max),
        }
    }

    /// The rows of texts, whose known words are given. known: N×V, result: N×parts
    pub(super) fn rows(&self, texts: &Texts, known: &CsrMatrix) -> CsrMatrix {
        let [rows] = rows_of(
            texts,
            [self.parts.len()],
            |text_idx, text, scratch: &mut UnseenScratch, [row]| {
                self.row(text, known.row(text_idx), scratch, row);
            },
        );
        rows
    }

    /// Writes the row of one text.
    pub(super) fn row(
        &self,
        text: &str,
        known: (&[u32], &[f32]),
        scratch: &mut UnseenScratch,
        out: &mut Vec<(u32, f32)>,
    ) {
        out.clear();
        let UnseenScratch {
            tokens,
            unknown,
            parts,
        } = scratch;
        unknown.clear();
        self.words
            .for_each_unknown(text, tokens, |word| unknown.push(word.into()));
        unknown.sort_unstable();
        for run in unknown.chunk_by(|a, b| a == b) {
            self.parts.cut(&run[0], parts);
            let weight = term_frequency(run.len()) * self.largest_idf / parts.len() as f32;
            out.extend(parts.iter().map(|&part| (part, weight)));
        }
        if out.is_empty() {
            return;
        }
        out.sort_unstable_by_key(|&(part, _)| part);
        out.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                first.1 += later.1;
            }
            is_same
        });
        let square: f32 = out.iter().map(|(_, weight)| weight * weight).sum();
        let length = self.length(known);
        let scale = 1.0 / (length * length + square).sqrt();
        out.iter_mut().for_each(|(_, weight)| *weight *= scale);
    }

    /// The length of a row before it was divided by it: idf over weight of a word that occurs once, the largest of the quotients.
    fn length(&self, (columns, values): (&[u32], &[f32])) -> f32 {
        let idf = self.words.idf();
        let quotients = columns.iter().zip(values);
        quotients
            .map(|(&column, value)| idf[column as usize] / value)
            .fold(0.0, f32::max)
    }
}
