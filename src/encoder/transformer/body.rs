//! The whole transformer over a batch: embeddings, layers, and the gradients of all weights.
//!
//! x_0 = LN(word + position + type); x_l = layer_l(x_{l−1}). Shards of texts run forward in parallel. The backward
//! pass goes layer by layer: first the shards, then the weights, in blocks of rows, summed over the shards in order.
//! So gradients need no copy per thread, and are the same on any number of threads.
//!
//! If the tapes of a batch would take too much memory, only the states are kept and each layer is run again before
//! its backward pass; results do not change.

use rayon::prelude::*;

use super::dropout::{Dropout, Site};
use super::layer::{LayerStep, drop_rows, norm_backward};
use super::shape::Shape;
use super::shard::{GradientSums, Shard, Tape, pack};
use super::weights::{Layer, Weight, Weights};
use crate::encoder::Parameter;
use crate::kernels::Kernels;
use crate::matrix::{Groups, Output, View, product};

/// The most values in the tapes of a batch: 2 GiB.
const MAX_TAPE_VALUES: usize = 1 << 29;
/// Words per task when gradients are gathered.
const WORDS_PER_TASK: usize = 64;

/// A transformer without its pooling.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) shape: Shape,
    pub(super) weights: Weights,
    /// The first trained layer; embeddings are trained if all layers are.
    first_trained: usize,
    /// The most values in the tapes of a batch.
    pub(super) max_tape_values: usize,
}

/// A batch in flight: its shards, and the gradients of its words.
#[derive(Clone, Debug, Default)]
pub(super) struct TransformerPass {
    pub(super) shards: Vec<Shard>,
    /// Number of shards in use.
    n_shards: usize,
    keeps_tapes: bool,
    by_word: Groups<(u32, u32)>,
    word_gradients: Vec<f32>,
}

impl TransformerPass {
    /// The shards in use.
    pub(super) fn shards(&self) -> &[Shard] {
        &self.shards[..self.n_shards]
    }

    /// The shards in use.
    pub(super) fn shards_mut(&mut self) -> &mut [Shard] {
        &mut self.shards[..self.n_shards]
    }

    /// Packs texts, truncated to `max_len` tokens.
    pub(super) fn pack<'a>(
        &mut self,
        texts: impl ExactSizeIterator<Item = &'a [u32]> + Clone,
        max_len: usize,
    ) {
        let cut = texts.map(|text| &text[..text.len().min(max_len)]);
        self.n_shards = pack(cut, &mut self.shards);
    }
}

impl Body {
    /// A transformer whose last `n_trained` layers are trained; all of it if that is `None`.
    pub(super) fn new(shape: Shape, mut weights: Weights, n_trained: Option<usize>) -> Self {
        let first_trained = n_trained.map_or(0, |n| shape.n_layers.saturating_sub(n));
        for layer in &mut weights.layers[first_trained..] {
            layer.all_mut().for_each(Weight::train);
        }
        let body = Body {
            shape,
            weights,
            first_trained,
            max_tape_values: MAX_TAPE_VALUES,
        };
        match n_trained {
            None => body.with_trained_embeddings(),
            Some(_) => body,
        }
    }

    fn with_trained_embeddings(mut self) -> Self {
        self.weights.dense_embeddings_mut().for_each(Weight::train);
        self
    }

    fn trains_embeddings(&self) -> bool {
        !self.weights.positions.gradient.is_empty()
    }

    /// Computes the last states of every shard, without dropout and tapes; returns their index.
    pub(super) fn infer(&self, pass: &mut TransformerPass) -> usize {
        let n_layers = self.shape.n_layers;
        pass.shards_mut().par_iter_mut().for_each(|shard| {
            shard.resize(&self.shape, 2, 1);
            self.embed(shard, Dropout::NONE);
            for (layer_idx, layer) in self.weights.layers.iter().enumerate() {
                let step = LayerStep {
                    shape: &self.shape,
                    layer_idx,
                    tape: 0,
                    input: layer_idx % 2,
                    output: (layer_idx + 1) % 2,
                    dropout: Dropout::NONE,
                };
                layer.forward(&step, shard);
            }
        });
        n_layers % 2
    }

