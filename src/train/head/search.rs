//! Part 1: every point's clusters and shortlist, its paths sorted into ranges of labels.

use rayon::prelude::*;

use super::{Batch, BatchCounts, Head, HeadLoss, N_RANGES, SHARD};
use crate::index::{Adjacency, ClusterClassifiers, Path, Selection, ShortlistOptions, Shortlister};
use crate::loss;

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

    pub(super) fn is_positive(self) -> bool {
        self.slot_and_sign & POSITIVE != 0
    }
}

/// What one shard of points found.
#[derive(Default)]
pub(super) struct ShardBuffers {
    /// softmax of the cluster logits, points×C.
    pub(super) probabilities: Vec<f32>,
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
    counts: BatchCounts,
    shortlist_loss: f64,
}

impl Head {
    pub(super) fn search(
        &mut self,
        clusters: &ClusterClassifiers,
        adjacency: &Adjacency,
        batch: Batch<'_>,
        options: &ShortlistOptions,
    ) -> HeadLoss {
        let n_points = batch.rows.len();
        let most_positives = (0..n_points)
            .map(|point| batch.positives(point).len())
            .max()
            .unwrap_or(0);
        self.n_slots = options.beam_size + most_positives;
        self.shards
            .resize_with(n_points.div_ceil(SHARD), ShardBuffers::default);
        let n_labels = self.n_labels;
        let searchers = &self.searchers;
        self.shards
            .par_iter_mut()
            .enumerate()
            .for_each(|(shard_idx, shard)| {
                let points = shard_idx * SHARD..((shard_idx + 1) * SHARD).min(n_points);
                let new = || Shortlister::new(n_labels);
                searchers.with(new, |searcher| {
                    shard.search(clusters, adjacency, batch, options, points, searcher);
                });
            });
        let mut loss = HeadLoss::default();
        for shard in &self.shards {
            loss.shortlist += shard.shortlist_loss;
            loss.counts.n_points += shard.counts.n_points;
            loss.counts.n_pairs += shard.counts.n_pairs;
            loss.counts.n_positives += shard.counts.n_positives;
        }
        loss
    }
}

impl ShardBuffers {
    fn search(
        &mut self,
        clusters: &ClusterClassifiers,
        adjacency: &Adjacency,
        batch: Batch<'_>,
        options: &ShortlistOptions,
        points: std::ops::Range<usize>,
        searcher: &mut Shortlister,
    ) {
        let (dim, n_labels) = (batch.embeddings.n_cols(), adjacency.edges().n_labels());
        let embeddings = &batch.embeddings.values()[points.start * dim..points.end * dim];
        self.clear();
        self.probabilities
            .resize(points.len() * clusters.n_clusters(), 0.0);
        clusters.probabilities(embeddings, &mut self.probabilities);
        for (point, probabilities) in
            points.zip(self.probabilities.chunks_exact(clusters.n_clusters()))
        {
            let positives = (batch.positives(point), batch.parents);
            searcher.search_with_parents(clusters, adjacency, probabilities, options, positives);
            for path in &searcher.paths {
                if path.is_positive {
                    self.counts.n_positives += 1;
                    self.shortlist_loss += loss::shortlist(path.score);
                }
                let range = range_of(path.row.0, n_labels);
                self.pairs[range].push(Pair::new(point, path));
            }
            for path in &searcher.dropped_positives {
                self.counts.n_positives += 1;
                self.shortlist_loss += loss::shortlist(path.score);
                self.dropped.push(Pair::new(point, path));
            }
            self.counts.n_points += 1;
            self.counts.n_pairs += searcher.paths.len();
            self.selected.extend_from_slice(&searcher.selected);
            self.selected_starts.push(self.selected.len());
        }
    }

    fn clear(&mut self) {
        self.pairs.resize_with(N_RANGES, Vec::new);
        self.pairs.iter_mut().for_each(Vec::clear);
        self.selected.clear();
        self.selected_starts.clear();
        self.selected_starts.push(0);
        self.dropped.clear();
        self.counts = BatchCounts::default();
        self.shortlist_loss = 0.0;
    }
}

/// The range whose bounds (`bounds`) hold the label.
fn range_of(label: u32, n_labels: usize) -> usize {
    ((label as usize + 1) * N_RANGES - 1) / n_labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_falls_into_the_range_whose_bounds_hold_it() {
        for n_labels in [1, 2, 15, 16, 17, 100, 1023] {
            for label in 0..n_labels {
                let range = range_of(label as u32, n_labels);
                assert!(
                    super::super::bounds(n_labels, range).contains(&label),
                    "{label} of {n_labels}"
                );
            }
        }
    }
}
