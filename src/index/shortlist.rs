//! From cluster scores to the shortlist of one point.
//!
//! Selected clusters are the `beam_size` best by ŝ_c, ties to the lower id, then (in training) the parents of
//! the positives in their order. Every edge of a selected cluster is a path of score ŝ_c·ŝ(c,ℓ); a label keeps
//! its best path, the earlier cluster on ties; the K best labels form the shortlist (paper, eqs. 2–6).
//! Cost grows with the edges of the selected clusters, never with L.

use std::hint::select_unpredictable;

use crate::ids::{ClusterId, LabelRow};
use crate::index::{Adjacency, ClusterClassifiers};
use crate::kernels::{Kernels, prefetch};

/// The extent of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortlistOptions {
    /// b: clusters searched.
    pub beam_size: usize,
    /// K: labels kept.
    pub shortlist_size: usize,
    /// Paths with a lower score are not followed; 0 follows all. Positives are always followed in training.
    pub score_floor: f32,
    /// Whether positives, and rejected labels, stay in the shortlist whatever their score is.
    pub keeps_positives: bool,
}

/// The best path to a shortlisted label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    /// The label, as its row in W_L.
    pub row: LabelRow,
    /// The edge taken, as its position in the adjacency.
    pub edge: u32,
    /// ŷ = ŝ_c·ŝ(c,ℓ).
    pub score: f32,
    /// The selected cluster it runs through, as its position in the selection.
    pub slot: u16,
    /// Whether the label is a positive of the point.
    pub is_positive: bool,
    /// Whether the label was rejected for the point.
    pub is_rejected: bool,
}

/// Placeholder of a new path, with a score below all others.
const NO_PATH: Path = Path {
    row: LabelRow(0),
    edge: 0,
    score: -1.0,
    slot: 0,
    is_positive: false,
    is_rejected: false,
};

/// A cluster that is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Selection {
    /// The cluster.
    pub cluster: ClusterId,
    /// ŝ_c.
    pub score: f32,
}

/// Size of the sample of paths from which the score of the K-th best is estimated.
const SAMPLE: usize = 1024;
/// Prefetch distance, in paths: the rows of their labels are far apart in memory.
const AHEAD: usize = 16;

/// Buffers of the search; one per thread.
#[derive(Clone, Debug)]
pub(crate) struct Shortlister {
    /// Per row: the search that last met it and the position of its path, packed.
    seen: Vec<u64>,
    search: u32,
    keys: Vec<u64>,
    sample: Vec<u32>,
    found: Vec<u32>,
    /// Clusters of the last search: best first, then parents.
    pub selected: Vec<Selection>,
    /// Shortlist of the last search; in no particular order unless [`Shortlister::sort`] was called.
    pub paths: Vec<Path>,
    /// Positives reached by the last search that the cut at K dropped.
    pub dropped_positives: Vec<Path>,
}

impl Shortlister {
    /// Buffers for this many labels.
    pub(crate) fn new(n_labels: usize) -> Self {
        Shortlister {
            seen: vec![0; n_labels],
            search: 0,
            keys: Vec::new(),
            sample: Vec::new(),
            found: Vec::new(),
            selected: Vec::new(),
            paths: Vec::new(),
            dropped_positives: Vec::new(),
        }
    }

    /// Shortlists for prediction. probabilities: C, softmax of the cluster logits.
    pub(crate) fn search(
        &mut self,
        clusters: &ClusterClassifiers,
        adjacency: &Adjacency,
        probabilities: &[f32],
        options: &ShortlistOptions,
    ) {
        self.select_best(clusters, probabilities, options.beam_size);
        self.expand(adjacency, (&[], &[]), options);
    }

    /// Selects the clusters of a point for training: the best, then others that are not among them.
    pub(crate) fn select(
        &mut self,
        clusters: &ClusterClassifiers,
        probabilities: &[f32],
        beam_size: usize,
        others: impl Iterator<Item = ClusterId>,
    ) {
        self.select_best(clusters, probabilities, beam_size);
        for cluster in others {
            let mut selected = self.selected.iter();
            if selected.all(|selection| selection.cluster != cluster) {
                let score = clusters.score(probabilities[cluster.idx()]);
                self.selected.push(Selection { cluster, score });
            }
        }
    }

