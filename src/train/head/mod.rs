//! One training step of the head: index and label classifiers, forward and backward.
//!
//! [`crate::reference`] is the same step as the paper writes it. This one runs in four parts, each parallel over pieces
//! whose bounds do not depend on the number of threads:
//! 1. `search`: shards of points find their clusters and shortlists, sorted into ranges of labels;
//! 2. `labels`: ranges of labels; each shortlisted row of W_L is read once a batch, scored against all points
//!    that shortlisted it, and its gradient is handed on or applied at once;
//! 3. `clusters`: shards of points collect the gradients of embeddings and cluster logits;
//! 4. `edges`: rows of A.
//!
//! The head has the rows of W_L and the edges of A that its process owns, and what these need of others is put together
//! in five places: the cut at K, the counts of the batch, the two sums over ranges of labels, and the losses. Many
//! clusters are cut into ranges as labels are (`cluster_ranges`). The large buffers are kept from step to step; what is
//! put together, and short lists of slices, are allocated in each.

mod cluster_ranges;
mod clusters;
mod edges;
mod filling;
mod label_state;
mod labels;
mod search;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod recipe_tests;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use crate::classifiers::LabelClassifiers;
use crate::communicator::{Communicator, Ranges, shares_clusters};
use crate::ids::ClusterId;
use crate::index::{Adjacency, ClusterClassifiers, Selection, ShortlistOptions, Shortlister};
use crate::kernels::Aligned;
use crate::matrix::{CsrMatrix, Matrix};
use crate::pool::Pool;

pub(crate) use edges::EdgeState;
pub(crate) use filling::Filling;
pub(crate) use label_state::{LabelGradients, LabelMoments, LabelState};

use labels::{RangeBuffers, RangeInputs};
use search::ShardBuffers;

/// Points per shard.
const SHARD: usize = 16;

/// The parameters of the head.
pub(crate) struct HeadMut<'a> {
    pub(crate) clusters: &'a ClusterClassifiers,
    pub(crate) adjacency: &'a Adjacency,
    pub(crate) classifiers: &'a mut LabelClassifiers,
}

/// The points of a step.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    /// φ after dropout, B×d.
    pub(crate) embeddings: &'a Matrix,
    /// Y of all points, with a negative value for labels that were rejected.
    pub(crate) targets: &'a CsrMatrix,
    /// The factor of each point's losses, of all points.
    pub(crate) point_weights: &'a [f32],
    /// The points of the batch, as rows of `targets`.
    pub(crate) rows: &'a [u32],
    /// The strongest cluster of every label.
    pub(crate) parents: &'a [Option<ClusterId>],
    /// The random clusters that are searched besides, if there are any.
    pub(crate) filling: Option<Filling>,
}

impl Batch<'_> {
    fn targets(&self, point: usize) -> (&[u32], &[f32]) {
        self.targets.row(self.rows[point] as usize)
    }

    /// The clusters searched for a point besides its beam: the parents of its targets, in their order, then random ones.
    fn others(&self, point: usize) -> impl Iterator<Item = ClusterId> {
        let targets = self.targets(point).0.iter();
        let parents = targets.filter_map(|&target| self.parents[target as usize]);
        let random = self.filling.iter();
        parents.chain(random.flat_map(move |filling| filling.clusters(point)))
    }

    /// Leaves the clusters that are searched of those that were selected for a point.
    fn thin(&self, point: usize, selected: &mut Vec<Selection>, beam_size: usize) {
        if let Some(filling) = self.filling {
            filling.thin(point, selected, beam_size);
        }
    }

    /// The most labels that a point has or rejects.
    pub(crate) fn most_targets(&self) -> usize {
        let counts = (0..self.rows.len()).map(|point| self.targets(point).0.len());
        counts.max().unwrap_or(0)
    }
}

/// Options of a step.
#[derive(Clone, Copy)]
pub(crate) struct HeadOptions<'a> {
    pub(crate) shortlist: ShortlistOptions,
    /// Negatives whose derivatives are both lower pass no gradient.
    pub(crate) gradient_floor: f32,
    /// Multipliers of L_c and L_s, from the counts of the batch.
    pub(crate) weights: &'a (dyn Fn(&BatchCounts) -> LossWeights + Sync),
}

/// Counts that the reduction of the loss depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchCounts {
    pub(crate) n_points: usize,
    /// Shortlisted labels of all points.
    pub(crate) n_pairs: usize,
    /// K.
    pub(crate) shortlist_size: usize,
    /// P: labels of the point that has or rejects most.
    pub(crate) most_targets: usize,
}

/// Multipliers of the two losses, besides the weight of each point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LossWeights {
    pub(crate) classification: f32,
    pub(crate) shortlist: f32,
}

/// Losses of a batch, as plain sums.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadLoss {
    pub(crate) classification: f64,
    pub(crate) shortlist: f64,
    pub(crate) counts: BatchCounts,
}

