//! The first half of fitting: the terms of each chunk of texts, counted per text.
//!
//! Chunks are cut by bytes of text, not by the number of threads, and each has its own table of terms, so they are
//! counted in parallel without locks.

use std::ops::Range;

use rayon::prelude::*;

use crate::data::Texts;
use crate::features::terms::{Terms, TokenScratch};
use crate::features::token_table::TokenTable;

/// The terms of one chunk of texts.
#[derive(Debug, Default)]
pub(super) struct ChunkCounts {
    /// The chunk's own terms; all fields below refer to them by their numbers here.
    pub(super) table: TokenTable,
    /// Number of texts of the chunk that contain the term.
    pub(super) document_counts: Vec<u32>,
    /// Number of times the term occurs in the chunk.
    pub(super) occurrences: Vec<u64>,
    /// For each text in turn: its terms and how often each occurs.
    pub(super) counts: Vec<(u32, u32)>,
    /// Where each text's part of `counts` ends.
    pub(super) text_ends: Vec<usize>,
}

impl ChunkCounts {
    /// Per text: its distinct terms and how often each occurs, in order of first occurrence.
    pub(super) fn texts(&self) -> impl ExactSizeIterator<Item = &[(u32, u32)]> {
        self.text_ends.iter().enumerate().map(|(text_idx, &end)| {
            let start = if text_idx == 0 {
                0
            } else {
                self.text_ends[text_idx - 1]
            };
            &self.counts[start..end]
        })
    }
}

/// Counts the terms of all texts, chunk by chunk.
pub(super) fn count_terms(texts: &Texts, terms: &Terms) -> Vec<ChunkCounts> {
    chunks(texts)
        .into_par_iter()
        .map(|chunk| count_chunk(texts, chunk, terms))
        .collect()
}

/// Cuts texts into chunks of about equal bytes; their number depends on the texts alone.
pub(super) fn chunks(texts: &Texts) -> Vec<Range<usize>> {
    let target = (texts.n_bytes() / MAX_CHUNKS).max(MIN_CHUNK_BYTES);
    let mut chunks = Vec::new();
    let (mut start, mut n_bytes) = (0, 0);
    for (text_idx, text) in texts.iter().enumerate() {
        // An empty text has a cost too.
        n_bytes += text.len() + 16;
        if n_bytes >= target {
            chunks.push(start..text_idx + 1);
            start = text_idx + 1;
            n_bytes = 0;
        }
    }
    if start < texts.len() {
        chunks.push(start..texts.len());
    }
    chunks
}

/// Enough to keep many threads busy, few enough that merging their words stays cheap.
const MAX_CHUNKS: usize = 64;
const MIN_CHUNK_BYTES: usize = 1 << 17;

fn count_chunk(texts: &Texts, chunk: Range<usize>, terms: &Terms) -> ChunkCounts {
    let mut counted = ChunkCounts::default();
    let mut scratch = TokenScratch::default();
    // Per term: one past its place in `counts` for the text it was last seen in. A place at or before the start of
    // the current text belongs to an earlier text.
    let mut last_places: Vec<usize> = Vec::new();
    for text_idx in chunk {
        let text_start = counted.counts.len();
        let (table, counts) = (&mut counted.table, &mut counted.counts);
        terms.for_each(texts.get(text_idx), &mut scratch, |term| {
            let term_idx = table.intern(term);
            if last_places.len() <= term_idx as usize {
                last_places.push(0);
            }
            let last_place = &mut last_places[term_idx as usize];
            if *last_place > text_start {
                counts[*last_place - 1].1 += 1;
            } else {
                counts.push((term_idx, 1));
                *last_place = counts.len();
            }
        });
        counted.text_ends.push(counted.counts.len());
    }
    counted.document_counts = vec![0; counted.table.len()];
    counted.occurrences = vec![0; counted.table.len()];
    for &(term_idx, count) in &counted.counts {
        counted.document_counts[term_idx as usize] += 1;
        counted.occurrences[term_idx as usize] += u64::from(count);
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeaturesConfig;

    #[test]
    fn chunks_cover_all_texts_in_order() {
        let long = "word ".repeat(MIN_CHUNK_BYTES / 7);
        let texts: Texts = ["", "a", &long, &long, "", &long].iter().collect();
        let cut = chunks(&texts);
        assert!(cut.len() > 1);
        assert_eq!(
            cut.into_iter().flatten().collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5]
        );
        assert!(chunks(&Texts::default()).is_empty());
    }

    #[test]
    fn terms_are_counted_per_text_and_over_texts() {
        let texts: Texts = ["b a b", "", "a"].iter().collect();
        let terms = Terms::new(&FeaturesConfig::default());
        let counted = count_chunk(&texts, 0..3, &terms);
        let per_text: Vec<_> = counted.texts().collect();
        assert_eq!(per_text, [&[(0, 2), (1, 1)][..], &[], &[(1, 1)]]);
        assert_eq!(counted.document_counts, [1, 2]);
        assert_eq!(counted.occurrences, [2, 2]);
    }
}
