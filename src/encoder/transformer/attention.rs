//! Scaled dot-product attention, one text and head at a time: context = softmax(Q Kᵀ/√(h/A)) V.
//!
//! Tokens of a text see each other and no other text, so a packed batch needs no mask.

use super::dropout::{Dropout, RowKey, Site};
use super::shard::{Deltas, Tape};
use crate::kernels::Kernels;
use crate::matrix::{Output, View, ViewMut, product, product_into};

/// The head sizes and the layer, for dropout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) n_heads: usize,
    pub(super) hidden: usize,
    pub(super) layer_idx: usize,
    pub(super) dropout: Dropout,
}

/// One head of one text within a shard.
struct AttentionHead {
    n: usize,
    /// Its first value in T×3h, and in T×h.
    qkv_start: usize,
    start: usize,
    /// Its first attention weight.
    weights_start: usize,
    key: RowKey,
}

impl Heads {
    fn size(&self) -> usize {
        self.hidden / self.n_heads
    }

    fn each<'a>(
        &'a self,
        texts: impl Iterator<Item = (usize, std::ops::Range<usize>)> + 'a,
    ) -> impl Iterator<Item = AttentionHead> + 'a {
        let mut weights_start = 0;
        texts.flat_map(move |(place, tokens)| {
            let n = tokens.len();
            let first = weights_start;
            weights_start += self.n_heads * n * n;
            (0..self.n_heads).map(move |head| AttentionHead {
                n,
                qkv_start: tokens.start * 3 * self.hidden + head * self.size(),
                start: tokens.start * self.hidden + head * self.size(),
                weights_start: first + head * n * n,
                key: RowKey { place, row: head },
            })
        })
    }

    /// Fills `weights` and `context` of the tape from its `qkv`.
    pub(super) fn forward(
        &self,
        texts: impl Iterator<Item = (usize, std::ops::Range<usize>)>,
        tape: &mut Tape,
    ) {
        let (h, size) = (self.hidden, self.size());
        let scale = 1.0 / (size as f32).sqrt();
        let kernels = Kernels::detect();
        for head in self.each(texts).filter(|head| head.n > 0) {
            let n = head.n;
            let q = View::rows(&tape.qkv[head.qkv_start..], 3 * h);
            let k = View::transposed(&tape.qkv[head.qkv_start + h..], 3 * h);
            let v = View::rows(&tape.qkv[head.qkv_start + 2 * h..], 3 * h);
            let weights = &mut tape.weights[head.weights_start..][..n * n];
            product([n, n, size], q, k, weights, Output::Replace);
            for row in weights.chunks_exact_mut(n) {
                kernels.softmax(row, scale);
            }
            let weights = self.drop_weights(&head, weights, &mut tape.dropped);
            let out = ViewMut::rows(&mut tape.context[head.start..], h);
            product_into(
                [n, size, n],
                View::rows(weights, n),
                v,
                out,
                Output::Replace,
            );
        }
    }

    /// From ∂L/∂context to ∂L/∂(Q, K, V).
    pub(super) fn backward(
        &self,
        texts: impl Iterator<Item = (usize, std::ops::Range<usize>)>,
        tape: &mut Tape,
        deltas: &mut Deltas,
    ) {
        let (h, size) = (self.hidden, self.size());
        let scale = 1.0 / (size as f32).sqrt();
        let kernels = Kernels::detect();
        for head in self.each(texts).filter(|head| head.n > 0) {
            let n = head.n;
            let q = View::rows(&tape.qkv[head.qkv_start..], 3 * h);
            let k = View::rows(&tape.qkv[head.qkv_start + h..], 3 * h);
            let v = View::transposed(&tape.qkv[head.qkv_start + 2 * h..], 3 * h);
            let d_context = View::rows(&deltas.context[head.start..], h);
            let weights = &tape.weights[head.weights_start..][..n * n];

            // dV = P̃ᵀ dC
            let dropped = self.drop_weights(&head, weights, &mut tape.dropped);
            let d_v = ViewMut::rows(&mut deltas.qkv[head.qkv_start + 2 * h..], 3 * h);
            let shape = [n, size, n];
            product_into(
                shape,
                View::transposed(dropped, n),
                d_context,
                d_v,
                Output::Replace,
            );
            // dP = dropout(dC Vᵀ), dS = softmax'(dP)
            deltas.weights.resize(n * n, 0.0);
            let d_weights = &mut deltas.weights[..n * n];
            product([n, n, size], d_context, v, d_weights, Output::Replace);
            self.dropout
                .apply(Site::Weights(self.layer_idx), head.key, d_weights);
            for (row, p) in d_weights.chunks_exact_mut(n).zip(weights.chunks_exact(n)) {
                kernels.softmax_backward(p, row, scale);
            }
            // dQ = dS K, dK = dSᵀ Q
            let d_q = ViewMut::rows(&mut deltas.qkv[head.qkv_start..], 3 * h);
            product_into(shape, View::rows(d_weights, n), k, d_q, Output::Replace);
            let d_k = ViewMut::rows(&mut deltas.qkv[head.qkv_start + h..], 3 * h);
            product_into(
                shape,
                View::transposed(d_weights, n),
                q,
                d_k,
                Output::Replace,
            );
        }
    }

    /// P̃: the weights after dropout; `weights` are unchanged.
    fn drop_weights<'a>(
        &self,
        head: &AttentionHead,
        weights: &'a [f32],
        dropped: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        if !self.dropout.is_on() {
            return weights;
        }
        dropped.clear();
        dropped.extend_from_slice(weights);
        self.dropout
            .apply(Site::Weights(self.layer_idx), head.key, dropped);
        dropped
    }
}