/// Gradients of a batch, besides those of W_L and A, which go to their states.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeadGradients {
    /// ∂L/∂φ, B×d.
    pub(crate) embeddings: Matrix,
    /// ∂L/∂W_C, C×d.
    pub(crate) cluster_weights: Vec<f32>,
    /// ∂L/∂b_C.
    pub(crate) cluster_bias: Vec<f32>,
    /// The clusters whose gradients these are.
    pub(crate) cluster_ranges: Vec<Range<usize>>,
}

/// The head's buffers.
pub(crate) struct Head<'r> {
    communicator: &'r dyn Communicator,
    n_labels: usize,
    /// A copy of φ.
    embeddings: Aligned,
    /// The weights of the points, B.
    point_weights: Vec<f32>,
    shards: Vec<ShardBuffers>,
    /// The ranges of labels that this process owns.
    ranges: Vec<RangeBuffers>,
    /// Most selections per point: the stride of per-selection arrays.
    n_slots: usize,
    /// ∂L/∂log ŝ_c of selected clusters.
    d_slots: Vec<f32>,
    d_logits: Matrix,
    searchers: Pool<Shortlister>,
    pub(crate) gradients: HeadGradients,
}

impl<'r> Head<'r> {
    /// Buffers for this many labels and clusters, of which the process owns its part.
    pub(crate) fn new(
        n_labels: usize,
        n_clusters: usize,
        communicator: &'r dyn Communicator,
    ) -> Self {
        let labels = Ranges::of(n_labels);
        Head {
            communicator,
            n_labels,
            embeddings: Aligned::default(),
            point_weights: Vec::new(),
            shards: Vec::new(),
            ranges: communicator
                .own_ranges()
                .map(|range| RangeBuffers::new(range, labels.get(range)))
                .collect(),
            n_slots: 0,
            d_slots: Vec::new(),
            d_logits: Matrix::default(),
            searchers: Pool::new(),
            gradients: HeadGradients {
                cluster_ranges: communicator.own_clusters(n_clusters),
                ..HeadGradients::default()
            },
        }
    }

    /// One step: forward, losses, and all gradients.
    ///
    /// Gradients of W_L go to `label_state` (which may apply them at once), those of A to `edge_state`.
    pub(crate) fn step(
        &mut self,
        head: HeadMut<'_>,
        batch: Batch<'_>,
        options: &HeadOptions<'_>,
        label_state: &mut LabelState<'_>,
        edge_state: Option<&mut EdgeState>,
    ) -> HeadLoss {
        let HeadMut {
            clusters,
            adjacency,
            classifiers,
        } = head;
        self.embeddings.copy_from(batch.embeddings.values());
        self.point_weights.clear();
        let weight = |row: &u32| batch.point_weights[*row as usize];
        self.point_weights.extend(batch.rows.iter().map(weight));
        let found = self.search(clusters, adjacency, batch, &options.shortlist);
        let weights = (options.weights)(&found.counts);

        let inputs = RangeInputs {
            embeddings: &self.embeddings,
            dim: batch.embeddings.n_cols(),
            weights,
            point_weights: &self.point_weights,
            gradient_floor: options.gradient_floor,
            n_slots: self.n_slots,
            wants_edges: edge_state.is_some(),
        };
        let shards = &self.shards;
        let own = self.ranges.iter().map(|range| range.labels.len());
        let rows = label_state.split(classifiers, own);
        let ranges = self.ranges.par_iter_mut().zip(rows);
        ranges.for_each(|(range, rows)| range.step(shards, rows, &inputs));

        self.sum_slots(batch.rows.len(), &found.dropped, weights);
        if shares_clusters(clusters.n_clusters()) {
            self.collect_range_gradients(clusters, batch);
        } else {
            self.collect_point_gradients(clusters, batch);
        }
        let of_ranges = self.ranges.iter().map(|range| &range.d_embeddings[..]);
        let embeddings = self.gradients.embeddings.values_mut();
        self.communicator.sum_in_order(of_ranges, embeddings);

        if let Some(edge_state) = edge_state {
            edge_state.collect(&self.ranges, &self.shards, &self.point_weights, weights);
        }
        self.loss(found.counts)
    }

    /// ∂L/∂log ŝ_c of selected clusters, from all ranges and from the positives that the cut at K dropped.
    fn sum_slots(&mut self, n_points: usize, dropped: &[u32], weights: LossWeights) {
        self.d_slots.clear();
        self.d_slots.resize(n_points * self.n_slots, 0.0);
        let of_ranges = self.ranges.iter().map(|range| &range.d_slots[..]);
        self.communicator.sum_in_order(of_ranges, &mut self.d_slots);
        for &slot in dropped {
            let weight = self.point_weights[slot as usize / self.n_slots];
            self.d_slots[slot as usize] -= weight * weights.shortlist;
        }
    }

    /// The losses of all ranges, added up in their order.
    fn loss(&self, counts: BatchCounts) -> HeadLoss {
        let own = self.ranges.iter().map(|range| range.losses).collect();
        let all = self.communicator.gather(own);
        HeadLoss {
            classification: all.iter().map(|losses| losses[0]).sum(),
            shortlist: all.iter().map(|losses| losses[1]).sum(),
            counts,
        }
    }
}
