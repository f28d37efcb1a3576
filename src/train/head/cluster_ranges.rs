//! Parts 1 and 3 where clusters are many: range by range of clusters.
//!
//! From a number on ([`shares_clusters`](crate::communicator::shares_clusters)), clusters are cut into as many ranges as
//! labels, and the head scores those that its process owns. Softmax: each range has its highest logit m_r and
//! s_r = Σ exp(logit − m_r); with the m_r and s_r of all ranges, M = max m_r and S = Σ s_r·exp(m_r − M), summed in the
//! order of ranges. The best clusters of a point are among the best of each process. ∂L/∂φ of a range of clusters is
//! added to that of the range of labels with the same number. W_C is up to date for the own ranges only.

use std::ops::Range;

use rayon::prelude::*;

use super::clusters::cluster_gradients;
use super::label_state::take;
use super::search::{ShardBuffers, points_of};
use super::{Batch, Head, SHARD};
use crate::communicator::{N_RANGES, Ranges};
use crate::ids::ClusterId;
use crate::index::{ClusterClassifiers, Selection, descending_key};
use crate::kernels::Kernels;
use crate::matrix::{Output, View, product, ranges_mut};

/// Scores of the own clusters for a shard of points.
#[derive(Default)]
pub(super) struct OwnScores {
    /// Exponentials, then probabilities: the ranges one after the other, each points×clusters.
    values: Vec<f32>,
    /// The highest logit of each range, then the sums of exponentials, point after point.
    sums: Vec<f32>,
    /// Keys of a point: of the own clusters, or of the best on all processes.
    scratch: Vec<u64>,
    /// The best of the own clusters, equally many per point.
    keys: Vec<u64>,
    /// ŝ_c of the clusters searched besides each point's beam; 0 where the cluster is another process's.
    others: Vec<f32>,
}

