//! From cluster scores to the shortlist of one point.
//!
//! Selected clusters are the `beam_size` best by ŝ_c, ties to the lower id, then (in training) the parents of
//! the positives in their order. Every edge of a selected cluster is a path of score ŝ_c·ŝ(c,ℓ); a label keeps
//! its best path, the earlier cluster on ties; the K best labels form the shortlist (paper, eqs. 2–6).
//! Cost grows with the edges of the selected clusters, never with L.

use crate::ids::{ClusterId, LabelId};
use crate::index::{Adjacency, ClusterClassifiers};

/// How far the search goes.
#[derive(Clone, Copy, Debug)]
pub struct ShortlistOptions {
    /// b: clusters searched.
    pub beam_size: usize,
    /// K: labels kept.
    pub shortlist_size: usize,
    /// Paths with a lower score are not followed; 0 follows all. Positives are always followed in training.
    pub score_floor: f32,
}

/// The best path to a shortlisted label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// The label.
    pub label: LabelId,
    /// The edge taken, as its position in the adjacency.
    pub edge: u32,
    /// ŷ = ŝ_c·ŝ(c,ℓ).
    pub score: f32,
    /// The selected cluster it runs through, as its position in the selection.
    pub slot: u16,
    /// Whether the label is a positive of the point.
    pub is_positive: bool,
}

/// A cluster that is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// The cluster.
    pub cluster: ClusterId,
    /// ŝ_c.
    pub score: f32,
}

/// Buffers of the search; one a thread.
#[derive(Clone, Debug)]
pub struct Shortlister {
    /// For each label: the search that last met it and where its path stands, packed.
    seen: Vec<u64>,
    search: u32,
    keys: Vec<u64>,
    /// Clusters of the last search: best first, then parents.
    pub selected: Vec<Selection>,
    /// Shortlist of the last search; in no particular order unless [`Shortlister::sort`] was called.
    pub paths: Vec<Path>,
    /// Positives reached by the last search that the cut at K dropped.
    pub dropped_positives: Vec<Path>,
}

impl Shortlister {
    /// Buffers for this many labels.
    pub fn new(n_labels: usize) -> Self {
        Shortlister {
            seen: vec![0; n_labels],
            search: 0,
            keys: Vec::new(),
            selected: Vec::new(),
            paths: Vec::new(),
            dropped_positives: Vec::new(),
        }
    }

    /// Shortlists for prediction. probabilities: C, softmax of the cluster logits.
    pub fn search(
        &mut self,
        clusters: &ClusterClassifiers,
        adjacency: &Adjacency,
        probabilities: &[f32],
        options: &ShortlistOptions,
    ) {
        self.select_best(clusters, probabilities, options.beam_size);
        self.expand(adjacency, &[], options);
    }

    /// Shortlists for training: adds the parents of the positives and marks the positives.
    ///
    /// `positives` ascend; a positive without a parent cannot be reached.
    pub fn search_with_parents(
        &mut self,
        clusters: &ClusterClassifiers,
        adjacency: &Adjacency,
        probabilities: &[f32],
        options: &ShortlistOptions,
        (positives, parents): (&[u32], &[Option<ClusterId>]),
    ) {
        self.select_best(clusters, probabilities, options.beam_size);
        for &positive in positives {
            let Some(parent) = parents[positive as usize] else {
                continue;
            };
            if self
                .selected
                .iter()
                .all(|selection| selection.cluster != parent)
            {
                let score = clusters.score(probabilities[parent.idx()]);
                self.selected.push(Selection {
                    cluster: parent,
                    score,
                });
            }
        }
        self.expand(adjacency, positives, options);
    }

