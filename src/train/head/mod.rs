//! One training step of the head: index and label classifiers, forward and backward.
//!
//! The step runs in four parts, each parallel over pieces whose bounds do not depend on the number of threads:
//! 1. `search`: shards of points find their clusters and shortlists, sorted into ranges of labels;
//! 2. `labels`: ranges of labels; each shortlisted row of W_L is read once a batch, scored against all points
//!    that shortlisted it, and its gradient is handed on or applied at once;
//! 3. `clusters`: shards of points collect the gradients of embeddings and cluster logits;
//! 4. `edges`: rows of A.
//!
//! Buffers are kept from step to step; nothing is allocated once they have grown.

mod clusters;
mod edges;
mod labels;
mod search;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::classifiers::LabelClassifiers;
use crate::ids::ClusterId;
use crate::index::{Adjacency, ClusterClassifiers, ShortlistOptions, Shortlister};
use crate::matrix::{CsrMatrix, Matrix};
use crate::pool::Pool;

pub(crate) use edges::EdgeState;
pub(crate) use labels::{LabelGradients, LabelMoments, LabelState};

use labels::RangeBuffers;
use search::ShardBuffers;

/// Ranges that the labels are cut into. More even out the work; each holds a gradient of the embeddings.
pub(super) const N_RANGES: usize = 16;
/// Points a shard.
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
    /// Y of all points.
    pub(crate) labels: &'a CsrMatrix,
    /// The points of the batch, as rows of `labels`.
    pub(crate) rows: &'a [u32],
    /// The strongest cluster of every label.
    pub(crate) parents: &'a [Option<ClusterId>],
}

impl Batch<'_> {
    fn positives(&self, point: usize) -> &[u32] {
        self.labels.row(self.rows[point] as usize).0
    }
}

/// Options of a step.
#[derive(Clone, Copy)]
pub(crate) struct HeadOptions<'a> {
    pub(crate) shortlist: ShortlistOptions,
    /// Negatives whose derivatives are both lower pass no gradient.
    pub(crate) gradient_floor: f32,
    /// From the counts of the batch to what L_c and L_s are multiplied by.
    pub(crate) weights: &'a (dyn Fn(&BatchCounts) -> LossWeights + Sync),
}

/// Counts that the reduction of the loss depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchCounts {
    pub(crate) n_points: usize,
    /// Shortlisted labels of all points.
    pub(crate) n_pairs: usize,
    /// Positives that the search reached.
    pub(crate) n_positives: usize,
}

/// Multipliers of the two losses.
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
}

/// The head's buffers.
pub(crate) struct Head {
    n_labels: usize,
    shards: Vec<ShardBuffers>,
    ranges: Vec<RangeBuffers>,
    /// Most selections per point: the stride of per-selection arrays.
    n_slots: usize,
    d_logits: Matrix,
    searchers: Pool<Shortlister>,
    pub(crate) gradients: HeadGradients,
}

impl Head {
    /// Buffers for this many labels.
    pub(crate) fn new(n_labels: usize) -> Self {
        Head {
            n_labels,
            shards: Vec::new(),
            ranges: (0..N_RANGES)
                .map(|range| RangeBuffers::new(range, bounds(n_labels, range)))
                .collect(),
            n_slots: 0,
            d_logits: Matrix::default(),
            searchers: Pool::new(),
            gradients: HeadGradients::default(),
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
        let mut loss = self.search(clusters, adjacency, batch, &options.shortlist);
        let weights = (options.weights)(&loss.counts);

        let (shards, n_slots) = (&self.shards, self.n_slots);
        let wants_edges = edge_state.is_some();
        let rows = label_state.split(classifiers, &range_bounds(self.n_labels));
        self.ranges
            .par_iter_mut()
            .zip(rows)
            .for_each(|(range, rows)| {
                let scoring = labels::Scoring {
                    embeddings: batch.embeddings,
                    weights,
                    gradient_floor: options.gradient_floor,
                    n_slots,
                    wants_edges,
                };
                range.step(shards, rows, &scoring);
            });
        loss.classification = self.ranges.iter().map(|range| range.loss).sum();

        self.collect_point_gradients(clusters, batch, weights);
        if let Some(edge_state) = edge_state {
            edge_state.collect(&self.ranges, &self.shards, weights);
        }
        loss
    }
}

/// The labels of one range.
fn bounds(n_labels: usize, range: usize) -> std::ops::Range<usize> {
    n_labels * range / N_RANGES..n_labels * (range + 1) / N_RANGES
}

/// Where the ranges start and end.
fn range_bounds(n_labels: usize) -> Vec<std::ops::Range<usize>> {
    (0..N_RANGES).map(|range| bounds(n_labels, range)).collect()
}