impl Head<'_> {
    /// Finds the clusters that each point is searched through.
    pub(super) fn select_by_range(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
        beam_size: usize,
    ) {
        let n_points = batch.rows.len();
        let ranges = &self.gradients.cluster_ranges;
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| {
            let points = points_of(at, n_points);
            shard
                .own_scores
                .exponentials(clusters, batch, points, ranges);
        });
        let own_sums = self.all_of(|scores| &scores.sums);
        let sums = self.communicator.join_ranges(own_sums);
        let ranges = &self.gradients.cluster_ranges;
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| {
            let scores = &mut shard.own_scores;
            let points = points_of(at, n_points);
            scores.normalise(&sums[points.start * 2 * N_RANGES..], ranges);
            scores.find_best(clusters, batch, points, ranges, beam_size);
        });

        let keys = self
            .communicator
            .join_columns(n_points, self.all_of(|scores| &scores.keys));
        let mut scores = self.all_of(|scores| &scores.others);
        let others: Vec<ClusterId> = (0..n_points).flat_map(|p| batch.others(p)).collect();
        let ranges = Ranges::of(clusters.n_clusters());
        self.communicator
            .fill(&mut scores, |at| ranges.holding(others[at].0));
        let mut rest = &mut scores[..];
        let of_shards: Vec<&mut [f32]> = self
            .shards
            .iter()
            .map(|shard| take(&mut rest, shard.own_scores.others.len()))
            .collect();
        let shards = self.shards.par_iter_mut().zip(of_shards).enumerate();
        shards.for_each(|(at, (shard, scores))| {
            let mut scores = scores.iter();
            shard.clear_selected();
            for point in points_of(at, n_points) {
                let n_keys = keys.len() / n_points;
                let others = batch
                    .others(point)
                    .zip(scores.by_ref())
                    .map(|(cluster, &score)| Selection { cluster, score });
                let mut selected =
                    shard.select(&keys[point * n_keys..][..n_keys], others, beam_size);
                batch.thin(point, &mut selected, beam_size);
                shard.selected.append(&mut selected);
                shard.selected_starts.push(shard.selected.len());
            }
        });
    }

    /// A list of all shards, one after the other.
    fn all_of<T: Copy>(&self, list: impl Fn(&OwnScores) -> &Vec<T>) -> Vec<T> {
        let lists = self.shards.iter().map(|shard| list(&shard.own_scores));
        lists.flatten().copied().collect()
    }

    /// As `collect_point_gradients`, of the own clusters. ∂L/∂φ goes to the ranges of labels.
    pub(super) fn collect_range_gradients(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
    ) {
        let (n_points, dim) = (batch.rows.len(), batch.embeddings.n_cols());
        let gradients = &mut self.gradients;
        let ranges = &gradients.cluster_ranges;
        let first = ranges[0].start;
        let n_own: usize = ranges.iter().map(Range::len).sum();
        let (d_slots, n_slots) = (&self.d_slots, self.n_slots);
        let d_slots_of = |shard: usize| &d_slots[shard * SHARD * n_slots..];
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(at, shard)| shard.touch_clusters(d_slots_of(at), n_slots));

        // The ranges one after the other, each points×clusters.
        self.d_logits.reshape(1, n_points * n_own);
        let mut rest = self.d_logits.values_mut();
        let blocks: Vec<&mut [f32]> = ranges
            .iter()
            .map(|range| take(&mut rest, n_points * range.len()))
            .collect();
        let shards = &self.shards;
        let of_ranges = blocks.into_par_iter().zip(&mut self.ranges).zip(ranges);
        of_ranges.for_each(|((block, buffers), range)| {
            let weights = &clusters.weights.values()[range.start * dim..range.end * dim];
            let chunks = block
                .par_chunks_mut(SHARD * range.len())
                .zip(buffers.d_embeddings.par_chunks_mut(SHARD * dim))
                .enumerate();
            chunks.for_each(|(at, (d_logits, d_embeddings))| {
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

        gradients.embeddings.reshape(n_points, dim);
        gradients.embeddings.values_mut().fill(0.0);
        let n_clusters = clusters.n_clusters();
        gradients.cluster_weights.resize(n_clusters * dim, 0.0);
        gradients.cluster_bias.resize(n_clusters, 0.0);
        let of_weights: Vec<Range<usize>> = ranges
            .iter()
            .map(|range| range.start * dim..range.end * dim)
            .collect();
        let d_logits = self.d_logits.values();
        let of_ranges = ranges
            .par_iter()
            .zip(ranges_mut(&mut gradients.cluster_weights, &of_weights))
            .zip(ranges_mut(&mut gradients.cluster_bias, ranges));
        of_ranges.for_each(|((range, weights), bias)| {
            let block = &d_logits[RangePlace { range, first }.values(n_points)];
            cluster_gradients(block, batch.embeddings, weights, bias);
        });
    }
}

/// A range of clusters among the own ones, the first of which is `first`.
#[derive(Clone, Copy)]
struct RangePlace<'a> {
    range: &'a Range<usize>,
    first: usize,
}

impl RangePlace<'_> {
    /// Positions in [`OwnScores::values`], where it holds this many points.
    fn values(&self, n_points: usize) -> Range<usize> {
        n_points * (self.range.start - self.first)..n_points * (self.range.end - self.first)
    }
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
            kernels.dot_all(embeddings, weights, dim, values);
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

    /// The best clusters of each point, and the scores of those searched besides.
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
        self.others.clear();
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
            for cluster in batch.others(point) {
                let range = ranges.iter().find(|range| range.contains(&cluster.idx()));
                let score = range.map_or(0.0, |range| {
                    clusters.score(row(range)[cluster.idx() - range.start])
                });
                self.others.push(score);
            }
        }
    }
}

impl ShardBuffers {
    /// The clusters of a point: the best of these keys, then others that are not among them.
    fn select(
        &mut self,
        keys: &[u64],
        others: impl Iterator<Item = Selection>,
        beam_size: usize,
    ) -> Vec<Selection> {
        let best = &mut self.own_scores.scratch;
        best.clear();
        best.extend_from_slice(keys);
        best.sort_unstable_by(|a, b| b.cmp(a));
        best.truncate(beam_size);
        let mut selected: Vec<Selection> = best
            .iter()
            .map(|key| Selection {
                cluster: ClusterId(!(*key as u32)),
                score: f32::from_bits((key >> 32) as u32),
            })
            .collect();
        for other in others {
            if selected.iter().all(|known| known.cluster != other.cluster) {
                selected.push(other);
            }
        }
        selected
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
            // A saturated cluster passes nothing.
            let slots = selected
                .iter()
                .zip(&d_slots[offset * n_slots..])
                .filter(|(selection, _)| selection.score < 1.0);
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
