//! Part 1: every point's clusters and shortlist, its paths sorted into ranges of labels.

use std::ops::Range;

use rayon::prelude::*;

use super::together::OwnScores;
use super::{Batch, BatchCounts, Head, SHARD};
use crate::communicator::{N_RANGES, gather, range_of_label, shares_clusters};
use crate::index::{Adjacency, ClusterClassifiers, Path, Selection, ShortlistOptions, Shortlister};

/// A shortlisted label of a point: 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    pub(super) label: u32,
    /// The edge taken, as its position in the adjacency.
    pub(super) edge: u32,
    /// ŷ.
    pub(super) score: f32,
    /// The point, as its position in the batch.
    pub(super) point: u16,
    slot_and_sign: u16,
}

const POSITIVE: u16 = 1 << 15;

impl Pair {
    fn new(point: usize, path: &Path) -> Self {
        debug_assert!(path.slot < POSITIVE);
        let sign = if path.is_positive { POSITIVE } else { 0 };
        let slot_and_sign = path.slot | sign;
        Pair {
            label: path.row.0,
            edge: path.edge,
            score: path.score,
            point: point as u16,
            slot_and_sign,
        }
    }

    pub(super) fn slot(self) -> usize {
        (self.slot_and_sign & !POSITIVE) as usize
    }

    /// The point in the upper half, the slot in the lower.
    fn point_and_slot(&self) -> u32 {
        u32::from(self.point) << 16 | self.slot() as u32
    }

    pub(super) fn is_positive(self) -> bool {
        self.slot_and_sign & POSITIVE != 0
    }
}

/// What one shard of points found.
#[derive(Default)]
pub(super) struct ShardBuffers {
    /// softmax of the cluster logits, points×C; not used where processes share the clusters.
    pub(super) probabilities: Vec<f32>,
    /// The same of the clusters that the process owns, where processes share them.
    pub(super) own_scores: OwnScores,
    /// Shortlisted labels, by range.
    pub(super) pairs: Vec<Vec<Pair>>,
    /// Clusters searched, point after point.
    pub(super) selected: Vec<Selection>,
    /// Where each point's clusters start; one more entry than points.
    pub(super) selected_starts: Vec<usize>,
    /// Positives that the cut at K dropped, with their point.
    pub(super) dropped: Vec<Pair>,
    /// Clusters through which a gradient flows; filled by part 3.
    pub(super) touched_clusters: Vec<u32>,
    /// Positives that were reached.
    n_positives: usize,
}

/// What all shards search with.
#[derive(Clone, Copy)]
struct SearchInputs<'a> {
    adjacency: &'a Adjacency,
    batch: Batch<'a>,
    options: &'a ShortlistOptions,
}

/// What the search of a batch found, on all processes together.
pub(super) struct Found {
    pub(super) counts: BatchCounts,
    /// Point and slot of positives that the cut at K dropped.
    pub(super) dropped: Vec<(usize, usize)>,
}

