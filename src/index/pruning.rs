//! Removing weak edges of a learned adjacency.
//!
//! An edge goes if its score ŝ(c,ℓ) is below a threshold, or if it is not among the k strongest of its cluster; the
//! strongest edge of every label stays, so that no label is lost, unless the caller wants that. The edges left keep
//! their scores: the removed edges' share of each cluster's softmax is kept, so that the rest does not get stronger,
//! unless the caller wants that, too.

use crate::error::Result;
use crate::ids::{ClusterId, LabelRow};
use crate::index::{Adjacency, Edges};

/// The edges to remove.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// Those with a lower score ŝ(c,ℓ).
    Threshold(f32),
    /// All but this many strongest of each cluster, ties to the lower label.
    TopK(usize),
}

/// The treatment of a label that would lose all of its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostLabels {
    /// It keeps its strongest edge.
    Rescued,
    /// It can no longer be found (the paper's tables).
    Dropped,
}

/// The share that removed edges had of their cluster's softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedShare {
    /// Nobody gets it: the edges left keep their scores.
    Kept,
    /// The edges left get it in proportion to theirs (the authors' code, for its table of the top k).
    Spread,
}

/// The edges to prune, and the treatment of the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pruning {
    /// The edges to remove.
    pub cut: Cut,
    /// Labels that would lose all of theirs.
    pub lost: LostLabels,
    /// Their share of the softmax.
    pub share: RemovedShare,
}

impl From<Cut> for Pruning {
    /// A pruning that loses no label and makes no edge stronger.
    fn from(cut: Cut) -> Self {
        Pruning {
            cut,
            lost: LostLabels::Rescued,
            share: RemovedShare::Kept,
        }
    }
}

/// An adjacency after pruning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pruned {
    /// The edges left.
    pub adjacency: Adjacency,
    /// Edges that were removed.
    pub n_removed: usize,
    /// Labels that the cut alone would have made unreachable, and that kept their strongest edge.
    pub n_rescued: usize,
}

impl Adjacency {
    /// This adjacency without its weak edges.
    ///
    /// # Errors
    /// [`Error::InvalidModel`](crate::error::Error::InvalidModel) if a weight cannot be represented.
    pub(crate) fn pruned(&self, pruning: impl Into<Pruning>) -> Result<Pruned> {
        let Pruning { cut, lost, share } = pruning.into();
        let edges = self.edges();
        let mut stays = vec![false; edges.len()];
        for cluster_idx in 0..edges.n_clusters() {
            self.choose(ClusterId(cluster_idx as u32), cut, &mut stays);
        }
        let n_rescued = match lost {
            LostLabels::Rescued => self.rescue(&mut stays),
            LostLabels::Dropped => 0,
        };

        let mut lists: Vec<Vec<LabelRow>> = Vec::with_capacity(edges.n_clusters());
        let mut weights = Vec::new();
        let mut removed = Vec::with_capacity(edges.n_clusters());
        for cluster_idx in 0..edges.n_clusters() {
            let cluster = ClusterId(cluster_idx as u32);
            let kept: Vec<usize> = edges.range(cluster).filter(|&edge| stays[edge]).collect();
            lists.push(kept.iter().map(|&edge| edges.rows()[edge]).collect());
            if let Some(all) = self.weights() {
                let lost = edges.range(cluster).filter(|&edge| !stays[edge]);
                removed.push(self.share_without(cluster, lost.map(|edge| all[edge])));
                weights.extend(kept.iter().map(|&edge| all[edge]));
            }
        }
        let left = Edges::from_lists(lists, edges.n_labels())?;
        let n_removed = edges.len() - left.len();
        let adjacency = match self.beta() {
            Some(beta) if share == RemovedShare::Spread => Adjacency::learned(left, weights, beta)?,
            Some(beta) if n_removed == 0 && self.removed().is_none() => {
                Adjacency::learned(left, weights, beta)?
            }
            Some(beta) => Adjacency::learned(left, weights, beta)?.with_removed(removed)?,
            None => Adjacency::fixed(left),
        };
        Ok(Pruned {
            adjacency,
            n_removed,
            n_rescued,
        })
    }

    /// The share of a cluster's softmax that was removed, once these weights of it go too; 0 if nothing is left.
    fn share_without(&self, cluster: ClusterId, lost: impl Iterator<Item = f32>) -> f32 {
        let all = self
            .weights()
            .map_or(&[][..], |weights| &weights[self.edges().range(cluster)]);
        let highest = all.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        // In f64: a thousand small terms count.
        let mass = |weight: f32| f64::from(weight - highest).exp();
        let total: f64 = all.iter().map(|&weight| mass(weight)).sum();
        let lost: f64 = lost.map(mass).sum();
        let before = self.removed().map_or(0.0, |removed| removed[cluster.idx()]);
        let share = 1.0 - (1.0 - f64::from(before)) * (1.0 - lost / total);
        if share < 1.0 && share.is_finite() {
            (share as f32).clamp(0.0, 1.0 - f32::EPSILON)
        } else {
            0.0
        }
    }