    /// Computes the last states of every shard and the tapes for the backward pass; returns the index of the states.
    pub(super) fn forward(&self, pass: &mut TransformerPass, dropout: Dropout) -> usize {
        let n_layers = self.shape.n_layers;
        let n_tokens: usize = pass.shards().iter().map(Shard::n_tokens).sum();
        let n_trained = n_layers - self.first_trained;
        pass.keeps_tapes = self.keeps_tapes(n_tokens);
        let n_tapes = if pass.keeps_tapes { 1 + n_trained } else { 1 };
        let keeps_tapes = pass.keeps_tapes;
        pass.shards_mut().par_iter_mut().for_each(|shard| {
            shard.resize(&self.shape, n_layers + 1, n_tapes);
            self.embed(shard, dropout);
            for (layer_idx, layer) in self.weights.layers.iter().enumerate() {
                layer.forward(&self.kept_step(layer_idx, keeps_tapes, dropout), shard);
            }
        });
        n_layers
    }

    fn keeps_tapes(&self, n_tokens: usize) -> bool {
        let n_trained = self.shape.n_layers - self.first_trained;
        n_trained * n_tokens * Tape::values_per_token(&self.shape) <= self.max_tape_values
    }

    /// Number of values in the states, tapes and deltas of a batch of `n_tokens`, each with `attention` attention
    /// weights; 0 if no layer is trained.
    pub(super) fn n_kept_values(&self, n_tokens: usize, attention: usize) -> usize {
        let n_trained = self.shape.n_layers - self.first_trained;
        if n_trained == 0 {
            return 0;
        }
        let n_tapes = if self.keeps_tapes(n_tokens) {
            n_trained + 1
        } else {
            1
        };
        let Shape { hidden, inner, .. } = self.shape;
        let others = (self.shape.n_layers + 2) * hidden + 7 * hidden + inner;
        n_tokens * (n_tapes * (Tape::values_per_token(&self.shape) + attention) + others)
    }

    /// From ∂L/∂x_L, in the shards' `deltas.state`, to the gradients of all trained weights.
    pub(super) fn backward(&mut self, pass: &mut TransformerPass, dropout: Dropout) {
        let keeps_tapes = pass.keeps_tapes;
        for layer_idx in (self.first_trained..self.shape.n_layers).rev() {
            let step = self.kept_step(layer_idx, keeps_tapes, dropout);
            let layer = &self.weights.layers[layer_idx];
            pass.shards_mut().par_iter_mut().for_each(|shard| {
                if !keeps_tapes {
                    layer.forward(&step, shard);
                }
                layer.backward(&step, shard);
            });
            let (tape, state) = (step.tape, layer_idx);
            self.weights.layers[layer_idx].gather_gradients(pass.shards(), tape, state);
        }
        if self.trains_embeddings() {
            self.backward_embeddings(pass, dropout);
        }
    }

