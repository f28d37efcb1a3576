//! Part 1: every point's clusters and shortlist, its paths sorted into ranges of labels.

use std::ops::Range;

use rayon::prelude::*;

use super::cluster_ranges::OwnScores;
use super::{Batch, BatchCounts, Head, SHARD};
use crate::communicator::{BestOfAll, N_RANGES, Ranges, shares_clusters};
use crate::index::{
    Adjacency, ClusterClassifiers, Path, Selection, ShortlistOptions, Shortlister, descending_key,
};

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
const REJECTED: u16 = 1 << 14;

impl Pair {
    fn new(point: usize, path: &Path) -> Self {
        debug_assert!(path.slot < REJECTED);
        let sign = match (path.is_positive, path.is_rejected) {
            (true, _) => POSITIVE,
            (false, true) => REJECTED,
            (false, false) => 0,
        };
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
        (self.slot_and_sign & !(POSITIVE | REJECTED)) as usize
    }

    /// Position of its selected cluster in per-selection arrays.
    fn position(self, n_slots: usize) -> u32 {
        (self.point as usize * n_slots + self.slot()) as u32
    }

    /// The order of the shortlist.
    fn key(&self) -> u64 {
        descending_key(self.score, self.label)
    }

    pub(super) fn is_positive(self) -> bool {
        self.slot_and_sign & POSITIVE != 0
    }

    /// Whether the label is a positive, or was rejected for the point.
    fn is_target(self) -> bool {
        self.slot_and_sign & (POSITIVE | REJECTED) != 0
    }
}

/// Clusters and shortlists of one shard of points.
#[derive(Default)]
pub(super) struct ShardBuffers {
    /// softmax of the cluster logits, points×C; not used where clusters are cut into ranges.
    pub(super) probabilities: Vec<f32>,
    /// The same of the own clusters, where they are cut into ranges.
    pub(super) own_scores: OwnScores,
    /// Shortlisted labels, by range.
    pub(super) pairs: Vec<Vec<Pair>>,
    /// Clusters searched, point after point.
    pub(super) selected: Vec<Selection>,
    /// Start of each point's clusters; one more entry than points.
    pub(super) selected_starts: Vec<usize>,
    /// Positives that the cut at K dropped, with their point.
    pub(super) dropped: Vec<Pair>,
    /// Clusters through which a gradient flows; filled by part 3.
    pub(super) touched_clusters: Vec<u32>,
}

/// Inputs of the search that all shards share.
#[derive(Clone, Copy)]
struct SearchInputs<'a> {
    /// φ, B×d.
    embeddings: &'a [f32],
    adjacency: &'a Adjacency,
    batch: Batch<'a>,
    options: &'a ShortlistOptions,
}

