//! Parts 1 and 3 where processes share the clusters, range by range of clusters.
//!
//! Where there are enough of them ([`shares_clusters`](crate::communicator::shares_clusters)), clusters are cut into as many
//! ranges as labels, and a process scores those that it owns. Softmax: each range has its highest logit m_r and
//! s_r = Σ exp(logit − m_r); with the m_r and s_r of all ranges, every process knows M = max m_r and
//! S = Σ s_r·exp(m_r − M), summed in the order of ranges. The best clusters of a point are among the best of each process.
//! ∂L/∂φ of a range of clusters is added to that of the range of labels with the same number. A process has up-to-date rows
//! of W_C for its own ranges only. Ranges and their chunks run in parallel; only what processes tell each other waits.

use std::ops::Range;

use rayon::prelude::*;

use super::clusters::cluster_gradients;
use super::search::ShardBuffers;
use super::{Batch, Head, SHARD};
use crate::communicator::{
    Communicator, N_RANGES, gather, gather_ranges, own_clusters, range_of_label, share,
    sum_in_order,
};
use crate::ids::ClusterId;
use crate::index::{ClusterClassifiers, Selection, descending_key};
use crate::kernels::Kernels;
use crate::matrix::{Output, View, product, ranges_mut};

/// What a shard of points knows of the clusters that the process owns.
#[derive(Default)]
pub(super) struct OwnScores {
    /// Exponentials, then probabilities: the ranges one after the other, each points×clusters.
    values: Vec<f32>,
    /// The highest logit of each range, then the sums of exponentials, point after point.
    sums: Vec<f32>,
    /// Keys of a point: of all clusters, or of the best of every process.
    scratch: Vec<u64>,
    /// The best clusters of each point, equally many.
    keys: Vec<u64>,
    /// ŝ_c of those parents of positives that the process owns.
    parents: Vec<f32>,
}

impl Head<'_> {
    /// Finds the clusters that each point is searched through.
    pub(super) fn select_together(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
        beam_size: usize,
    ) {
        let ranges = own_clusters(clusters.n_clusters(), self.communicator);
        let n_points = batch.rows.len();
        let points_of = |shard| points_of(shard, n_points);
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| {
            let scores = &mut shard.own_scores;
            scores.exponentials(clusters, batch, points_of(at), &ranges);
        });
        let own = self.shards.iter().flat_map(|shard| &shard.own_scores.sums);
        let sums = gather_ranges(self.communicator, own.copied().collect());
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| {
            let scores = &mut shard.own_scores;
            let points = points_of(at);
            let sums = &sums[points.start * 2 * N_RANGES..];
            scores.normalise(sums, &ranges);
            scores.find_best(clusters, batch, points, &ranges, beam_size);
        });
        self.merge_selections(clusters, batch, beam_size);
    }

    /// From what each process found to the clusters of each point.
    fn merge_selections(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
        beam_size: usize,
    ) {
        let n_points = batch.rows.len();
        let own = self.shards.iter().flat_map(|shard| &shard.own_scores.keys);
        let keys = gather(self.communicator, &own.copied().collect::<Vec<_>>());
        let own = self
            .shards
            .iter()
            .flat_map(|shard| &shard.own_scores.parents);
        let parents = gather(self.communicator, &own.copied().collect::<Vec<_>>());
        let owners = owners(self.communicator);
        let owner_of = |cluster: ClusterId| {
            let range = range_of_label(cluster.0, clusters.n_clusters());
            owners[range]
        };
        // Where the parents of each shard begin among those that each process told.
        let mut next = vec![0; self.communicator.n_processes()];
        let starts = (0..self.shards.len()).map(|shard| {
            let starts = next.clone();
            for point in points_of(shard, n_points) {
                let parents = batch.parents_of(point);
                parents.for_each(|cluster| next[owner_of(cluster)] += 1);
            }
            starts
        });
        let starts: Vec<Vec<usize>> = starts.collect();
        let shards = self.shards.par_iter_mut().zip(starts).enumerate();
        shards.for_each(|(at, (shard, mut next))| {
            shard.clear_selected();
            for point in points_of(at, n_points) {
                let of_ranks = keys.iter().map(|keys| {
                    let n_keys = keys.len() / n_points;
                    &keys[point * n_keys..(point + 1) * n_keys]
                });
                let parents = batch.parents_of(point).map(|cluster| {
                    let owner = owner_of(cluster);
                    next[owner] += 1;
                    let score = parents[owner][next[owner] - 1];
                    Selection { cluster, score }
                });
                shard.select(of_ranks, parents, beam_size);
            }
        });
    }

    /// As `collect_point_gradients`, of the clusters that this process owns.
    pub(super) fn collect_shared_gradients(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
    ) {
        let (n_points, dim) = (batch.rows.len(), batch.embeddings.n_cols());
        let ranges = own_clusters(clusters.n_clusters(), self.communicator);
        let first = ranges[0].start;
        let n_own: usize = ranges.iter().map(Range::len).sum();
        let (d_slots, n_slots) = (&self.d_slots, self.n_slots);
        let d_slots_of = |shard: usize| &d_slots[shard * SHARD * n_slots..];
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| shard.touch_clusters(d_slots_of(at), n_slots));

        // The ranges one after the other, each points×clusters.
        self.d_logits.reshape(1, n_points * n_own);
        let mut rest = self.d_logits.values_mut();
        let blocks = ranges
            .iter()
            .map(|range| super::labels::take(&mut rest, n_points * range.len()));
        let blocks: Vec<&mut [f32]> = blocks.collect();
        let shards = &self.shards;
        let of_ranges = blocks.into_par_iter().zip(&mut self.ranges).zip(&ranges);
        of_ranges.for_each(|((block, buffers), range)| {
            let weights = &clusters.weights.values()[range.start * dim..range.end * dim];
            let chunks = block.par_chunks_mut(SHARD * range.len());
            let chunks = chunks.zip(buffers.d_embeddings.par_chunks_mut(SHARD * dim));
            chunks
                .enumerate()
                .for_each(|(at, (d_logits, d_embeddings))| {
                    let place = RangePlace { range, first };
                    shards[at].range_gradients(place, d_slots_of(at), n_slots, d_logits);
                    product(
                        [d_embeddings.len() / dim, dim, range.len()],
                        View::rows(d_logits, range.len()),
                        View::rows(weights, dim),
                        d_embeddings,
                        Output::Add,
                    );
                });
        });
        let gradients = &mut self.gradients;
        gradients.embeddings.reshape(n_points, dim);
        gradients.embeddings.values_mut().fill(0.0);
        let of_ranges = self.ranges.iter().map(|range| &range.d_embeddings[..]);
        let of_ranges: Vec<&[f32]> = of_ranges.collect();
        sum_in_order(
            self.communicator,
            &of_ranges,
            gradients.embeddings.values_mut(),
        );

        gradients
            .cluster_weights
            .resize(clusters.n_clusters() * dim, 0.0);
        gradients.cluster_bias.resize(clusters.n_clusters(), 0.0);
        let of_weights = ranges
            .iter()
            .map(|range| range.start * dim..range.end * dim);
        let of_weights: Vec<Range<usize>> = of_weights.collect();
        let d_logits = self.d_logits.values();
        let of_ranges = ranges
            .par_iter()
            .zip(ranges_mut(&mut gradients.cluster_weights, &of_weights))
            .zip(ranges_mut(&mut gradients.cluster_bias, &ranges));
        of_ranges.for_each(|((range, weights), bias)| {
            let block = &d_logits[RangePlace { range, first }.values(n_points)];
            cluster_gradients(block, batch.embeddings, weights, bias);
        });
    }
}

