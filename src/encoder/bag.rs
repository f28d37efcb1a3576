//! The `bag` encoder: tf-idf-weighted word embeddings and an optional residual block.
//!
//! h = Σ_w tfidf_w·E_w + b,   φ = h, or h + ReLU(R h + c) with the block. A point without a known word has h = b.
//! Work is split into shards of points, whose bounds do not depend on the number of threads; the gradient of E is
//! gathered word by word, so that only the words of a batch are touched.

use rayon::prelude::*;

use crate::config::EncoderConfig;
use crate::encoder::{
    Encoder, EncoderSizes, Gradient, NamedTensor, Parameter, StepSeed, TakeTensor, TrainableEncoder,
};
use crate::error::Result;
use crate::features::Points;
use crate::kernels::Kernels;
use crate::matrix::{Groups, Matrix, Output, View, product};
use crate::random::Random;

/// Points per shard.
const SHARD: usize = 32;
/// Words per task when gradients are gathered.
const WORDS_PER_TASK: usize = 256;

/// Standard deviation that word embeddings start with.
const EMBEDDING_SCALE: f32 = 0.1;
/// Factor of the encoder's learning rate for word embeddings, whose rows are seldom touched.
const EMBEDDING_RATE: f32 = 6.0;

/// A trainable bag of words.
#[derive(Clone, Debug)]
pub(crate) struct BagEncoder {
    /// E, V×d.
    embeddings: Matrix,
    /// b, d.
    bias: Vec<f32>,
    residual: Option<ResidualBlock>,
    pass: BagPass,
}

/// R and c of the residual block.
#[derive(Clone, Debug)]
struct ResidualBlock {
    weights: Matrix,
    bias: Vec<f32>,
}

/// Values of a forward pass that the backward pass needs, and the gradients.
#[derive(Clone, Debug, Default)]
struct BagPass {
    /// h, B×d.
    hidden: Matrix,
    /// ReLU(R h + c), B×d.
    block: Matrix,
    d_block: Matrix,
    d_hidden: Matrix,
    words: Vec<u32>,
    values: Vec<f32>,
    points: Vec<u32>,
    by_word: Groups<(u32, f32)>,
    embedding_gradient: Vec<f32>,
    bias_gradient: Vec<f32>,
    weight_gradient: Vec<f32>,
    block_bias_gradient: Vec<f32>,
}

impl BagEncoder {
    /// The encoder's size for batches of this many words.
    pub(crate) fn sizes(
        n_words: usize,
        config: &EncoderConfig,
        batch_words: usize,
    ) -> EncoderSizes {
        let dim = config.dim;
        let residual = if config.residual { dim * dim } else { 0 };
        let n_parameters = n_words * dim + residual;
        EncoderSizes {
            n_parameters,
            n_trained: n_parameters,
            n_step: dim * n_words.min(batch_words),
            n_embedded: 0,
        }
    }

    /// A randomly initialised encoder for `n_words` words.
    pub(crate) fn new(n_words: usize, config: &EncoderConfig, seed: u64) -> Self {
        let dim = config.dim;
        let mut embeddings = Matrix::zeros(n_words, dim);
        embeddings
            .values_mut()
            .par_chunks_mut(dim)
            .enumerate()
            .for_each(|(word, row)| {
                // Rows have norm 1 in L2, so a bag of independent N(0, 1) embeddings has entries of variance 1.
                let mut random = Random::new(seed, "word embedding", word as u64);
                row.iter_mut()
                    .for_each(|value| *value = EMBEDDING_SCALE * random.normal());
            });
        let residual = config.residual.then(|| {
            let mut random = Random::new(seed, "residual block", 0);
            let scale = (1.0 / dim as f32).sqrt();
            let weights = (0..dim * dim).map(|_| scale * random.normal()).collect();
            ResidualBlock {
                weights: Matrix::from_vec(weights, dim, dim),
                bias: vec![0.0; dim],
            }
        });
        let pass = BagPass {
            by_word: Groups::new(n_words),
            ..BagPass::default()
        };
        BagEncoder {
            embeddings,
            bias: vec![0.0; dim],
            residual,
            pass,
        }
    }

    /// An encoder from its saved parameters.
    ///
    /// # Errors
    /// Whatever `take` returns.
    pub(crate) fn from_tensors(
        n_words: usize,
        config: &EncoderConfig,
        take: &mut TakeTensor<'_>,
    ) -> Result<Self> {
        let dim = config.dim;
        let embeddings = take("encoder.embeddings", n_words, dim)?;
        let bias = take("encoder.bias", 1, dim)?.values().to_vec();
        let residual = if config.residual {
            Some(ResidualBlock {
                weights: take("encoder.block.weight", dim, dim)?,
                bias: take("encoder.block.bias", 1, dim)?.values().to_vec(),
            })
        } else {
            None
        };
        Ok(BagEncoder {
            embeddings,
            bias,
            residual,
            pass: BagPass {
                by_word: Groups::new(n_words),
                ..BagPass::default()
            },
        })
    }