    /// A step whose states are kept; layers that are not trained share the first tape.
    fn kept_step(&self, layer_idx: usize, keeps_tapes: bool, dropout: Dropout) -> LayerStep<'_> {
        let tape = match layer_idx.checked_sub(self.first_trained) {
            Some(trained_idx) if keeps_tapes => 1 + trained_idx,
            _ => 0,
        };
        LayerStep {
            shape: &self.shape,
            layer_idx,
            tape,
            input: layer_idx,
            output: layer_idx + 1,
            dropout,
        }
    }

    /// x_0 = dropout(LN(word + position + type)).
    fn embed(&self, shard: &mut Shard, dropout: Dropout) {
        let (kernels, h) = (Kernels::detect(), self.shape.hidden);
        let weights = &self.weights;
        let mut tape = std::mem::take(&mut shard.embedding);
        let mut x = std::mem::take(&mut shard.states[0]);
        for (_, tokens) in shard.texts() {
            for (position, token) in tokens.enumerate() {
                let row = &mut tape.normed[token * h..][..h];
                row.copy_from_slice(weights.words.values.row(shard.tokens[token] as usize));
                kernels.axpy(1.0, weights.positions.values.row(position), row);
                if let Some(types) = &weights.types {
                    kernels.axpy(1.0, types.values.row(0), row);
                }
                let out = &mut x[token * h..][..h];
                tape.inverse[token] = kernels.layer_norm(row, weights.norm.scale(), out);
            }
        }
        drop_rows(dropout, Site::Embedding, shard, &mut x);
        shard.states[0] = x;
        shard.embedding = tape;
    }

    /// From ∂L/∂x_0 to the gradients of words, positions, types and their norm.
    fn backward_embeddings(&mut self, pass: &mut TransformerPass, dropout: Dropout) {
        let h = self.shape.hidden;
        let (weights, n_words) = (&mut self.weights, self.shape.n_words);
        let norm = &weights.norm;
        pass.shards_mut().par_iter_mut().for_each(|shard| {
            let mut state = std::mem::take(&mut shard.deltas.state);
            drop_rows(dropout, Site::Embedding, shard, &mut state);
            let GradientSums {
                output_gamma: d_gamma,
                output_beta: d_beta,
                ..
            } = &mut shard.sums;
            d_gamma.fill(0.0);
            d_beta.fill(0.0);
            norm_backward(norm, &shard.embedding, &mut state, d_gamma, d_beta);
            shard.deltas.state = state;
        });
        let kernels = Kernels::detect();
        weights
            .dense_embeddings_mut()
            .for_each(|w| w.gradient.fill(0.0));
        for shard in &pass.shards[..pass.n_shards] {
            kernels.axpy(
                1.0,
                &shard.sums.output_gamma,
                &mut weights.norm.gamma.gradient,
            );
            kernels.axpy(
                1.0,
                &shard.sums.output_beta,
                &mut weights.norm.beta.gradient,
            );
            for (_, tokens) in shard.texts() {
                for (position, token) in tokens.enumerate() {
                    let delta = &shard.deltas.state[token * h..][..h];
                    let row = &mut weights.positions.gradient[position * h..][..h];
                    kernels.axpy(1.0, delta, row);
                    if let Some(types) = &mut weights.types {
                        kernels.axpy(1.0, delta, &mut types.gradient[..h]);
                    }
                }
            }
        }
        pass.gather_words(h, n_words);
    }

    /// Every parameter that is trained, with its gradient.
    pub(super) fn parameters<'a>(&'a mut self, pass: &'a TransformerPass) -> Vec<Parameter<'a>> {
        let trains_embeddings = self.trains_embeddings();
        let Weights {
            words,
            positions,
            types,
            norm,
            layers,
        } = &mut self.weights;
        let mut parameters = Vec::new();
        if trains_embeddings {
            let keys = pass.by_word.keys();
            parameters.push(words.sparse_parameter(keys, &pass.word_gradients, 1.0));
            let norm = [&mut norm.gamma, &mut norm.beta];
            let dense = std::iter::once(positions).chain(types).chain(norm);
            parameters.extend(dense.flat_map(|weight| weight.parameters(1.0)));
        }
        let trained = layers[self.first_trained..].iter_mut();
        parameters.extend(
            trained
                .flat_map(Layer::all_mut)
                .flat_map(|weight| weight.parameters(1.0)),
        );
        parameters
    }
}

impl TransformerPass {
    /// ∂L/∂E_w = Σ over the tokens that are w.
    fn gather_words(&mut self, h: usize, n_words: usize) {
        let TransformerPass {
            shards,
            n_shards,
            by_word,
            word_gradients,
            ..
        } = self;
        let shards = &shards[..*n_shards];
        if by_word.keys().is_empty() {
            *by_word = Groups::new(n_words);
        }
        by_word.group((0u32..).zip(shards).flat_map(|(shard_idx, shard)| {
            (shard.tokens.iter().zip(0u32..)).map(move |(&word, token)| (word, (shard_idx, token)))
        }));
        word_gradients.resize(by_word.keys().len() * h, 0.0);
        let by_word = &*by_word;
        let tasks = word_gradients.par_chunks_mut(WORDS_PER_TASK * h);
        tasks.enumerate().for_each(|(task, out)| {
            let kernels = Kernels::detect();
            for (offset, out) in out.chunks_exact_mut(h).enumerate() {
                out.fill(0.0);
                for &(shard_idx, token) in by_word.members(task * WORDS_PER_TASK + offset) {
                    let deltas = &shards[shard_idx as usize].deltas.state;
                    kernels.axpy(1.0, &deltas[token as usize * h..][..h], out);
                }
            }
        });
    }
}