    /// Puts the shortlist in descending score, ties to the lower label.
    pub fn sort(&mut self) {
        self.paths.sort_unstable_by_key(|path| {
            std::cmp::Reverse(descending_key(path.score, path.label.0))
        });
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
        if beam_size < keys.len() {
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

    fn expand(&mut self, adjacency: &Adjacency, positives: &[u32], options: &ShortlistOptions) {
        self.start_search();
        // Paths below the floor cannot enter the shortlist. It rises to the K-th best score met so far.
        let mut floor = options.score_floor;
        let mut raise_at = options
            .shortlist_size
            .saturating_add(options.shortlist_size / 4 + 1);
        for slot in 0..self.selected.len() {
            let Selection { cluster, score } = self.selected[slot];
            let range = adjacency.edges().range(cluster);
            if floor <= score * adjacency.best_score(cluster) {
                let labels = &adjacency.edges().labels()[range.clone()];
                let edge_scores = &adjacency.scores()[range.clone()];
                for (offset, (&label, &edge_score)) in labels.iter().zip(edge_scores).enumerate() {
                    let path_score = score * edge_score;
                    if floor <= path_score {
                        self.follow((range.start + offset) as u32, slot, label, path_score);
                    }
                }
            }
            if 0.0 < floor {
                self.follow_positives(adjacency, slot, positives);
            }
            if raise_at <= self.paths.len() {
                floor = floor.max(self.kth_best_score(options.shortlist_size));
                raise_at = self.paths.len() + options.shortlist_size / 2 + 1;
            }
        }
        for &positive in positives {
            if let Some(at) = self.position(LabelId(positive)) {
                self.paths[at].is_positive = true;
            }
        }
        self.cut(options.shortlist_size);
    }

    /// The K-th best score among the paths met so far, of which there are more than K.
    fn kth_best_score(&mut self, shortlist_size: usize) -> f32 {
        let keys = &mut self.keys;
        keys.clear();
        keys.extend(
            self.paths
                .iter()
                .map(|path| u64::from(path.score.to_bits())),
        );
        let at = shortlist_size.max(1) - 1;
        let (_, kth, _) = keys.select_nth_unstable_by(at, |a, b| b.cmp(a));
        f32::from_bits(*kth as u32)
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
    fn position(&self, label: LabelId) -> Option<usize> {
        let seen = self.seen[label.idx()];
        ((seen >> 32) as u32 == self.search).then_some(seen as u32 as usize)
    }

    #[inline]
    fn follow(&mut self, edge: u32, slot: usize, label: LabelId, score: f32) {
        let path = Path {
            label,
            edge,
            score,
            slot: slot as u16,
            is_positive: false,
        };
        let seen = &mut self.seen[label.idx()];
        if (*seen >> 32) as u32 == self.search {
            let known = &mut self.paths[*seen as u32 as usize];
            if known.score < score {
                *known = path;
            }
        } else {
            *seen = u64::from(self.search) << 32 | self.paths.len() as u64;
            self.paths.push(path);
        }
    }

    /// Follows only the edges of one selected cluster that lead to positives.
    fn follow_positives(&mut self, adjacency: &Adjacency, slot: usize, positives: &[u32]) {
        let Selection { cluster, score } = self.selected[slot];
        let range = adjacency.edges().range(cluster);
        for &positive in positives {
            let row = &adjacency.edges().labels()[range.clone()];
            if let Ok(offset) = row.binary_search(&LabelId(positive)) {
                let edge = range.start + offset;
                self.follow(
                    edge as u32,
                    slot,
                    LabelId(positive),
                    score * adjacency.scores()[edge],
                );
            }
        }
    }

    /// Keeps the K best paths.
    fn cut(&mut self, shortlist_size: usize) {
        if self.paths.len() <= shortlist_size {
            return;
        }
        let keys = &mut self.keys;
        keys.clear();
        keys.extend(
            self.paths
                .iter()
                .map(|path| descending_key(path.score, path.label.0)),
        );
        let (_, &mut first_out, _) = keys.select_nth_unstable_by(shortlist_size, |a, b| b.cmp(a));
        let dropped = &mut self.dropped_positives;
        self.paths.retain(|path| {
            let stays = first_out < descending_key(path.score, path.label.0);
            if !stays && path.is_positive {
                dropped.push(*path);
            }
            stays
        });
    }
}

/// Orders non-negative scores with ties to the lower id: the greater key is the better.
#[inline]
fn descending_key(score: f32, id: u32) -> u64 {
    u64::from(score.to_bits()) << 32 | u64::from(!id)
}