    /// h of one point. words and values: the point's row
    fn hidden(&self, words: &[u32], values: &[f32], out: &mut [f32]) {
        Kernels::detect().sum_rows(values, self.embeddings.values(), words, out);
        for (out, bias) in out.iter_mut().zip(&self.bias) {
            *out += bias;
        }
    }

    /// φ of a shard from its h. hidden, block, out: n×d
    fn finish(&self, hidden: &[f32], block: &mut [f32], out: &mut [f32]) {
        let dim = self.dim();
        out.copy_from_slice(hidden);
        let Some(residual) = &self.residual else {
            return;
        };
        let n_points = hidden.len() / dim;
        let weights = View::transposed(residual.weights.values(), dim);
        product(
            [n_points, dim, dim],
            View::rows(hidden, dim),
            weights,
            block,
            Output::Replace,
        );
        for (row, out) in block.chunks_exact_mut(dim).zip(out.chunks_exact_mut(dim)) {
            for ((value, bias), out) in row.iter_mut().zip(&residual.bias).zip(out) {
                *value = (*value + bias).max(0.0);
                *out += *value;
            }
        }
    }
}

impl Encoder for BagEncoder {
    fn dim(&self) -> usize {
        self.bias.len()
    }

    fn encode(&self, points: Points<'_>, rows: &[u32], out: &mut Matrix) {
        let dim = self.dim();
        out.reshape(rows.len(), dim);
        let shards = rows
            .par_chunks(SHARD)
            .zip(out.values_mut().par_chunks_mut(SHARD * dim));
        shards.for_each(|(rows, out)| {
            let mut hidden = vec![0.0; out.len()];
            let mut block = vec![0.0; out.len()];
            for (&row_idx, hidden) in rows.iter().zip(hidden.chunks_exact_mut(dim)) {
                let (words, values) = points.features.row(row_idx as usize);
                self.hidden(words, values, hidden);
            }
            self.finish(&hidden, &mut block, out);
        });
    }
}

impl TrainableEncoder for BagEncoder {
    fn forward(&mut self, points: Points<'_>, rows: &[u32], _step: StepSeed, out: &mut Matrix) {
        let dim = self.dim();
        let mut pass = std::mem::take(&mut self.pass);
        pass.gather_words(points, rows);
        out.reshape(rows.len(), dim);
        pass.hidden.reshape(rows.len(), dim);
        pass.block.reshape(rows.len(), dim);
        let (words, values, starts) = (&pass.words, &pass.values, &pass.points);
        let shards = (pass.hidden.values_mut().par_chunks_mut(SHARD * dim))
            .zip(pass.block.values_mut().par_chunks_mut(SHARD * dim))
            .zip(out.values_mut().par_chunks_mut(SHARD * dim))
            .enumerate();
        shards.for_each(|(shard, ((hidden, block), out))| {
            for (offset, hidden) in hidden.chunks_exact_mut(dim).enumerate() {
                let point = shard * SHARD + offset;
                let range = starts[point] as usize..starts[point + 1] as usize;
                self.hidden(&words[range.clone()], &values[range], hidden);
            }
            self.finish(hidden, block, out);
        });
        self.pass = pass;
    }

    fn backward(&mut self, _points: Points<'_>, rows: &[u32], gradient: &Matrix) {
        let mut pass = std::mem::take(&mut self.pass);
        pass.d_hidden.reshape(rows.len(), self.dim());
        pass.d_hidden
            .values_mut()
            .copy_from_slice(gradient.values());
        if let Some(residual) = &self.residual {
            pass.backward_block(residual, gradient);
        }
        pass.backward_bag(self.dim());
        self.pass = pass;
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let (n_words, dim) = (self.embeddings.n_rows(), self.embeddings.n_cols());
        let pass = &self.pass;
        let mut parameters = vec![
            Parameter {
                name: "encoder.embeddings",
                shape: (n_words, dim),
                values: self.embeddings.values_mut(),
                gradient: Gradient::Rows(pass.by_word.keys(), &pass.embedding_gradient),
                decays: true,
                rate_factor: EMBEDDING_RATE,
            },
            Parameter {
                name: "encoder.bias",
                shape: (1, dim),
                values: &mut self.bias,
                gradient: Gradient::Dense(&pass.bias_gradient),
                decays: false,
                rate_factor: 1.0,
            },
        ];
        if let Some(residual) = &mut self.residual {
            parameters.push(Parameter {
                name: "encoder.block.weight",
                shape: (dim, dim),
                values: residual.weights.values_mut(),
                gradient: Gradient::Dense(&pass.weight_gradient),
                decays: true,
                rate_factor: 1.0,
            });
            parameters.push(Parameter {
                name: "encoder.block.bias",
                shape: (1, dim),
                values: &mut residual.bias,
                gradient: Gradient::Dense(&pass.block_bias_gradient),
                decays: false,
                rate_factor: 1.0,
            });
        }
        parameters
    }

