//! The `bag` encoder: tf-idf-weighted word embeddings.
//!
//! φ = Σ_w tfidf_w·E_w + b. A point without a known word has φ = b.
//! Work is split into shards of points, whose bounds do not depend on the number of threads; the gradient of E is
//! gathered word by word, so that only the words of a batch are touched.

use rayon::prelude::*;

use crate::config::{EncoderConfig, Precision};
use crate::encoder::{
    Encoder, EncoderSizes, Gradient, NamedTensor, Parameter, StepSeed, TakeTensor, TensorValues,
    TrainableEncoder,
};
use crate::error::Result;
use crate::features::Points;
use crate::kernels::Kernels;
use crate::matrix::{Groups, Matrix, WeightRows};
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
    embeddings: WeightRows,
    /// b, d.
    bias: Vec<f32>,
    pass: BagPass,
}

/// Values of a forward pass that the backward pass needs, and the gradients.
#[derive(Clone, Debug, Default)]
struct BagPass {
    words: Vec<u32>,
    values: Vec<f32>,
    points: Vec<u32>,
    by_word: Groups<(u32, f32)>,
    embedding_gradient: Vec<f32>,
    bias_gradient: Vec<f32>,
}

impl BagEncoder {
    /// The encoder's size for batches of this many words.
    pub(crate) fn sizes(
        n_words: usize,
        config: &EncoderConfig,
        batch_words: usize,
    ) -> EncoderSizes {
        let dim = config.dim;
        let n_parameters = n_words * dim;
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
        let pass = BagPass {
            by_word: Groups::new(n_words),
            ..BagPass::default()
        };
        BagEncoder {
            embeddings: embeddings.into(),
            bias: vec![0.0; dim],
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
        let bias = take("encoder.bias", 1, dim)?.row(0).to_vec();
        Ok(BagEncoder {
            embeddings,
            bias,
            pass: BagPass {
                by_word: Groups::new(n_words),
                ..BagPass::default()
            },
        })
    }

    /// φ of one point. words and values: the point's row
    fn embed(&self, words: &[u32], values: &[f32], out: &mut [f32]) {
        self.embeddings.sum(values, words, out);
        for (out, bias) in out.iter_mut().zip(&self.bias) {
            *out += bias;
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
            for (&row_idx, out) in rows.iter().zip(out.chunks_exact_mut(dim)) {
                let (words, values) = points.features.row(row_idx as usize);
                self.embed(words, values, out);
            }
        });
    }
}

impl TrainableEncoder for BagEncoder {
    fn forward(&mut self, points: Points<'_>, rows: &[u32], _step: StepSeed, out: &mut Matrix) {
        let dim = self.dim();
        let mut pass = std::mem::take(&mut self.pass);
        pass.gather_words(points, rows);
        out.reshape(rows.len(), dim);
        let (words, values, starts) = (&pass.words, &pass.values, &pass.points);
        let shards = out.values_mut().par_chunks_mut(SHARD * dim).enumerate();
        shards.for_each(|(shard, out)| {
            for (offset, out) in out.chunks_exact_mut(dim).enumerate() {
                let point = shard * SHARD + offset;
                let range = starts[point] as usize..starts[point + 1] as usize;
                self.embed(&words[range.clone()], &values[range], out);
            }
        });
        self.pass = pass;
    }

    fn backward(&mut self, _points: Points<'_>, _rows: &[u32], gradient: &Matrix) {
        self.pass.backward(gradient);
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let (n_words, dim) = (self.embeddings.n_rows(), self.embeddings.n_cols());
        let pass = &self.pass;
        vec![
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
        ]
    }

    fn tensors(&self) -> Vec<NamedTensor<'_>> {
        let dim = self.dim();
        let tensor = |name, n_rows, values| NamedTensor {
            name,
            shape: (n_rows, dim),
            values,
        };
        let embeddings = match &self.embeddings {
            WeightRows::Full(matrix) => TensorValues::Full(matrix.values()),
            WeightRows::Eight(rows) => TensorValues::Eight(rows),
        };
        vec![
            tensor("encoder.embeddings", self.embeddings.n_rows(), embeddings),
            tensor("encoder.bias", 1, TensorValues::Full(&self.bias)),
        ]
    }

    fn narrow(&mut self, precision: Precision) {
        if precision == Precision::Eight {
            let embeddings = std::mem::replace(&mut self.embeddings, Matrix::default().into());
            self.embeddings = embeddings.into_eight();
        }
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

    /// From the gradient of φ to those of b and of the words of the batch.
    fn backward(&mut self, gradient: &Matrix) {
        let dim = gradient.n_cols();
        sum_columns(gradient.values(), dim, &mut self.bias_gradient);

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
        let (groups, gradient) = (&self.by_word, gradient.values());
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
                kernels.sum_rows(&coefficients, gradient, &rows, out);
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
