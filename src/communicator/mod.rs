//! The processes of one training: which labels and clusters each of them owns, and what they tell each other.
//!
//! Labels are cut into [`N_RANGES`] ranges, whatever the number of ranks. A rank owns consecutive ranges: their rows of
//! W_L with the state of the optimiser, and the edges of A that lead to them. Every sum that crosses ranges is taken
//! range by range in their order, so that any number of ranks gives the same bytes. A training in one process is
//! [`Alone`]: it owns all ranges and tells nobody.
//!
//! [`Ranks`] has two calls. Both are made by all ranks in the same order, and return when all have made them; there is
//! no error to return: where a rank is lost, the others are ended by what connects them.

mod counted;
mod exchange;
#[cfg(test)]
#[path = "tests/threads.rs"]
pub(crate) mod threads;

pub use counted::Counted;
pub(crate) use exchange::{
    gather, gather_all, gather_ranges, gather_to_first, is_told, sum_in_order,
};

use std::ops::Range;

use crate::events::POINTS_PER_EVENT;

/// Ranges that the labels are cut into. More even out the work; each holds a gradient of the embeddings.
pub(crate) const N_RANGES: usize = 16;

/// The most ranks: each owns a range of labels.
pub const MAX_RANKS: usize = N_RANGES;

/// One of the processes that train a model together.
pub trait Ranks: Sync {
    /// Its number, from 0. Rank 0 writes the model.
    fn rank(&self) -> usize;

    /// How many there are, at most [`MAX_RANKS`].
    fn n_ranks(&self) -> usize;

    /// Tells every rank the same; returns what each rank told, in their order.
    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;

    /// Tells each rank its own part; returns what each rank told this one.
    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>>;
}

/// The only process of a training.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn n_ranks(&self) -> usize {
        1
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        parts.iter().map(|part| part.to_vec()).collect()
    }
}

/// The labels of one range, as rows of W_L.
pub(crate) fn labels_of_range(n_labels: usize, range: usize) -> Range<usize> {
    n_labels * range / N_RANGES..n_labels * (range + 1) / N_RANGES
}

/// The range that holds a label.
pub(crate) fn range_of_label(label: u32, n_labels: usize) -> usize {
    ((label as usize + 1) * N_RANGES - 1) / n_labels
}

/// The part of `n` things in a row that a rank owns.
pub(crate) fn share(n: usize, rank: usize, n_ranks: usize) -> Range<usize> {
    n * rank / n_ranks..n * (rank + 1) / n_ranks
}

/// The ranges that this rank owns.
pub(crate) fn own_ranges(ranks: &dyn Ranks) -> Range<usize> {
    share(N_RANGES, ranks.rank(), ranks.n_ranks())
}

/// The points that this rank looks at, block by block, where they are worked on in chunks of so many.
///
/// A rank has whole chunks, so that chunks begin at the same points for any number of ranks. All ranks have equally many
/// blocks, of which the last ones may be empty: ranks can agree after each.
pub(crate) fn own_blocks(
    n_points: usize,
    chunk: usize,
    ranks: &dyn Ranks,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let n_chunks = n_points.div_ceil(chunk);
    let own = share(n_chunks, ranks.rank(), ranks.n_ranks());
    let own = own.start * chunk..(own.end * chunk).min(n_points);
    let per_block = POINTS_PER_EVENT / chunk * chunk;
    let n_blocks = (n_chunks.div_ceil(ranks.n_ranks()) * chunk).div_ceil(per_block);
    (0..n_blocks).map(move |block| {
        let start = (own.start + block * per_block).min(own.end);
        start..(start + per_block).min(own.end)
    })
}

/// Ranks share clusters from so many on. Models with fewer keep the bytes that they have always had, and a single process
/// that trains them pays nothing for ranges.
#[cfg(not(test))]
const MIN_SHARED_CLUSTERS: usize = 8192;
#[cfg(test)]
pub(crate) const MIN_SHARED_CLUSTERS: usize = 32;

/// Whether ranks share so many clusters, each scoring and updating its own.
pub(crate) fn shares_clusters(n_clusters: usize) -> bool {
    n_clusters >= MIN_SHARED_CLUSTERS
}

/// The ranges of clusters that this rank scores and updates: one of all clusters, unless they are shared.
pub(crate) fn own_clusters(n_clusters: usize, ranks: &dyn Ranks) -> Vec<Range<usize>> {
    if !shares_clusters(n_clusters) {
        return std::iter::once(0..n_clusters).collect();
    }
    // Cut as labels are.
    let ranges = own_ranges(ranks);
    ranges
        .map(|range| labels_of_range(n_clusters, range))
        .collect()
}

/// The labels that this rank owns, as rows of W_L.
pub(crate) fn own_labels(n_labels: usize, ranks: &dyn Ranks) -> Range<usize> {
    let ranges = own_ranges(ranks);
    labels_of_range(n_labels, ranges.start).start..labels_of_range(n_labels, ranges.end - 1).end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_ranks_are_all_points_in_whole_chunks() {
        for n_points in [0, 1, 63, 64, 65, 1025, 5000] {
            for n_ranks in [1, 2, 3, 16] {
                let blocks = threads::run(n_ranks, |ranks| {
                    own_blocks(n_points, 64, ranks).collect::<Vec<_>>()
                });
                assert!(blocks.iter().all(|own| own.len() == blocks[0].len()));
                let mut next = 0;
                for block in blocks
                    .into_iter()
                    .flatten()
                    .filter(|block| !block.is_empty())
                {
                    assert_eq!(block.start, next);
                    assert!(block.start.is_multiple_of(64) && block.len() <= POINTS_PER_EVENT);
                    next = block.end;
                }
                assert_eq!(next, n_points);
            }
        }
    }

    #[test]
    fn every_label_falls_into_the_range_whose_bounds_hold_it() {
        for n_labels in [1, 2, 15, 16, 17, 100, 1023] {
            for label in 0..n_labels {
                let range = range_of_label(label as u32, n_labels);
                let bounds = labels_of_range(n_labels, range);
                assert!(bounds.contains(&label), "{label} of {n_labels}");
            }
        }
    }

    #[test]
    fn every_label_has_one_owner() {
        for n_ranks in 1..=MAX_RANKS {
            let owned = threads::run(n_ranks, |ranks| own_labels(1001, ranks));
            assert_eq!((owned[0].start, owned[n_ranks - 1].end), (0, 1001));
            assert!(owned.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(owned.iter().all(|labels| !labels.is_empty()));
        }
    }
}
