//! From the states of a text's tokens to one vector: the first token's, or the mean.

use super::shard::Shard;
use crate::config::Pooling;
use crate::kernels::Kernels;
use crate::matrix::Matrix;

/// The pooled state of every text, by its place in the batch; zeros for a text without tokens.
pub(super) fn pool(pooling: Pooling, shards: &[Shard], state: usize, out: &mut Matrix) {
    let (kernels, h) = (Kernels::detect(), out.n_cols());
    for shard in shards {
        let states = &shard.states[state];
        for (place, tokens) in shard.texts() {
            let share = share(pooling, tokens.len());
            let out = out.row_mut(place);
            out.fill(0.0);
            for token in pooled_tokens(pooling, tokens) {
                kernels.axpy(share, &states[token * h..][..h], out);
            }
        }
    }
}

/// From ∂L/∂pooled to ∂L/∂x_L, in the shards' `deltas.state`.
pub(super) fn pool_backward(pooling: Pooling, shards: &mut [Shard], gradient: &Matrix) {
    let (kernels, h) = (Kernels::detect(), gradient.n_cols());
    for shard in shards {
        let mut state = std::mem::take(&mut shard.deltas.state);
        state.fill(0.0);
        for (place, tokens) in shard.texts() {
            let share = share(pooling, tokens.len());
            for token in pooled_tokens(pooling, tokens) {
                kernels.axpy(share, gradient.row(place), &mut state[token * h..][..h]);
            }
        }
        shard.deltas.state = state;
    }
}

fn pooled_tokens(pooling: Pooling, tokens: std::ops::Range<usize>) -> std::ops::Range<usize> {
    match pooling {
        Pooling::Cls => tokens.start..tokens.end.min(tokens.start + 1),
        Pooling::Mean => tokens,
    }
}

fn share(pooling: Pooling, n_tokens: usize) -> f32 {
    match pooling {
        Pooling::Cls => 1.0,
        Pooling::Mean => 1.0 / n_tokens.max(1) as f32,
    }
}