/// Outcome of the search of a batch.
pub(super) struct Found {
    pub(super) counts: BatchCounts,
    /// Positions in per-selection arrays of the positives that the cut at K dropped.
    pub(super) dropped: Vec<u32>,
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
        self.n_slots = options.beam_size + batch.most_targets();
        self.shards
            .resize_with(n_points.div_ceil(SHARD), ShardBuffers::default);
        let has_ranges = shares_clusters(clusters.n_clusters());
        if has_ranges {
            self.select_by_range(clusters, batch, options.beam_size);
        }
        let (n_labels, searchers) = (self.n_labels, &self.searchers);
        let inputs = SearchInputs {
            embeddings: &self.embeddings,
            adjacency,
            batch,
            options,
        };
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| {
            let new = || Shortlister::new(n_labels);
            searchers.with(new, |searcher| {
                if has_ranges {
                    shard.search_selected(inputs, points_of(at, n_points), searcher);
                } else {
                    shard.search(clusters, inputs, points_of(at, n_points), searcher);
                }
            });
        });
        self.cut(n_points, options);
        self.found(n_points, options)
    }

    /// Leaves the K best pairs of each point, and positives if they stay. Searches have cut what they found at K.
    fn cut(&mut self, n_points: usize, options: &ShortlistOptions) {
        let keys = || {
            let mut keys = vec![Vec::new(); n_points];
            let pairs = self.shards.iter().flat_map(|shard| &shard.pairs).flatten();
            pairs.for_each(|pair| keys[pair.point as usize].push(pair.key()));
            keys
        };
        let best = self.communicator.best_of_all(options.shortlist_size, keys);
        if best.drops_any() {
            let shards = self.shards.par_iter_mut();
            shards.for_each(|shard| shard.leave(&best, options.keeps_positives));
        }
    }

    fn found(&mut self, n_points: usize, options: &ShortlistOptions) -> Found {
        let shards = &mut self.shards;
        let pairs = shards.iter().flat_map(|shard| &shard.pairs);
        let own_pairs = [pairs.map(Vec::len).sum()];
        let mut own_dropped = Vec::new();
        for shard in shards {
            shard.dropped.sort_unstable_by_key(|p| (p.point, p.label));
            let dropped = shard.dropped.iter();
            own_dropped.extend(dropped.map(|pair| pair.position(self.n_slots)));
        }
        let communicator = self.communicator;
        let ([n_pairs], dropped) = communicator.sum_and_gather(own_pairs, own_dropped);
        Found {
            counts: BatchCounts {
                n_points,
                n_pairs,
                shortlist_size: options.shortlist_size,
                most_targets: self.n_slots - options.beam_size,
            },
            dropped,
        }
    }
}

/// The points of a shard, as their positions in the batch.
pub(super) fn points_of(shard: usize, n_points: usize) -> Range<usize> {
    shard * SHARD..((shard + 1) * SHARD).min(n_points)
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
            embeddings,
            adjacency,
            batch,
            options,
        } = inputs;
        let (dim, n_clusters) = (batch.embeddings.n_cols(), clusters.n_clusters());
        self.clear();
        self.clear_selected();
        let embeddings = &embeddings[points.start * dim..points.end * dim];
        self.probabilities.resize(points.len() * n_clusters, 0.0);
        clusters.probabilities(embeddings, &mut self.probabilities);
        for (offset, point) in points.enumerate() {
            let probabilities = &self.probabilities[offset * n_clusters..][..n_clusters];
            let beam_size = options.beam_size;
            searcher.select(clusters, probabilities, beam_size, batch.others(point));
            batch.thin(point, &mut searcher.selected, beam_size);
            searcher.search_selected(adjacency, options, batch.targets(point));
            self.selected.extend_from_slice(&searcher.selected);
            self.selected_starts.push(self.selected.len());
            self.keep_paths(point, searcher, adjacency.edges().n_labels());
        }
    }

    /// Follows the clusters that are selected already.
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
            ..
        } = inputs;
        self.clear();
        for (offset, point) in points.enumerate() {
            let selected =
                &self.selected[self.selected_starts[offset]..self.selected_starts[offset + 1]];
            searcher.selected.clear();
            searcher.selected.extend_from_slice(selected);
            searcher.search_selected(adjacency, options, batch.targets(point));
            self.keep_paths(point, searcher, adjacency.edges().n_labels());
        }
    }

    /// Sorts what was found for a point into ranges of labels.
    fn keep_paths(&mut self, point: usize, searcher: &Shortlister, n_labels: usize) {
        let ranges = Ranges::of(n_labels);
        for path in &searcher.paths {
            let range = ranges.holding(path.row.0);
            self.pairs[range].push(Pair::new(point, path));
        }
        let dropped = searcher.dropped_positives.iter();
        self.dropped
            .extend(dropped.map(|path| Pair::new(point, path)));
    }

    /// Drops the pairs that are not among the K best.
    fn leave(&mut self, best: &BestOfAll, keeps_positives: bool) {
        let ShardBuffers { pairs, dropped, .. } = self;
        for pairs in pairs {
            pairs.retain(|pair| {
                let stays = keeps_positives && pair.is_target()
                    || best.contains(pair.point as usize, pair.key());
                if !stays && pair.is_positive() {
                    dropped.push(*pair);
                }
                stays
            });
        }
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
    }
}
