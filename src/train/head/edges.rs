//! Part 4: gradients of the rows of A, and their update.

use rayon::prelude::*;

use super::LossWeights;
use super::labels::{RangeBuffers, take};
use super::search::ShardBuffers;
use crate::config::SecondMoments;
use crate::index::{Adjacency, edge_gradient, edge_scores};
use crate::kernels::Kernels;
use crate::optim::{RowMoments, StepRates};

/// Gradients of the learned edges that wait to be applied, and AdamW's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EdgeState {
    /// ∂L/∂log ŝ(c,ℓ), an edge each; zero outside touched rows.
    pub(crate) gradient: Vec<f32>,
    /// Clusters whose rows have a gradient.
    pub(crate) touched: Vec<bool>,
    pub(crate) moments: RowMoments,
}

/// One row of A with its state.
struct EdgeRow<'a> {
    weights: &'a mut [f32],
    scores: &'a mut [f32],
    best: &'a mut f32,
    gradient: &'a mut [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
    n_updates: &'a mut u32,
}

impl EdgeState {
    pub(crate) fn new(adjacency: &Adjacency) -> Self {
        let (n_clusters, n_edges) = (adjacency.edges().n_clusters(), adjacency.edges().len());
        EdgeState {
            gradient: vec![0.0; n_edges],
            touched: vec![false; n_clusters],
            moments: RowMoments::new(n_clusters, n_edges, SecondMoments::Coordinate),
        }
    }

    /// Adds the gradients of a step.
    pub(super) fn collect(
        &mut self,
        ranges: &[RangeBuffers],
        shards: &[ShardBuffers],
        weights: LossWeights,
    ) {
        for range in ranges {
            for &(edge, gradient) in &range.d_edges {
                self.gradient[edge as usize] += gradient;
            }
        }
        for shard in shards {
            for pair in &shard.dropped {
                self.gradient[pair.edge as usize] -= weights.shortlist;
            }
            for &cluster in &shard.touched_clusters {
                self.touched[cluster as usize] = true;
            }
        }
    }

    /// Updates the touched rows, refreshes their scores and clears their gradients.
    pub(crate) fn apply(&mut self, adjacency: &mut Adjacency, rates: &StepRates) {
        let rows = self.touched_rows(adjacency);
        rows.into_par_iter()
            .for_each_init(Vec::new, |softmax, (row, beta)| {
                edge_gradient(row.weights, row.scores, row.gradient, softmax);
                *row.n_updates += 1;
                let step = rates.adamw(rates.edges, *row.n_updates);
                Kernels::detect().adamw(&step, row.weights, row.gradient, row.m, row.v);
                *row.best = edge_scores(row.weights, beta, row.scores);
                row.gradient.fill(0.0);
            });
        self.touched.fill(false);
    }

    /// The touched rows, each with β.
    fn touched_rows<'a>(&'a mut self, adjacency: &'a mut Adjacency) -> Vec<(EdgeRow<'a>, f32)> {
        let Some(learned) = adjacency.learned_mut() else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        let (mut weights, mut scores, mut best) = (learned.weights, learned.scores, learned.best);
        let (mut gradient, mut m, mut v) = (
            self.gradient.as_mut_slice(),
            self.moments.m.as_mut_slice(),
            self.moments.v.as_mut_slice(),
        );
        let mut n_updates = self.moments.n_updates.as_mut_slice();
        for (ends, &touched) in learned.indptr.windows(2).zip(&self.touched) {
            let n_edges = ends[1] - ends[0];
            let row = EdgeRow {
                weights: take(&mut weights, n_edges),
                scores: take(&mut scores, n_edges),
                best: &mut take(&mut best, 1)[0],
                gradient: take(&mut gradient, n_edges),
                m: take(&mut m, n_edges),
                v: take(&mut v, n_edges),
                n_updates: &mut take(&mut n_updates, 1)[0],
            };
            if touched {
                rows.push((row, learned.beta));
            }
        }
        rows
    }
}