/// The points of a shard, as their positions in the batch.
fn points_of(shard: usize, n_points: usize) -> Range<usize> {
    shard * SHARD..((shard + 1) * SHARD).min(n_points)
}

/// A range of clusters among those that a process owns, the first of which is `first`.
#[derive(Clone, Copy)]
struct RangePlace<'a> {
    range: &'a Range<usize>,
    first: usize,
}

impl RangePlace<'_> {
    /// Where the values of so many points are in [`OwnScores::values`].
    fn values(&self, n_points: usize) -> Range<usize> {
        n_points * (self.range.start - self.first)..n_points * (self.range.end - self.first)
    }
}

/// The process that owns each range.
fn owners(communicator: &dyn Communicator) -> Vec<usize> {
    let of_rank =
        |process| share(N_RANGES, process, communicator.n_processes()).map(move |_| process);
    (0..communicator.n_processes()).flat_map(of_rank).collect()
}

impl OwnScores {
    /// exp(logit − m_r) of the points, and m_r and s_r of each.
    fn exponentials(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
        points: Range<usize>,
        ranges: &[Range<usize>],
    ) {
        let (kernels, dim) = (Kernels::detect(), batch.embeddings.n_cols());
        let embeddings = &batch.embeddings.values()[points.start * dim..points.end * dim];
        let n_own: usize = ranges.iter().map(Range::len).sum();
        self.values.resize(points.len() * n_own, 0.0);
        self.sums.clear();
        self.sums.resize(points.len() * 2 * ranges.len(), 0.0);
        let first = ranges[0].start;
        for (at, range) in ranges.iter().enumerate() {
            let place = RangePlace { range, first };
            let values = &mut self.values[place.values(points.len())];
            let weights = &clusters.weights.values()[range.start * dim..range.end * dim];
            product(
                [points.len(), range.len(), dim],
                View::rows(embeddings, dim),
                View::transposed(weights, dim),
                values,
                Output::Replace,
            );
            let rows = values.chunks_exact_mut(range.len());
            for (row, sums) in rows.zip(self.sums.chunks_exact_mut(2 * ranges.len())) {
                kernels.axpy(1.0, &clusters.bias[range.clone()], row);
                let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                sums[at] = highest;
                sums[ranges.len() + at] = kernels.exp_sum(row, highest);
            }
        }
    }

