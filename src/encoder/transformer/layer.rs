//! One layer of BERT, forward and backward over a shard of texts.
//!
//! ```text
//! m = LN(x + W_o attention(W_qkv x + b_qkv) + b_o)
//! y = LN(m + W_2 GELU(W_1 m + b_1) + b_2)
//! ```
//!
//! The backward pass leaves the derivatives with respect to the outputs of the four products; `body` computes the
//! gradients of their matrices from those.

use super::attention::Heads;
use super::dropout::{Dropout, RowKey, Site};
use super::shape::Shape;
use super::shard::{GradientSums, NormTape, Shard, Tape};
use super::weights::{Layer, LayerNorm};
use crate::kernels::{Kernels, Normed};
use crate::matrix::Output;

/// One run of a layer: its buffers and its dropout.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerStep<'a> {
    pub(super) shape: &'a Shape,
    pub(super) layer_idx: usize,
    /// The tape it uses.
    pub(super) tape: usize,
    /// The state it reads.
    pub(super) input: usize,
    /// The state it writes.
    pub(super) output: usize,
    pub(super) dropout: Dropout,
}

impl LayerStep<'_> {
    fn heads(&self) -> Heads {
        Heads {
            n_heads: self.shape.n_heads,
            hidden: self.shape.hidden,
            layer_idx: self.layer_idx,
            dropout: self.dropout,
        }
    }
}

impl Layer {
    /// From one state of a shard to the next.
    pub(super) fn forward(&self, step: &LayerStep<'_>, shard: &mut Shard) {
        let mut tape = std::mem::take(&mut shard.tapes[step.tape]);
        let mut y = std::mem::take(&mut shard.states[step.output]);
        let x = &shard.states[step.input];
        let (kernels, inner) = (Kernels::detect(), step.shape.inner);

        self.qkv.apply(x, &mut tape.qkv);
        add_bias(&mut tape.qkv, self.qkv.bias.values.values());
        step.heads().forward(shard.texts(), &mut tape);
        self.attention
            .apply(&tape.context, &mut tape.attention.normed);
        let residual = Residual {
            input: x,
            bias: self.attention.bias.values.values(),
            norm: &self.attention_norm,
            dropout: step.dropout,
            site: Site::Attention(step.layer_idx),
        };
        residual.add_norm(shard, &mut tape.attention, &mut tape.middle);

        self.inner.apply(&tape.middle, &mut tape.slope);
        let bias = self.inner.bias.values.values();
        let rows = tape.slope.chunks_exact_mut(inner);
        for (row, out) in rows.zip(tape.inner.chunks_exact_mut(inner)) {
            kernels.gelu(row, bias, out);
        }
        self.outer.apply(&tape.inner, &mut tape.output.normed);
        let residual = Residual {
            input: &tape.middle,
            bias: self.outer.bias.values.values(),
            norm: &self.output_norm,
            dropout: step.dropout,
            site: Site::Output(step.layer_idx),
        };
        residual.add_norm(shard, &mut tape.output, &mut y);

        shard.states[step.output] = y;
        shard.tapes[step.tape] = tape;
    }