    /// Marks the edges of one cluster that the cut leaves.
    fn choose(&self, cluster: ClusterId, cut: Cut, stays: &mut [bool]) {
        let range = self.edges().range(cluster);
        match cut {
            Cut::Threshold(threshold) => {
                for edge in range {
                    stays[edge] = self.scores()[edge] >= threshold;
                }
            }
            Cut::TopK(k) => {
                // Saturated edges tie by score; their weights still differ.
                let strength = |edge: usize| match self.weights() {
                    Some(weights) => weights[edge],
                    None => self.scores()[edge],
                };
                let mut order: Vec<usize> = range.collect();
                order.sort_by(|&a, &b| strength(b).total_cmp(&strength(a)).then(a.cmp(&b)));
                order.iter().take(k).for_each(|&edge| stays[edge] = true);
            }
        }
    }

    /// Lets every label that has an edge keep its strongest, ties to the lower cluster.
    fn rescue(&self, stays: &mut [bool]) -> usize {
        let edges = self.edges();
        let mut is_reached = vec![false; edges.n_labels()];
        let mut strongest: Vec<Option<usize>> = vec![None; edges.n_labels()];
        for (edge, label) in edges.rows().iter().enumerate() {
            is_reached[label.idx()] |= stays[edge];
            let best = &mut strongest[label.idx()];
            if best.is_none_or(|best| self.scores()[edge] > self.scores()[best]) {
                *best = Some(edge);
            }
        }
        let rescued: Vec<usize> = strongest
            .iter()
            .zip(&is_reached)
            .filter(|(_, is_reached)| !**is_reached)
            .filter_map(|(edge, _)| *edge)
            .collect();
        rescued.iter().for_each(|&edge| stays[edge] = true);
        rescued.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adjacency() -> Adjacency {
        let ids = |ids: &[u32]| ids.iter().map(|&id| LabelRow(id)).collect::<Vec<_>>();
        let edges = Edges::from_lists(vec![ids(&[0, 1, 2, 3]), ids(&[1, 3])], 4).unwrap();
        Adjacency::learned(edges, vec![5.0, 2.0, 1.0, 0.0, 3.0, 1.0], 3.0).unwrap()
    }

    #[test]
    fn what_stays_keeps_its_score_and_no_label_is_lost() {
        let before = adjacency();
        let pruned = before.pruned(Cut::Threshold(0.1)).unwrap();
        // Label 1 stays in both clusters, 3 in the second; 2 has a single edge of score below 0.1, which is kept.
        let after = &pruned.adjacency;
        assert_eq!(after.edges().indptr(), [0, 3, 5]);
        assert_eq!((pruned.n_removed, pruned.n_rescued), (1, 1));
        assert!(after.edges().unreachable().is_empty());
        let kept = [0, 1, 2, 4, 5].map(|edge: usize| before.scores()[edge]);
        for (before, after) in kept.iter().zip(after.scores()) {
            assert!((before - after).abs() < 1e-6, "{before} {after}");
        }
    }

    #[test]
    fn the_strongest_of_each_cluster_stay() {
        let pruned = adjacency().pruned(Cut::TopK(1)).unwrap();
        let labels: Vec<u32> = pruned
            .adjacency
            .edges()
            .rows()
            .iter()
            .map(|l| l.0)
            .collect();
        assert_eq!(labels, [0, 2, 1, 3]);
        assert_eq!((pruned.n_removed, pruned.n_rescued), (2, 2));
        let all = adjacency().pruned(Cut::TopK(4)).unwrap();
        assert_eq!((all.n_removed, all.adjacency), (0, adjacency()));
        let strict = adjacency()
            .pruned(Pruning {
                lost: LostLabels::Dropped,
                ..Cut::TopK(1).into()
            })
            .unwrap();
        assert_eq!((strict.n_removed, strict.n_rescued), (4, 0));
        let lost = strict.adjacency.edges().unreachable();
        assert_eq!(lost, [LabelRow(2), LabelRow(3)]);
    }

    #[test]
    fn pruning_twice_is_pruning_once() {
        let twice = adjacency()
            .pruned(Cut::TopK(3))
            .unwrap()
            .adjacency
            .pruned(Cut::TopK(2))
            .unwrap()
            .adjacency;
        let once = adjacency().pruned(Cut::TopK(2)).unwrap().adjacency;
        assert_eq!(twice.edges(), once.edges());
        for (twice, once) in twice.scores().iter().zip(once.scores()) {
            assert!((twice - once).abs() < 1e-6, "{twice} {once}");
        }
        assert!(once.removed().unwrap()[0] < 1.0);
        assert!(once.clone().with_removed(vec![1.0, 0.0]).is_err());
        assert!(once.with_removed(vec![0.0]).is_err());
    }

    #[test]
    fn the_share_of_removed_edges_can_be_spread_over_those_that_stay() {
        let pruned = adjacency().pruned(Pruning {
            cut: Cut::TopK(2),
            lost: LostLabels::Dropped,
            share: RemovedShare::Spread,
        });
        let pruned = pruned.unwrap().adjacency;
        // softmax(5, 2) and softmax(3, 1), times β = 3, at most 1.
        let expected = [1.0, 3.0 / (1.0 + 3f32.exp()), 1.0, 3.0 / (1.0 + 2f32.exp())];
        for (got, expected) in pruned.scores().iter().zip(expected) {
            assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        }
        assert!(pruned.removed().is_none());
    }
}
