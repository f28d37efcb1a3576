//! Part 4: gradients of the rows of A, and their update.

use std::ops::Range;

use rayon::prelude::*;

use super::LossWeights;
use super::label_state::take;
use super::labels::RangeBuffers;
use super::search::ShardBuffers;
use crate::communicator::Communicator;
use crate::config::{RowUpdates, SecondMoments};
use crate::ids::LabelRow;
use crate::index::{
    Adjacency, Norm, edge_gradient, edge_scores, exponentials, highest, passed_gradients, segments,
};
use crate::kernels::Kernels;
use crate::optim::{RowMoments, StepRates};

/// Gradients of the learned edges that wait to be applied, and AdamW's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EdgeState {
    /// ∂L/∂log ŝ(c,ℓ), one per edge; zero outside touched rows.
    pub(crate) gradient: Vec<f32>,
    /// Clusters whose rows have a gradient.
    pub(crate) touched: Vec<bool>,
    pub(crate) moments: RowMoments,
}

/// One row of A with its state.
struct EdgeRow<'a> {
    labels: &'a [LabelRow],
    n_labels: usize,
    weights: &'a mut [f32],
    scores: &'a mut [f32],
    best: &'a mut f32,
    norm: &'a mut Norm,
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
        point_weights: &[f32],
        weights: LossWeights,
    ) {
        for range in ranges {
            for &(edge, gradient) in &range.d_edges {
                self.gradient[edge as usize] += gradient;
            }
        }
        for shard in shards {
            for pair in &shard.dropped {
                let weight = point_weights[pair.point as usize];
                self.gradient[pair.edge as usize] -= weight * weights.shortlist;
            }
            for &cluster in &shard.touched_clusters {
                self.touched[cluster as usize] = true;
            }
        }
    }

    /// Updates the touched rows, refreshes their scores and clears their gradients.
    ///
    /// The sums and the highest weight of a row are those of its edges into all labels, of which these may be a part.
    pub(crate) fn apply(
        &mut self,
        adjacency: &mut Adjacency,
        rates: &StepRates,
        updates: RowUpdates,
        communicator: &dyn Communicator,
    ) {
        let ranges = communicator.own_ranges();
        if updates == RowUpdates::All {
            self.touched.fill(true);
        }
        let (mut rows, beta) = self.touched_rows(adjacency);
        let passed = rows.par_iter_mut().flat_map_iter(|row| {
            passed_gradients(row.scores, row.gradient, row.segments(ranges.clone()))
        });
        let totals = communicator.sum_ranges(passed.collect());

        let updated = rows.par_iter_mut().zip(&totals);
        let mut tops: Vec<f32> = updated
            .map_init(Vec::new, |softmax, (row, &total)| {
                row.update(total, rates, softmax)
            })
            .collect();
        communicator.max(&mut tops);
        refresh(&mut rows, &tops, beta, communicator);
        self.touched.fill(false);
    }

    /// Gives the edges other weights.
    pub(crate) fn replace_weights(
        &mut self,
        adjacency: &mut Adjacency,
        weights: &[f32],
        communicator: &dyn Communicator,
    ) {
        if let Some(learned) = adjacency.learned_mut() {
            learned.weights.copy_from_slice(weights);
        }
        self.touched.fill(true);
        let (mut rows, beta) = self.touched_rows(adjacency);
        let mut tops: Vec<f32> = rows.iter().map(|row| highest(row.weights)).collect();
        communicator.max(&mut tops);
        refresh(&mut rows, &tops, beta, communicator);
        self.touched.fill(false);
    }

    /// The touched rows, and β.
    fn touched_rows<'a>(&'a mut self, adjacency: &'a mut Adjacency) -> (Vec<EdgeRow<'a>>, f32) {
        let mut rows = Vec::new();
        let Some(learned) = adjacency.learned_mut() else {
            return (rows, 1.0);
        };
        let (mut weights, mut scores, mut best) = (learned.weights, learned.scores, learned.best);
        let (mut gradient, mut m, mut v) = (
            self.gradient.as_mut_slice(),
            self.moments.m.as_mut_slice(),
            self.moments.v.as_mut_slice(),
        );
        let mut n_updates = self.moments.n_updates.as_mut_slice();
        let mut norms = learned.norms;
        for (ends, &touched) in learned.edges.indptr().windows(2).zip(&self.touched) {
            let n_edges = ends[1] - ends[0];
            let row = EdgeRow {
                labels: &learned.edges.rows()[ends[0]..ends[1]],
                n_labels: learned.edges.n_labels(),
                weights: take(&mut weights, n_edges),
                scores: take(&mut scores, n_edges),
                best: &mut take(&mut best, 1)[0],
                norm: &mut take(&mut norms, 1)[0],
                gradient: take(&mut gradient, n_edges),
                m: take(&mut m, n_edges),
                v: take(&mut v, n_edges),
                n_updates: &mut take(&mut n_updates, 1)[0],
            };
            if touched {
                rows.push(row);
            }
        }
        (rows, learned.beta)
    }
}

/// The scores of rows whose weights have changed; `tops` are the highest weights.
fn refresh(rows: &mut [EdgeRow<'_>], tops: &[f32], beta: f32, communicator: &dyn Communicator) {
    let ranges = communicator.own_ranges();
    let exponentials = rows.par_iter_mut().zip(tops).flat_map_iter(|(row, &top)| {
        row.norm.highest = top;
        let segments = row.segments(ranges.clone());
        exponentials(row.weights, top, segments, row.scores)
    });
    let sums = communicator.sum_ranges(exponentials.collect());
    rows.par_iter_mut().zip(&sums).for_each(|(row, &sum)| {
        row.norm.sum = sum;
        *row.best = edge_scores(beta, sum, row.scores);
    });
}

impl<'a> EdgeRow<'a> {
    /// Updates the weights, clears the gradient, and returns the highest weight. total: Σ g over the whole row
    fn update(&mut self, total: f32, rates: &StepRates, softmax: &mut Vec<f32>) -> f32 {
        edge_gradient(self.weights, *self.norm, total, self.gradient, softmax);
        *self.n_updates += 1;
        let step = rates.adamw(rates.edges, *self.n_updates);
        Kernels::detect().adamw(&step, self.weights, self.gradient, self.m, self.v);
        self.gradient.fill(0.0);
        highest(self.weights)
    }

    /// Positions of its edges into each of these ranges of labels.
    fn segments(&self, ranges: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'a> {
        segments(self.labels, self.n_labels, ranges)
    }
}