/// ∂L/∂Y and X of a product Y = X Wᵀ, from a shard, a tape and a state.
type Factors = fn(&Shard, usize, usize) -> (&[f32], &[f32]);

/// A block of rows of a weight's gradient, and its factors.
struct GradientBlock<'a> {
    out: &'a mut [f32],
    first_row: usize,
    n_cols: usize,
    factors: Factors,
    n_rows: usize,
}

impl Layer {
    /// ∂L/∂W = Σ ∂L/∂Yᵀ X over the shards, with `state` as the layer's input, and the sums of biases and norms.
    fn gather_gradients(&mut self, shards: &[Shard], tape: usize, state: usize) {
        let h = self.attention.bias.values.n_cols();
        self.add_sums(shards);
        let parts: [(&mut Weight, Factors); 4] = [
            (&mut self.qkv.weight, |s, _, x| {
                (&s.deltas.qkv, &s.states[x])
            }),
            (&mut self.attention.weight, |s, t, _| {
                (&s.deltas.attention, &s.tapes[t].context)
            }),
            (&mut self.inner.weight, |s, t, _| {
                (&s.deltas.inner, &s.tapes[t].middle)
            }),
            (&mut self.outer.weight, |s, t, _| {
                (&s.deltas.outer, &s.tapes[t].inner)
            }),
        ];
        let blocks = parts.into_iter().flat_map(|(weight, factors)| {
            let (n_rows, n_cols) = (weight.values.n_rows(), weight.values.n_cols());
            let rows_per_block = (h * h).div_ceil(n_cols);
            let chunks = weight.gradient.chunks_mut(rows_per_block * n_cols);
            chunks
                .enumerate()
                .map(move |(block_idx, out)| GradientBlock {
                    out,
                    first_row: block_idx * rows_per_block,
                    n_cols,
                    factors,
                    n_rows,
                })
        });
        let blocks: Vec<GradientBlock<'_>> = blocks.collect();
        blocks.into_par_iter().for_each(|block| {
            for (shard_idx, shard) in shards.iter().enumerate() {
                let (deltas, x) = (block.factors)(shard, tape, state);
                let shape = [
                    block.out.len() / block.n_cols,
                    block.n_cols,
                    shard.n_tokens(),
                ];
                let first = block.first_row.min(deltas.len());
                let left = View::transposed(&deltas[first..], block.n_rows);
                let output = if shard_idx == 0 {
                    Output::Replace
                } else {
                    Output::Add
                };
                product(shape, left, View::rows(x, block.n_cols), block.out, output);
            }
        });
    }

    fn add_sums(&mut self, shards: &[Shard]) {
        let kernels = Kernels::detect();
        let mut first = true;
        for Shard { sums, .. } in shards {
            let parts = [
                (&mut self.qkv.bias, &sums.qkv),
                (&mut self.attention.bias, &sums.attention),
                (&mut self.attention_norm.gamma, &sums.attention_gamma),
                (&mut self.attention_norm.beta, &sums.attention_beta),
                (&mut self.inner.bias, &sums.inner),
                (&mut self.outer.bias, &sums.outer),
                (&mut self.output_norm.gamma, &sums.output_gamma),
                (&mut self.output_norm.beta, &sums.output_beta),
            ];
            for (weight, sums) in parts {
                if first {
                    weight.gradient.fill(0.0);
                }
                kernels.axpy(1.0, sums, &mut weight.gradient);
            }
            first = false;
        }
    }
}