    /// Shortlists for training, of the clusters that are selected. Targets ascend: positives, and with a negative value
    /// rejected labels. Both are marked, and followed whatever their scores are.
    pub(crate) fn search_selected(
        &mut self,
        adjacency: &Adjacency,
        options: &ShortlistOptions,
        targets: (&[u32], &[f32]),
    ) {
        self.expand(adjacency, targets, options);
    }

    /// Puts the shortlist in descending score, ties to the lower label.
    pub(crate) fn sort(&mut self) {
        self.paths
            .sort_unstable_by_key(|path| std::cmp::Reverse(descending_key(path.score, path.row.0)));
    }

    fn select_best(
        &mut self,
        clusters: &ClusterClassifiers,
        probabilities: &[f32],
        beam_size: usize,
    ) {
        let keys = &mut self.keys;
        keys.clear();
        keys.extend(
            probabilities
                .iter()
                .enumerate()
                .map(|(idx, &p)| descending_key(clusters.score(p), idx as u32)),
        );
        if keys.len() > beam_size {
            keys.select_nth_unstable_by(beam_size, |a, b| b.cmp(a));
            keys.truncate(beam_size);
        }
        keys.sort_unstable_by(|a, b| b.cmp(a));
        self.selected.clear();
        self.selected.extend(keys.iter().map(|key| {
            let cluster = ClusterId(!(*key as u32));
            Selection {
                cluster,
                score: clusters.score(probabilities[cluster.idx()]),
            }
        }));
    }

    fn expand(
        &mut self,
        adjacency: &Adjacency,
        (targets, values): (&[u32], &[f32]),
        options: &ShortlistOptions,
    ) {
        self.start_search();
        let n_edges: usize = self
            .selected
            .iter()
            .map(|selection| adjacency.edges().range(selection.cluster).len())
            .sum();
        // Labels have several paths, so more paths than labels are wanted; if they are too few, more of them.
        let size = options.shortlist_size;
        let mut n_wanted = size.saturating_add(size / 4 * 3);
        let stride = self.take_sample(adjacency, n_edges);
        let lowest = options.score_floor.max(0.0);
        let mut ceiling = f32::INFINITY;
        loop {
            let floor = self.guess_floor(n_wanted / stride).max(lowest);
            if floor < ceiling {
                self.follow_between(adjacency, floor, ceiling);
                ceiling = floor;
            }
            if self.paths.len() >= size || floor <= lowest {
                break;
            }
            let short = size as f64 / self.paths.len().max(1) as f64;
            n_wanted = (n_wanted as f64 * (short + 0.25)) as usize + 1;
        }
        if ceiling > 0.0 {
            for slot in 0..self.selected.len() {
                self.follow_targets(adjacency, slot, targets);
            }
        }
        for (&target, &value) in targets.iter().zip(values) {
            if let Some(at) = self.position(LabelRow(target)) {
                self.paths[at].is_positive = value > 0.0;
                self.paths[at].is_rejected = value <= 0.0;
            }
        }
        self.cut(size, options.keeps_positives);
    }

    /// Scores of every n-th path, with n chosen so that there are about [`SAMPLE`] of them; and n.
    fn take_sample(&mut self, adjacency: &Adjacency, n_edges: usize) -> usize {
        let stride = n_edges.div_ceil(SAMPLE).max(1);
        self.sample.clear();
        for (slot, selection) in self.selected.iter().enumerate() {
            let scores = &adjacency.scores()[adjacency.edges().range(selection.cluster)];
            // Clusters begin at different places, so that no part of the rows is left out.
            let sampled = scores.iter().skip(slot * 7 % stride).step_by(stride);
            let path_scores = sampled.map(|score| (selection.score * score).to_bits());
            self.sample.extend(path_scores);
        }
        stride
    }

