//! Ranges of labels and of clusters, and the part of the work that a process does.

use std::ops::Range;

use super::Communicator;
use crate::events::POINTS_PER_EVENT;

/// Ranges that the labels are cut into. More even out the work; each holds a gradient of the embeddings.
pub(crate) const N_RANGES: usize = 16;

/// Lowest number of clusters that processes share. Models with fewer keep the bytes that they have always had, and a
/// single process that trains them pays nothing for ranges.
#[cfg(not(test))]
const MIN_SHARED_CLUSTERS: usize = 8192;
#[cfg(test)]
pub(crate) const MIN_SHARED_CLUSTERS: usize = 32;

/// Whether processes share this many clusters, each scoring and updating its own.
pub(crate) fn shares_clusters(n_clusters: usize) -> bool {
    n_clusters >= MIN_SHARED_CLUSTERS
}

/// A number of things in a row, such as the rows of W_L, cut into [`N_RANGES`] ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranges {
    n: usize,
    /// Ranges per thing.
    density: f64,
}

impl Ranges {
    /// The ranges of `n` things.
    pub(crate) fn of(n: usize) -> Self {
        let density = N_RANGES as f64 / n as f64;
        Ranges { n, density }
    }

    /// The bounds of a range.
    #[inline]
    pub(crate) fn get(self, range: usize) -> Range<usize> {
        part(self.n, range, N_RANGES)
    }

    /// The bounds of consecutive ranges.
    fn span(self, ranges: Range<usize>) -> Range<usize> {
        part(self.n, ranges.start, N_RANGES).start..part(self.n, ranges.end, N_RANGES).start
    }

    /// The range that holds the thing with this number.
    #[inline]
    pub(crate) fn holding(self, at: u32) -> usize {
        let (near, at) = ((f64::from(at) * self.density) as usize, at as usize);
        if self.n < N_RANGES {
            return ((at + 1) * N_RANGES - 1) / self.n;
        }
        // Paths to labels are sorted by it, so it is a product instead of a division, off by one at most.
        let bounds = self.get(near);
        near + usize::from(bounds.end <= at) - usize::from(at < bounds.start)
    }
}

/// The part with this number, of `n` things cut into `n_parts`.
#[inline]
pub(super) fn part(n: usize, at: usize, n_parts: usize) -> Range<usize> {
    n * at / n_parts..n * (at + 1) / n_parts
}

impl dyn Communicator + '_ {
    /// The part of `n` things that this process works on, where each is work of its own.
    pub(crate) fn own(&self, n: usize) -> Range<usize> {
        part(n, self.process(), self.n_processes())
    }

    /// The ranges that this process owns.
    pub(crate) fn own_ranges(&self) -> Range<usize> {
        self.own(N_RANGES)
    }

    /// The labels that this process owns, as rows of W_L.
    pub(crate) fn own_labels(&self, n_labels: usize) -> Range<usize> {
        Ranges::of(n_labels).span(self.own_ranges())
    }

    /// The ranges of clusters that this process scores and updates: one of all clusters, unless they are shared.
    pub(crate) fn own_clusters(&self, n_clusters: usize) -> Vec<Range<usize>> {
        if shares_clusters(n_clusters) {
            let ranges = Ranges::of(n_clusters);
            self.own_ranges().map(|range| ranges.get(range)).collect()
        } else {
            std::iter::once(0..n_clusters).collect()
        }
    }

    /// The part of `n` things that this process works on, block by block, where they are worked on in chunks.
    ///
    /// A process has whole chunks, so that chunks begin at the same things for any number of processes. All processes
    /// have equally many blocks, of which the last ones may be empty: processes can agree after each.
    pub(crate) fn own_blocks(
        &self,
        n: usize,
        chunk: usize,
    ) -> impl Iterator<Item = Range<usize>> + Clone + use<> {
        let n_chunks = n.div_ceil(chunk);
        let chunks = self.own(n_chunks);
        let own = chunks.start * chunk..(chunks.end * chunk).min(n);
        let per_block = POINTS_PER_EVENT / chunk * chunk;
        let n_blocks = (n_chunks.div_ceil(self.n_processes()) * chunk).div_ceil(per_block);
        (0..n_blocks).map(move |block| {
            let start = (own.start + block * per_block).min(own.end);
            start..(start + per_block).min(own.end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::{MAX_PROCESSES, threads};

    #[test]
    fn blocks_of_processes_are_all_points_in_whole_chunks() {
        for n_points in [0, 1, 63, 64, 65, 1025, 5000] {
            for n_processes in [1, 2, 3, 16] {
                let blocks = threads::run(n_processes, |communicator| {
                    communicator.own_blocks(n_points, 64).collect::<Vec<_>>()
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
        for n_labels in [1, 2, 15, 16, 17, 100, 1023, 49_999, 65_536] {
            for label in 0..n_labels {
                let ranges = Ranges::of(n_labels);
                let bounds = ranges.get(ranges.holding(label as u32));
                assert!(bounds.contains(&label), "{label} of {n_labels}");
            }
        }
    }

    #[test]
    fn every_label_has_one_owner() {
        for n_processes in 1..=MAX_PROCESSES {
            let owned = threads::run(n_processes, |communicator| communicator.own_labels(1001));
            assert_eq!((owned[0].start, owned[n_processes - 1].end), (0, 1001));
            assert!(owned.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(owned.iter().all(|labels| !labels.is_empty()));
        }
    }
}
