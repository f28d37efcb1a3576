//! The memory of a training: moments, buffers of a step, and matches.

use crate::communicator::N_RANGES;
use crate::config::{Recipe, SecondMoments};

use super::chosen;
use super::state::waits;

/// Numbers of parameters that are trained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParameterCounts {
    pub(crate) n_labels: usize,
    pub(crate) n_clusters: usize,
    pub(crate) dim: usize,
    pub(crate) n_edges: usize,
    /// Parameters of the encoder.
    pub(crate) n_encoder: usize,
    /// Word embeddings that may share one second moment.
    pub(crate) shared_words: usize,
}

/// Sizes of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSizes {
    pub(crate) batch_size: usize,
    pub(crate) shortlist_size: usize,
    /// Labels of all processes.
    pub(crate) n_labels: usize,
    pub(crate) n_words: usize,
    pub(crate) n_threads: usize,
    pub(crate) n_processes: usize,
    /// Values the encoder works in.
    pub(crate) n_encoder: usize,
}

impl ParameterCounts {
    /// Bytes of gradients that wait to be applied.
    pub(crate) fn waiting_bytes(&self, recipe: &Recipe) -> usize {
        let of_labels = if waits(recipe) { self.n_labels } else { 0 };
        let of_clusters = if recipe.update_every > 1 {
            self.n_clusters
        } else {
            0
        };
        4 * (of_labels + of_clusters) * (self.dim + 1) + of_labels
    }

    /// Bytes of weights that a stage may end with, beside those that are trained.
    pub(crate) fn chosen_bytes(&self, recipe: &Recipe) -> usize {
        let head = (self.n_labels + self.n_clusters) * (self.dim + 1);
        chosen::n_bytes(recipe, head + self.n_encoder, self.n_edges)
    }

    /// Bytes of AdamW's moments.
    pub(crate) fn moment_bytes(&self, second_moments: SecondMoments) -> usize {
        let head = (self.n_labels + self.n_clusters) * (self.dim + 1);
        let n_shared = match second_moments {
            SecondMoments::Coordinate => 0,
            SecondMoments::Shared => (self.shared_words + self.n_labels) * self.dim,
        };
        4 * (2 * (head + self.n_encoder + self.n_edges) - n_shared)
    }
}

impl StepSizes {
    /// Bytes of the buffers of a step.
    pub(crate) fn n_bytes(&self, parameters: &ParameterCounts) -> usize {
        let (n_labels, n_processes) = (self.n_labels, self.n_processes);
        let ParameterCounts {
            n_clusters,
            dim,
            n_edges,
            ..
        } = *parameters;
        // A pair takes 16 bytes by shard, 16 by range, and 8 for the gradient of its edge. Lists that grew by doubling
        // have room for up to 3/5 more, on the data sets of docs/performance.md.
        let pairs = self.batch_size * self.shortlist_size * (16 + 16 + 8) * 8 / 5 / n_processes;
        // Each range of labels has gradients of all embeddings.
        let embeddings = 4 * self.batch_size * dim * (N_RANGES.div_ceil(n_processes) + 8);
        let clusters = 4 * (2 * self.batch_size * n_clusters + n_clusters * dim);
        let searchers = self.n_threads * 8 * n_labels + 4 * (n_labels + self.n_words);
        let edges = 4 * n_edges;
        pairs + embeddings + clusters + 4 * self.n_encoder + searchers + edges
    }
}

/// Bytes of M and its transpose: the best clusters of each point with their scores.
pub(crate) fn match_bytes(n_points: usize, beam_size: usize) -> usize {
    2 * n_points * (8 * beam_size + 24)
}