    /// The score that this many of the sample reach; 0 if there are not that many.
    fn guess_floor(&mut self, n_reaching: usize) -> f32 {
        if self.sample.len() <= n_reaching {
            return 0.0;
        }
        let sample = &mut self.sample;
        let (_, &mut kth, _) = sample.select_nth_unstable_by(n_reaching, |a, b| b.cmp(a));
        f32::from_bits(kth)
    }

    /// Follows all paths of at least the one score and below the other.
    fn follow_between(&mut self, adjacency: &Adjacency, floor: f32, ceiling: f32) {
        for slot in 0..self.selected.len() {
            let Selection { cluster, score } = self.selected[slot];
            if score * adjacency.best_score(cluster) < floor {
                continue;
            }
            let range = adjacency.edges().range(cluster);
            let scores = &adjacency.scores()[range.clone()];
            let found = &mut self.found;
            Kernels::detect().find_between(score, scores, floor..ceiling, found);
            let labels = &adjacency.edges().rows()[range.clone()];
            // Whether a label was met before, and whether this path is better, cannot be predicted, so nothing branches on
            // it: the place of a new path holds a score that every path beats.
            let (paths, seen) = (&mut self.paths, &mut self.seen[..]);
            let mut n_paths = paths.len();
            paths.resize(n_paths + found.len() + 1, NO_PATH);
            for (at, &offset) in found.iter().enumerate() {
                if let Some(&next) = found.get(at + AHEAD) {
                    let next = labels[next as usize].idx();
                    prefetch(&seen[next..=next]);
                }
                let label = labels[offset as usize];
                let seen = &mut seen[label.idx()];
                let is_known = (*seen >> 32) as u32 == self.search;
                let place = select_unpredictable(is_known, *seen as u32 as usize, n_paths);
                *seen = u64::from(self.search) << 32 | place as u64;
                n_paths += usize::from(!is_known);
                let known = &mut paths[place];
                let (new_score, new_edge) =
                    (score * scores[offset as usize], range.start as u32 + offset);
                let is_better = new_score > known.score;
                *known = Path {
                    row: label,
                    edge: select_unpredictable(is_better, new_edge, known.edge),
                    score: select_unpredictable(is_better, new_score, known.score),
                    slot: select_unpredictable(is_better, slot as u16, known.slot),
                    is_positive: false,
                    is_rejected: false,
                };
            }
            paths.truncate(n_paths);
        }
    }

    fn start_search(&mut self) {
        self.paths.clear();
        self.dropped_positives.clear();
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.seen.fill(0);
            self.search = 1;
        }
    }

    #[inline]
    fn position(&self, row: LabelRow) -> Option<usize> {
        let seen = self.seen[row.idx()];
        ((seen >> 32) as u32 == self.search).then_some(seen as u32 as usize)
    }

    #[inline]
    fn follow(&mut self, edge: u32, slot: usize, row: LabelRow, score: f32) {
        let path = Path {
            row,
            edge,
            score,
            slot: slot as u16,
            is_positive: false,
            is_rejected: false,
        };
        let seen = &mut self.seen[row.idx()];
        if (*seen >> 32) as u32 == self.search {
            let known = &mut self.paths[*seen as u32 as usize];
            if score > known.score {
                *known = path;
            }
        } else {
            *seen = u64::from(self.search) << 32 | self.paths.len() as u64;
            self.paths.push(path);
        }
    }

    /// Follows only the edges of one selected cluster that lead to targets.
    fn follow_targets(&mut self, adjacency: &Adjacency, slot: usize, targets: &[u32]) {
        let Selection { cluster, score } = self.selected[slot];
        let range = adjacency.edges().range(cluster);
        for &target in targets {
            let row = &adjacency.edges().rows()[range.clone()];
            if let Ok(offset) = row.binary_search(&LabelRow(target)) {
                let edge = range.start + offset;
                self.follow(
                    edge as u32,
                    slot,
                    LabelRow(target),
                    score * adjacency.scores()[edge],
                );
            }
        }
    }

    /// Keeps the K best paths, and positives and rejected labels if these stay.
    fn cut(&mut self, shortlist_size: usize, keeps_positives: bool) {
        if self.paths.len() <= shortlist_size {
            return;
        }
        let keys = &mut self.keys;
        keys.clear();
        keys.extend(
            self.paths
                .iter()
                .map(|path| descending_key(path.score, path.row.0)),
        );
        let (_, &mut first_out, _) = keys.select_nth_unstable_by(shortlist_size, |a, b| b.cmp(a));
        let dropped = &mut self.dropped_positives;
        self.paths.retain(|path| {
            let stays = descending_key(path.score, path.row.0) > first_out
                || keeps_positives && (path.is_positive || path.is_rejected);
            if !stays && path.is_positive {
                dropped.push(*path);
            }
            stays
        });
    }
}