impl Head<'_> {
    pub(super) fn search(
        &mut self,
        clusters: &ClusterClassifiers,
        adjacency: &Adjacency,
        batch: Batch<'_>,
        options: &ShortlistOptions,
    ) -> Found {
        let n_points = batch.rows.len();
        let most_positives = (0..n_points)
            .map(|point| batch.positives(point).len())
            .max()
            .unwrap_or(0);
        self.n_slots = options.beam_size + most_positives;
        self.shards
            .resize_with(n_points.div_ceil(SHARD), ShardBuffers::default);
        let is_shared = shares_clusters(clusters.n_clusters());
        if is_shared {
            self.select_together(clusters, batch, options.beam_size);
        }
        let n_labels = self.n_labels;
        let searchers = &self.searchers;
        let inputs = SearchInputs {
            adjacency,
            batch,
            options,
        };
        self.shards
            .par_iter_mut()
            .enumerate()
            .for_each(|(shard_idx, shard)| {
                let points = shard_idx * SHARD..((shard_idx + 1) * SHARD).min(n_points);
                let new = || Shortlister::new(n_labels);
                searchers.with(new, |searcher| {
                    if is_shared {
                        shard.search_selected(inputs, points, searcher);
                    } else {
                        shard.search(clusters, inputs, points, searcher);
                    }
                });
            });
        self.cut(n_points, options);
        let n_positives = self.shards.iter().map(|shard| shard.n_positives).sum();
        let pairs = self.shards.iter().flat_map(|shard| &shard.pairs);
        let n_pairs: usize = pairs.map(Vec::len).sum();
        let mut own: Vec<u64> = [n_positives, n_pairs].map(|n: usize| n as u64).to_vec();
        for shard in &mut self.shards {
            shard.dropped.sort_unstable_by_key(|p| (p.point, p.label));
            let marks = shard.dropped.iter().map(|p| u64::from(p.point_and_slot()));
            own.extend(marks);
        }
        let mut found = Found {
            counts: BatchCounts {
                n_points,
                n_pairs: 0,
                n_positives: 0,
            },
            dropped: Vec::new(),
        };
        for told in gather(self.communicator, &own) {
            found.counts.n_positives += told[0] as usize;
            found.counts.n_pairs += told[1] as usize;
            let marks = told[2..].iter();
            let pairs = marks.map(|mark| ((mark >> 16) as usize, (mark & 0xFFFF) as usize));
            found.dropped.extend(pairs);
        }
        found
    }
}

impl ShardBuffers {
    /// Scores all clusters, selects the best of each point and follows them.
    fn search(
        &mut self,
        clusters: &ClusterClassifiers,
        inputs: SearchInputs<'_>,
        points: Range<usize>,
        searcher: &mut Shortlister,
    ) {
        let SearchInputs {
            adjacency,
            batch,
            options,
        } = inputs;
        let (dim, n_clusters) = (batch.embeddings.n_cols(), clusters.n_clusters());
        self.clear();
        self.clear_selected();
        let embeddings = &batch.embeddings.values()[points.start * dim..points.end * dim];
        self.probabilities.resize(points.len() * n_clusters, 0.0);
        clusters.probabilities(embeddings, &mut self.probabilities);
        for (offset, point) in points.enumerate() {
            let probabilities = &self.probabilities[offset * n_clusters..][..n_clusters];
            let positives = (batch.positives(point), batch.parents);
            searcher.search_with_parents(clusters, adjacency, probabilities, options, positives);
            self.selected.extend_from_slice(&searcher.selected);
            self.selected_starts.push(self.selected.len());
            self.keep_paths(point, searcher, adjacency.edges().n_labels());
        }
    }

    /// Follows the clusters that processes have selected together.
    fn search_selected(
        &mut self,
        inputs: SearchInputs<'_>,
        points: Range<usize>,
        searcher: &mut Shortlister,
    ) {
        let SearchInputs {
            adjacency,
            batch,
            options,
        } = inputs;
        self.clear();
        for (offset, point) in points.enumerate() {
            let selected =
                &self.selected[self.selected_starts[offset]..self.selected_starts[offset + 1]];
            searcher.search_selected(selected, adjacency, options, batch.positives(point));
            self.keep_paths(point, searcher, adjacency.edges().n_labels());
        }
    }

    /// Sorts what was found for a point into ranges of labels.
    fn keep_paths(&mut self, point: usize, searcher: &Shortlister, n_labels: usize) {
        for path in &searcher.paths {
            self.n_positives += usize::from(path.is_positive);
            let range = range_of_label(path.row.0, n_labels);
            self.pairs[range].push(Pair::new(point, path));
        }
        self.n_positives += searcher.dropped_positives.len();
        let dropped = searcher.dropped_positives.iter();
        self.dropped
            .extend(dropped.map(|path| Pair::new(point, path)));
    }

    pub(super) fn clear_selected(&mut self) {
        self.selected.clear();
        self.selected_starts.clear();
        self.selected_starts.push(0);
    }

    fn clear(&mut self) {
        self.pairs.resize_with(N_RANGES, Vec::new);
        self.pairs.iter_mut().for_each(Vec::clear);
        self.dropped.clear();
        self.n_positives = 0;
    }
}
