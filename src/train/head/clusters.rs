//! Part 3: gradients of the embeddings, of W_C and of b_C.

use rayon::prelude::*;

use super::search::ShardBuffers;
use super::{Batch, Head, SHARD};
use crate::index::{ClusterClassifiers, logit_gradient};
use crate::matrix::{Matrix, Output, View, product};

/// Clusters per task when ∂L/∂W_C is multiplied out.
const CLUSTERS_PER_TASK: usize = 64;

impl Head<'_> {
    /// ∂L/∂φ from the clusters, ∂L/∂W_C and ∂L/∂b_C.
    pub(super) fn collect_point_gradients(
        &mut self,
        clusters: &ClusterClassifiers,
        batch: Batch<'_>,
    ) {
        let (n_points, dim, n_clusters) = (
            batch.rows.len(),
            batch.embeddings.n_cols(),
            clusters.n_clusters(),
        );
        let gradients = &mut self.gradients;
        gradients.embeddings.reshape(n_points, dim);
        self.d_logits.reshape(n_points, n_clusters);
        let (d_slots, n_slots) = (&self.d_slots, self.n_slots);
        let d_embeddings = gradients.embeddings.values_mut();
        let d_logits = self.d_logits.values_mut();
        let shards = self
            .shards
            .par_iter_mut()
            .enumerate()
            .zip(d_embeddings.par_chunks_mut(SHARD * dim))
            .zip(d_logits.par_chunks_mut(SHARD * n_clusters));
        shards.for_each(|(((shard_idx, shard), d_embeddings), d_logits)| {
            let d_slots = &d_slots[shard_idx * SHARD * n_slots..];
            shard.logit_gradients(d_slots, n_slots, clusters.alpha, d_logits);
            let shape = [d_logits.len() / n_clusters, dim, n_clusters];
            let weights = View::rows(clusters.weights.values(), dim);
            product(
                shape,
                View::rows(d_logits, n_clusters),
                weights,
                d_embeddings,
                Output::Replace,
            );
        });

        gradients.cluster_weights.resize(n_clusters * dim, 0.0);
        gradients.cluster_bias.resize(n_clusters, 0.0);
        cluster_gradients(
            self.d_logits.values(),
            batch.embeddings,
            &mut gradients.cluster_weights,
            &mut gradients.cluster_bias,
        );
    }
}

/// ∂L/∂W_C and ∂L/∂b_C of some clusters. d_logits: B×clusters   weights: clusters×d
pub(super) fn cluster_gradients(
    d_logits: &[f32],
    embeddings: &Matrix,
    weights: &mut [f32],
    bias: &mut [f32],
) {
    let (n_points, dim) = (embeddings.n_rows(), embeddings.n_cols());
    let n_clusters = bias.len();
    let tasks = weights
        .par_chunks_mut(CLUSTERS_PER_TASK * dim)
        .zip(bias.par_chunks_mut(CLUSTERS_PER_TASK))
        .enumerate();
    tasks.for_each(|(task, (weights, bias))| {
        let columns = &d_logits[task * CLUSTERS_PER_TASK..];
        product(
            [bias.len(), dim, n_points],
            View::transposed(columns, n_clusters),
            View::rows(embeddings.values(), dim),
            weights,
            Output::Replace,
        );
        bias.fill(0.0);
        for row in columns.chunks(n_clusters) {
            for (bias, d_logit) in bias.iter_mut().zip(row) {
                *bias += d_logit;
            }
        }
    });
}

impl ShardBuffers {
    /// ∂L/∂logits of the shard's points from ∂L/∂log ŝ_c of their selected clusters. d_logits: points×C
    fn logit_gradients(
        &mut self,
        d_slots: &[f32],
        n_slots: usize,
        alpha: f32,
        d_logits: &mut [f32],
    ) {
        let n_points = self.selected_starts.len() - 1;
        let n_clusters = d_logits.len() / n_points.max(1);
        d_logits.fill(0.0);
        for (offset, d_logits) in d_logits.chunks_exact_mut(n_clusters).enumerate() {
            let selected =
                &self.selected[self.selected_starts[offset]..self.selected_starts[offset + 1]];
            for (selection, d_slot) in selected.iter().zip(&d_slots[offset * n_slots..]) {
                d_logits[selection.cluster.idx()] = *d_slot;
            }
        }
        self.touched_clusters.clear();
        for (offset, row) in d_logits.chunks_exact_mut(n_clusters).enumerate() {
            let selected =
                &self.selected[self.selected_starts[offset]..self.selected_starts[offset + 1]];
            let touched = selected
                .iter()
                .filter(|selection| row[selection.cluster.idx()] != 0.0);
            self.touched_clusters
                .extend(touched.map(|selection| selection.cluster.0));
            logit_gradient(
                alpha,
                &self.probabilities[offset * n_clusters..][..n_clusters],
                row,
            );
        }
    }
}