/// Orders non-negative scores with ties to the lower id: the greater key is the better.
#[inline]
pub(crate) fn descending_key(score: f32, id: u32) -> u64 {
    u64::from(score.to_bits()) << 32 | u64::from(!id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Edges;
    use crate::matrix::Matrix;
    use crate::random::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_shortlist_is_that_of_following_every_path(
            seed in 0u64..100_000, k in 1usize..60, n_labels in 1usize..400, n_targets in 0usize..5,
            floor in prop::sample::select(vec![0.0f32, 0.0, 0.01]), keeps_positives: bool,
        ) {
            let mut random = Random::new(seed, "shortlist", 0);
            let lists: Vec<Vec<LabelRow>> = (0..6)
                .map(|_| (0..n_labels as u32).filter(|_| random.f32() < 0.6).map(LabelRow).collect())
                .collect();
            let edges = Edges::from_lists(lists, n_labels).unwrap();
            // Few different weights, so that many paths tie.
            let weights = (0..edges.len()).map(|_| random.below(4) as f32).collect();
            let adjacency = Adjacency::learned(edges, weights, 20.0).unwrap();
            let clusters = ClusterClassifiers { weights: Matrix::zeros(6, 1), bias: vec![0.0; 6], alpha: 2.0 };
            let probabilities: Vec<f32> = (0..6).map(|_| random.f32()).collect();
            let options = ShortlistOptions { beam_size: 4, shortlist_size: k, score_floor: floor, keeps_positives };
            let mut targets: Vec<u32> = (0..n_targets).map(|_| random.below(n_labels) as u32).collect();
            targets.sort_unstable();
            targets.dedup();
            let values: Vec<f32> = targets.iter().map(|_| 1.0 - 2.0 * random.below(2) as f32).collect();
            let mut searcher = Shortlister::new(n_labels);
            let parents = adjacency.parents();
            let of_targets = targets.iter().filter_map(|&target| parents[target as usize]);
            searcher.select(&clusters, &probabilities, options.beam_size, of_targets);
            searcher.search_selected(&adjacency, &options, (&targets, &values));
            searcher.sort();

            let mut best: Vec<Option<Path>> = vec![None; n_labels];
            for (slot, selection) in searcher.selected.iter().enumerate() {
                for edge in adjacency.edges().range(selection.cluster) {
                    let label = adjacency.edges().rows()[edge];
                    let value = targets.iter().position(|target| *target == label.0).map(|at| values[at]);
                    let is_target = |sign: f32| value == Some(sign);
                    let score = selection.score * adjacency.scores()[edge];
                    let path = Path {
                        row: label,
                        edge: edge as u32,
                        score,
                        slot: slot as u16,
                        is_positive: is_target(1.0),
                        is_rejected: is_target(-1.0),
                    };
                    let known = &mut best[label.idx()];
                    if (score >= floor || value.is_some()) && known.is_none_or(|known| score > known.score) {
                        *known = Some(path);
                    }
                }
            }
            let mut all: Vec<Path> = best.into_iter().flatten().collect();
            all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
            let mut out = all.split_off(k.min(all.len()));
            if keeps_positives {
                out.retain(|path| path.is_positive || path.is_rejected);
                all.append(&mut out);
            }
            out.retain(|path| path.is_positive);
            prop_assert_eq!(&searcher.paths, &all);
            searcher.dropped_positives.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
            prop_assert_eq!(&searcher.dropped_positives, &out);
        }
    }
}
