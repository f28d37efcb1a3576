//! W_C: how relevant each cluster is to an embedding.
//!
//! ŝ_c = min(1, α·softmax(W_C φ + b_C)) (paper, eq. 1; the biases are the released code's).

use crate::kernels::Kernels;
use crate::matrix::Matrix;

/// Cluster classifiers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterClassifiers {
    /// W_C, C×d.
    pub weights: Matrix,
    /// b_C, one per cluster.
    pub bias: Vec<f32>,
    /// α: multiplies the softmax so that several clusters can be fully relevant at once.
    pub alpha: f32,
}

impl ClusterClassifiers {
    /// Bytes of W_C and b_C.
    pub(crate) fn n_bytes(n_clusters: usize, dim: usize) -> usize {
        4 * n_clusters * (dim + 1)
    }

    /// Number of clusters, C.
    pub(crate) fn n_clusters(&self) -> usize {
        self.bias.len()
    }

    /// softmax(W_C φ + b_C) of n embeddings. embeddings: n×d   probabilities: n×C
    pub(crate) fn probabilities(&self, embeddings: &[f32], probabilities: &mut [f32]) {
        let dim = self.weights.n_cols();
        Kernels::detect().dot_all(embeddings, self.weights.values(), dim, probabilities);
        probabilities
            .chunks_exact_mut(self.n_clusters())
            .for_each(|row| self.normalise(row));
    }

    /// From products W_C φ to probabilities.
    fn normalise(&self, row: &mut [f32]) {
        let kernels = Kernels::detect();
        kernels.axpy(1.0, &self.bias, row);
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let scale = 1.0 / kernels.exp_sum(row, highest);
        row.iter_mut().for_each(|probability| *probability *= scale);
    }

    /// ŝ_c of a softmax probability.
    #[inline]
    pub(crate) fn score(&self, probability: f32) -> f32 {
        (self.alpha * probability).min(1.0)
    }
}

/// Gradient of the logits of one point.
///
/// `gradient` holds g = ∂L/∂log ŝ_c, zero where a cluster was not selected. Where ŝ_c < 1, log ŝ_c = log α + log
/// softmax_c, so ∂L/∂logit_j = g_j − softmax_j·Σ g over unsaturated clusters; a saturated one passes nothing.
pub(crate) fn logit_gradient(alpha: f32, probabilities: &[f32], gradient: &mut [f32]) {
    let mut total = 0f32;
    for (g, &probability) in gradient.iter_mut().zip(probabilities) {
        if alpha * probability >= 1.0 {
            *g = 0.0;
        }
        total += *g;
    }
    for (g, &probability) in gradient.iter_mut().zip(probabilities) {
        *g -= total * probability;
    }
}
