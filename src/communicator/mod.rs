//! The processes of one training: which labels and clusters each of them owns, and what they tell each other.
//!
//! Labels are cut into [`N_RANGES`] ranges, whatever the number of processes. A process owns consecutive ranges: their rows of
//! W_L with the state of the optimiser, and the edges of A that lead to them. Every sum that crosses ranges is taken
//! range by range in their order, so that any number of processes gives the same bytes. A training in one process is
//! [`SingleProcess`]: it owns all ranges and tells nobody.
//!
//! [`Communicator`] has two calls. Both are made by all processes in the same order, and return when all have made them; there is
//! no error to return: where a process is lost, the others are ended by what connects them.

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

/// The most processes: each owns a range of labels.
pub const MAX_PROCESSES: usize = N_RANGES;

/// One of the processes that train a model together.
pub trait Communicator: Sync {
    /// Its number, from 0. Process 0 writes the model.
    fn process(&self) -> usize;

    /// How many there are, at most [`MAX_PROCESSES`].
    fn n_processes(&self) -> usize;

    /// Tells every process the same; returns what each process told, in their order.
    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;

    /// Tells each process its own part; returns what each process told this one.
    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>>;
}

/// The only process of a training.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SingleProcess;

impl Communicator for SingleProcess {
    fn process(&self) -> usize {
        0
    }

    fn n_processes(&self) -> usize {
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

/// The part of `n` things in a row that a process owns.
pub(crate) fn share(n: usize, process: usize, n_processes: usize) -> Range<usize> {
    n * process / n_processes..n * (process + 1) / n_processes
}

/// The ranges that this process owns.
pub(crate) fn own_ranges(communicator: &dyn Communicator) -> Range<usize> {
    share(N_RANGES, communicator.process(), communicator.n_processes())
}

/// The points that this process looks at, block by block, where they are worked on in chunks of so many.
///
/// A process has whole chunks, so that chunks begin at the same points for any number of processes. All processes have equally many
/// blocks, of which the last ones may be empty: processes can agree after each.
pub(crate) fn own_blocks(
    n_points: usize,
    chunk: usize,
    communicator: &dyn Communicator,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let n_chunks = n_points.div_ceil(chunk);
    let own = share(n_chunks, communicator.process(), communicator.n_processes());
    let own = own.start * chunk..(own.end * chunk).min(n_points);
    let per_block = POINTS_PER_EVENT / chunk * chunk;
    let n_blocks = (n_chunks.div_ceil(communicator.n_processes()) * chunk).div_ceil(per_block);
    (0..n_blocks).map(move |block| {
        let start = (own.start + block * per_block).min(own.end);
        start..(start + per_block).min(own.end)
    })
}

/// Processes share clusters from so many on. Models with fewer keep the bytes that they have always had, and a single process
/// that trains them pays nothing for ranges.
#[cfg(not(test))]
const MIN_SHARED_CLUSTERS: usize = 8192;
#[cfg(test)]
pub(crate) const MIN_SHARED_CLUSTERS: usize = 32;

/// Whether processes share so many clusters, each scoring and updating its own.
pub(crate) fn shares_clusters(n_clusters: usize) -> bool {
    n_clusters >= MIN_SHARED_CLUSTERS
}

/// The ranges of clusters that this process scores and updates: one of all clusters, unless they are shared.
pub(crate) fn own_clusters(
    n_clusters: usize,
    communicator: &dyn Communicator,
) -> Vec<Range<usize>> {
    if !shares_clusters(n_clusters) {
        return std::iter::once(0..n_clusters).collect();
    }
    // Cut as labels are.
    let ranges = own_ranges(communicator);
    ranges
        .map(|range| labels_of_range(n_clusters, range))
        .collect()
}

/// The labels that this process owns, as rows of W_L.
pub(crate) fn own_labels(n_labels: usize, communicator: &dyn Communicator) -> Range<usize> {
    let ranges = own_ranges(communicator);
    labels_of_range(n_labels, ranges.start).start..labels_of_range(n_labels, ranges.end - 1).end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_ranks_are_all_points_in_whole_chunks() {
        for n_points in [0, 1, 63, 64, 65, 1025, 5000] {
            for n_processes in [1, 2, 3, 16] {
                let blocks = threads::run(n_processes, |communicator| {
                    own_blocks(n_points, 64, communicator).collect::<Vec<_>>()
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
        for n_processes in 1..=MAX_PROCESSES {
            let owned = threads::run(n_processes, |communicator| own_labels(1001, communicator));
            assert_eq!((owned[0].start, owned[n_processes - 1].end), (0, 1001));
            assert!(owned.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(owned.iter().all(|labels| !labels.is_empty()));
        }
    }
}