    /// From exponentials to probabilities. sums: of all ranges, for each point m_r, then s_r
    fn normalise(&mut self, sums: &[f32], ranges: &[Range<usize>]) {
        let n_points = self.sums.len() / (2 * ranges.len());
        let first = ranges[0].start;
        for point in 0..n_points {
            let (highest, of_ranges) =
                sums[point * 2 * N_RANGES..][..2 * N_RANGES].split_at(N_RANGES);
            let most = highest.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let parts = highest.iter().zip(of_ranges);
            let total: f32 = parts.map(|(m, s)| s * (m - most).exp()).sum();
            for (at, range) in ranges.iter().enumerate() {
                let own_highest = self.sums[point * 2 * ranges.len() + at];
                let scale = (own_highest - most).exp() / total;
                let start = RangePlace { range, first }.values(n_points).start;
                let row = &mut self.values[start + point * range.len()..][..range.len()];
                row.iter_mut().for_each(|value| *value *= scale);
            }
        }
    }

    /// The best clusters of each point, and the scores of parents.
    fn find_best(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
        points: Range<usize>,
        ranges: &[Range<usize>],
        beam_size: usize,
    ) {
        let first = ranges[0].start;
        self.keys.clear();
        self.parents.clear();
        let keys = &mut self.scratch;
        for (offset, point) in points.clone().enumerate() {
            let row = |range: &Range<usize>| {
                let start = RangePlace { range, first }.values(points.len()).start;
                &self.values[start + offset * range.len()..][..range.len()]
            };
            keys.clear();
            for range in ranges {
                let scored = range.clone().zip(row(range));
                keys.extend(
                    scored.map(|(cluster, &p)| descending_key(clusters.score(p), cluster as u32)),
                );
            }
            if beam_size < keys.len() {
                keys.select_nth_unstable_by(beam_size, |a, b| b.cmp(a));
                keys.truncate(beam_size);
            }
            self.keys.extend_from_slice(keys);
            for cluster in batch.parents_of(point) {
                let range = ranges.iter().find(|range| range.contains(&cluster.idx()));
                if let Some(range) = range {
                    let probability = row(range)[cluster.idx() - range.start];
                    self.parents.push(clusters.score(probability));
                }
            }
        }
    }
}

impl ShardBuffers {
    /// The clusters of the next point: the best that any process found, then parents of positives that are not among them.
    fn select<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u64]>,
        parents: impl Iterator<Item = Selection>,
        beam_size: usize,
    ) {
        let best = &mut self.own_scores.scratch;
        best.clear();
        best.extend(keys.flatten());
        best.sort_unstable_by(|a, b| b.cmp(a));
        best.truncate(beam_size);
        let first = self.selected.len();
        self.selected.extend(best.iter().map(|key| Selection {
            cluster: ClusterId(!(*key as u32)),
            score: f32::from_bits((key >> 32) as u32),
        }));
        for parent in parents {
            let mut selected = self.selected[first..].iter();
            if selected.all(|known| known.cluster != parent.cluster) {
                self.selected.push(parent);
            }
        }
        self.selected_starts.push(self.selected.len());
    }

    /// Notes the clusters through which a gradient flows.
    fn touch_clusters(&mut self, d_slots: &[f32], n_slots: usize) {
        self.touched_clusters.clear();
        for (offset, ends) in self.selected_starts.windows(2).enumerate() {
            let selected = self.selected[ends[0]..ends[1]].iter();
            let touched = selected
                .zip(&d_slots[offset * n_slots..])
                .filter(|(_, d_slot)| **d_slot != 0.0);
            self.touched_clusters
                .extend(touched.map(|(selection, _)| selection.cluster.0));
        }
    }

    /// As [`crate::index::logit_gradient`], of a range of clusters. d_logits: points×clusters
    fn range_gradients(
        &self,
        place: RangePlace<'_>,
        d_slots: &[f32],
        n_slots: usize,
        d_logits: &mut [f32],
    ) {
        let (n_points, range) = (self.selected_starts.len() - 1, place.range);
        d_logits.copy_from_slice(&self.own_scores.values[place.values(n_points)]);
        for (offset, row) in d_logits.chunks_exact_mut(range.len()).enumerate() {
            let selected =
                &self.selected[self.selected_starts[offset]..self.selected_starts[offset + 1]];
            let slots = selected.iter().zip(&d_slots[offset * n_slots..]);
            // A saturated cluster passes nothing.
            let slots = slots.filter(|(selection, _)| selection.score < 1.0);
            let total: f32 = slots.clone().map(|(_, d_slot)| d_slot).sum();
            row.iter_mut().for_each(|value| *value *= -total);
            for (selection, d_slot) in slots {
                if range.contains(&selection.cluster.idx()) {
                    row[selection.cluster.idx() - range.start] += d_slot;
                }
            }
        }
    }
}