    /// From ∂L/∂y to ∂L/∂x, both in `deltas.state`.
    pub(super) fn backward(&self, step: &LayerStep<'_>, shard: &mut Shard) {
        let mut tape = std::mem::take(&mut shard.tapes[step.tape]);
        let mut deltas = std::mem::take(&mut shard.deltas);
        let mut sums = std::mem::take(&mut shard.sums);
        sums.clear(step.shape);
        let (kernels, inner) = (Kernels::detect(), step.shape.inner);

        let GradientSums {
            output_gamma,
            output_beta,
            ..
        } = &mut sums;
        let state = &mut deltas.state;
        norm_backward(
            &self.output_norm,
            &tape.output,
            state,
            output_gamma,
            output_beta,
        );
        deltas.outer.copy_from_slice(state);
        drop_rows(
            step.dropout,
            Site::Output(step.layer_idx),
            shard,
            &mut deltas.outer,
        );
        sum_rows(&deltas.outer, &mut sums.outer);
        self.outer
            .backward(&deltas.outer, &mut deltas.inner, Output::Replace);
        let rows = deltas.inner.chunks_exact_mut(inner);
        for (row, slope) in rows.zip(tape.slope.chunks_exact(inner)) {
            kernels.multiply_and_sum(row, slope, &mut sums.inner);
        }
        self.inner.backward(&deltas.inner, state, Output::Add);

        let GradientSums {
            attention_gamma,
            attention_beta,
            ..
        } = &mut sums;
        norm_backward(
            &self.attention_norm,
            &tape.attention,
            state,
            attention_gamma,
            attention_beta,
        );
        deltas.attention.copy_from_slice(state);
        drop_rows(
            step.dropout,
            Site::Attention(step.layer_idx),
            shard,
            &mut deltas.attention,
        );
        sum_rows(&deltas.attention, &mut sums.attention);
        self.attention
            .backward(&deltas.attention, &mut deltas.context, Output::Replace);
        step.heads().backward(shard.texts(), &mut tape, &mut deltas);
        sum_rows(&deltas.qkv, &mut sums.qkv);
        self.qkv
            .backward(&deltas.qkv, &mut deltas.state, Output::Add);

        shard.sums = sums;
        shard.deltas = deltas;
        shard.tapes[step.tape] = tape;
    }
}

/// The end of a residual block: a bias, dropout, the block's input, and a norm.
struct Residual<'a> {
    input: &'a [f32],
    bias: &'a [f32],
    norm: &'a LayerNorm,
    dropout: Dropout,
    site: Site,
}

impl Residual<'_> {
    /// out = LN(input + dropout(rows + bias)), where the tape's `normed` holds the rows.
    fn add_norm(&self, shard: &Shard, tape: &mut NormTape, out: &mut [f32]) {
        let (kernels, h) = (Kernels::detect(), self.bias.len());
        for (place, tokens) in shard.texts() {
            for (position, token) in tokens.enumerate() {
                let row = &mut tape.normed[token * h..][..h];
                kernels.axpy(1.0, self.bias, row);
                let key = RowKey {
                    place,
                    row: position,
                };
                self.dropout.apply(self.site, key, row);
                kernels.axpy(1.0, &self.input[token * h..][..h], row);
                let out = &mut out[token * h..][..h];
                tape.inverse[token] = kernels.layer_norm(row, self.norm.scale(), out);
            }
        }
    }
}

/// Through a layer norm, one row per token; adds to the sums for γ and β.
pub(super) fn norm_backward(
    norm: &LayerNorm,
    tape: &NormTape,
    deltas: &mut [f32],
    d_gamma: &mut [f32],
    d_beta: &mut [f32],
) {
    let (kernels, h) = (Kernels::detect(), d_gamma.len());
    let gamma = norm.gamma.values.values();
    let rows = deltas.chunks_exact_mut(h).zip(tape.normed.chunks_exact(h));
    for ((delta, values), &inverse) in rows.zip(&tape.inverse) {
        let normed = Normed { values, inverse };
        kernels.layer_norm_backward(delta, normed, gamma, d_gamma, d_beta);
    }
}

/// Dropout, one row per token.
pub(super) fn drop_rows(dropout: Dropout, site: Site, shard: &Shard, rows: &mut [f32]) {
    if !dropout.is_on() {
        return;
    }
    let h = rows.len() / shard.n_tokens().max(1);
    for (place, tokens) in shard.texts() {
        for (position, token) in tokens.enumerate() {
            let key = RowKey {
                place,
                row: position,
            };
            dropout.apply(site, key, &mut rows[token * h..][..h]);
        }
    }
}

fn add_bias(rows: &mut [f32], bias: &[f32]) {
    let kernels = Kernels::detect();
    for row in rows.chunks_exact_mut(bias.len()) {
        kernels.axpy(1.0, bias, row);
    }
}

fn sum_rows(rows: &[f32], sums: &mut [f32]) {
    let kernels = Kernels::detect();
    for row in rows.chunks_exact(sums.len()) {
        kernels.axpy(1.0, row, sums);
    }
}

impl Tape {
    /// Values per token, without attention weights.
    pub(super) fn values_per_token(shape: &Shape) -> usize {
        7 * shape.hidden + 2 * shape.inner
    }
}