    fn tensors(&self) -> Vec<NamedTensor<'_>> {
        let dim = self.dim();
        let tensor = |name, n_rows, values| NamedTensor {
            name,
            shape: (n_rows, dim),
            values,
        };
        let n_words = self.embeddings.n_rows();
        let mut tensors = vec![
            tensor("encoder.embeddings", n_words, self.embeddings.values()),
            tensor("encoder.bias", 1, &self.bias),
        ];
        if let Some(residual) = &self.residual {
            let weights = residual.weights.values();
            tensors.push(tensor("encoder.block.weight", dim, weights));
            tensors.push(tensor("encoder.block.bias", 1, &residual.bias));
        }
        tensors
    }

    fn as_encoder(&self) -> &dyn Encoder {
        self
    }
}

impl BagPass {
    /// The batch's words, values and row offsets.
    fn gather_words(&mut self, points: Points<'_>, rows: &[u32]) {
        self.words.clear();
        self.values.clear();
        self.points.clear();
        self.points.push(0);
        for &row_idx in rows {
            let (words, values) = points.features.row(row_idx as usize);
            self.words.extend_from_slice(words);
            self.values.extend_from_slice(values);
            self.points.push(self.words.len() as u32);
        }
    }

    /// Through φ = h + ReLU(R h + c): d_h += Rᵀ(d_φ ∘ [block > 0]).
    fn backward_block(&mut self, residual: &ResidualBlock, gradient: &Matrix) {
        let (n_points, dim) = (gradient.n_rows(), gradient.n_cols());
        self.d_block.reshape(n_points, dim);
        let shards = (self.d_block.values_mut().par_chunks_mut(SHARD * dim))
            .zip(self.d_hidden.values_mut().par_chunks_mut(SHARD * dim))
            .zip(gradient.values().par_chunks(SHARD * dim))
            .zip(self.block.values().par_chunks(SHARD * dim));
        shards.for_each(|(((d_block, d_hidden), gradient), block)| {
            for ((d_block, &gradient), &block) in d_block.iter_mut().zip(gradient).zip(block) {
                *d_block = if block > 0.0 { gradient } else { 0.0 };
            }
            let weights = View::rows(residual.weights.values(), dim);
            let shape = [d_block.len() / dim, dim, dim];
            product(
                shape,
                View::rows(d_block, dim),
                weights,
                d_hidden,
                Output::Add,
            );
        });
        self.weight_gradient.resize(dim * dim, 0.0);
        let rows_per_task = dim.div_ceil(8).max(1);
        let (d_block, hidden) = (self.d_block.values(), self.hidden.values());
        self.weight_gradient
            .par_chunks_mut(rows_per_task * dim)
            .enumerate()
            .for_each(|(task, out)| {
                let shape = [out.len() / dim, dim, n_points];
                let left =
                    View::transposed(&d_block[(task * rows_per_task).min(d_block.len())..], dim);
                product(shape, left, View::rows(hidden, dim), out, Output::Replace);
            });
        sum_columns(d_block, dim, &mut self.block_bias_gradient);
    }

    /// Through h = bag + b, to b and to the words of the batch.
    fn backward_bag(&mut self, dim: usize) {
        sum_columns(self.d_hidden.values(), dim, &mut self.bias_gradient);

        let pairs = self
            .points
            .windows(2)
            .zip(0u32..)
            .flat_map(|(ends, point)| {
                let range = ends[0] as usize..ends[1] as usize;
                self.words[range.clone()]
                    .iter()
                    .zip(&self.values[range])
                    .map(move |(&word, &value)| (word, (point, value)))
            });
        self.by_word.group(pairs);
        let n_groups = self.by_word.keys().len();
        self.embedding_gradient.resize(n_groups * dim, 0.0);
        let (groups, d_hidden) = (&self.by_word, self.d_hidden.values());
        let tasks = self
            .embedding_gradient
            .par_chunks_mut(WORDS_PER_TASK * dim)
            .enumerate();
        tasks.for_each(|(task, out)| {
            let kernels = Kernels::detect();
            let (mut rows, mut coefficients) = (Vec::new(), Vec::new());
            for (offset, out) in out.chunks_exact_mut(dim).enumerate() {
                rows.clear();
                coefficients.clear();
                for &(point, value) in groups.members(task * WORDS_PER_TASK + offset) {
                    rows.push(point);
                    coefficients.push(value);
                }
                kernels.sum_rows(&coefficients, d_hidden, &rows, out);
            }
        });
    }
}

fn sum_columns(values: &[f32], n_cols: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(n_cols, 0.0);
    let kernels = Kernels::detect();
    for row in values.chunks_exact(n_cols) {
        kernels.axpy(1.0, row, out);
    }
}
