//! The `bag` encoder: tf-idf-weighted word embeddings.
//!
//! φ = Σ_w tfidf_w·E_w + b. A point without a known word has φ = b.
//! With vectors u from outside, φ = Σ_w tfidf_w·E_w + P·u + b, where P is trained and E is what the words have of their own:
//! its decay is a pull towards P·u, and what P learns of frequent words serves the rare ones, too. Where u is a sum of vectors of
//! words, [`TrainableEncoder::narrow`] adds P·v_w to E_w, and an answer costs what it costs without; embeddings of texts are
//! given with every text, in training and in prediction.
//! Work is split into shards of points, whose bounds do not depend on the number of threads; the gradient of E is
//! gathered word by word, so that only the words of a batch are touched.

use std::sync::Arc;

use rayon::prelude::*;

use crate::config::{DataCounts, EncoderConfig, Precision};
use crate::encoder::outside::{Outside, Standard, joined};
use crate::encoder::{
    Encoder, EncoderSizes, Gradient, NamedTensor, Parameter, StepSeed, TakeTensor, TensorValues,
    TrainableEncoder,
};
use crate::error::Result;
use crate::features::Points;
use crate::kernels::Kernels;
use crate::matrix::{Groups, Matrix, Output, View, WeightRows, product};
use crate::random::Random;

/// Points per shard.
const SHARD: usize = 32;
/// Words per task when gradients are gathered.
const WORDS_PER_TASK: usize = 256;
/// Rows of P per task when its gradient is computed.
const ROWS_PER_TASK: usize = 64;

/// Standard deviation that word embeddings start with.
const EMBEDDING_SCALE: f32 = 0.1;
/// Share of that beside vectors from outside, which tell words apart from the start.
const OWN_SHARE: f32 = 0.5;
/// Factor of the encoder's learning rate for P: at 1 and more it forgets what the vectors know (`benchmarks/notebook/network.md`).
const PROJECTION_RATE: f32 = 0.2;
/// Factor of the encoder's learning rate for word embeddings, whose rows are seldom touched.
const EMBEDDING_RATE: f32 = 6.0;

/// A trainable bag of words.
#[derive(Clone, Debug)]
pub(crate) struct BagEncoder {
    /// E, V×d.
    embeddings: WeightRows,
    /// b, d.
    bias: Vec<f32>,
    /// P with its inputs: while it is trained, and beside embeddings of texts ever after.
    projection: Option<Projection>,
    pass: BagPass,
}

/// P, d×m, of vectors from outside.
#[derive(Clone, Debug)]
struct Projection {
    weights: Matrix,
    gradient: Vec<f32>,
    source: Source,
}

/// The vectors that P reads.
#[derive(Clone, Debug)]
enum Source {
    /// Sums of vectors of words.
    Words(Arc<Outside>),
    /// Embeddings of texts, shifted and scaled; as values, too, as they are stored.
    Texts(Arc<Standard>, Vec<f32>),
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
    /// The encoder's size for batches of this many words, and for so many points with vectors of m values from outside.
    pub(crate) fn sizes(
        counts: DataCounts,
        config: &EncoderConfig,
        batch_words: usize,
        (m, n_points): (usize, usize),
    ) -> EncoderSizes {
        let (dim, n_words) = (config.dim, counts.n_features);
        let n_own = n_words * dim + dim * m;
        let is_of_words = usize::from(counts.embedding_dim == 0);
        EncoderSizes {
            // When P is added to the words, their vectors are still there.
            n_parameters: n_own
                + is_of_words * (counts.n_parts * dim + (n_words + counts.n_parts) * m),
            n_trained: n_own,
            n_step: dim * n_words.min(batch_words) + dim * m,
            n_embedded: n_points * m,
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
            projection: None,
            pass,
        }
    }

    /// The same encoder over vectors from outside, which a random map spreads over all of its dimensions.
    pub(crate) fn with_outside(self, outside: Arc<Outside>, seed: u64) -> Self {
        let m = outside.dim();
        self.with_projection(Source::Words(outside), m, seed)
    }

    /// The same encoder beside embeddings of texts, which a random map spreads over all of its dimensions.
    pub(crate) fn with_embeddings(self, standard: Arc<Standard>, seed: u64) -> Self {
        let (m, values) = (standard.mean().len(), standard.to_values());
        self.with_projection(Source::Texts(standard, values), m, seed)
    }

    fn with_projection(mut self, source: Source, m: usize, seed: u64) -> Self {
        let dim = self.dim();
        let mut weights = Matrix::zeros(dim, m);
        let mut random = Random::new(seed, "projection of vectors", 0);
        let scale = 1.0 / (m as f32).sqrt();
        let values = weights.values_mut().iter_mut();
        values.for_each(|value| *value = scale * random.normal());
        self.projection = Some(Projection {
            gradient: vec![0.0; dim * m],
            weights,
            source,
        });
        let own = self.embeddings.values_mut().iter_mut();
        own.for_each(|value| *value *= OWN_SHARE);
        self
    }

    /// An encoder from its saved parameters.
    ///
    /// # Errors
    /// Whatever `take` returns.
    pub(crate) fn from_tensors(
        counts: DataCounts,
        config: &EncoderConfig,
        take: &mut TakeTensor<'_>,
    ) -> Result<Self> {
        let dim = config.dim;
        let n_words = counts.n_features.saturating_add(counts.n_parts);
        let embeddings = take("encoder.embeddings", n_words, dim)?;
        let bias = take("encoder.bias", 1, dim)?.row(0).to_vec();
        let projection = match counts.embedding_dim {
            0 => None,
            m => {
                let standard = take("encoder.standard", 1, m + 1)?.row(0).to_vec();
                Some(Projection {
                    weights: take("encoder.projection", dim, m)?.into_full(),
                    gradient: Vec::new(),
                    source: Source::Texts(Standard::from_values(&standard).into(), standard),
                })
            }
        };
        Ok(BagEncoder {
            embeddings,
            bias,
            projection,
            pass: BagPass {
                by_word: Groups::new(n_words),
                ..BagPass::default()
            },
        })
    }

    /// Adds P·u to embeddings of rows, while there is a P. out: rows×d
    fn project(&self, points: Points<'_>, rows: &[u32], out: &mut Matrix) {
        let Some(projection) = &self.projection else {
            return;
        };
        let embedded = points
            .embedded
            .expect("points have vectors where there is a P");
        let (weights, dim) = (&projection.weights, self.dim());
        let m = weights.n_cols();
        let shards = rows
            .par_chunks(SHARD)
            .zip(out.values_mut().par_chunks_mut(SHARD * dim));
        shards.for_each(|(rows, out)| {
            let vectors = projection.vectors(embedded, rows);
            let (vectors, weights) = (
                View::rows(&vectors, m),
                View::transposed(weights.values(), m),
            );
            product([rows.len(), dim, m], vectors, weights, out, Output::Add);
        });
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
                let row_idx = row_idx as usize;
                let (words, values) = points.features.row(row_idx);
                // While P is trained, parts of unseen words are in u.
                let parts = points.unseen.map(|unseen| unseen.row(row_idx));
                match parts.filter(|parts| !parts.0.is_empty() && self.projection.is_none()) {
                    None => self.embed(words, values, out),
                    parts => {
                        let n_words = points.features.n_cols();
                        let (rows, values) = joined((words, values), parts, n_words);
                        self.embed(&rows, &values, out);
                    }
                }
            }
        });
        self.project(points, rows, out);
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
        self.project(points, rows, out);
    }

    fn backward(&mut self, points: Points<'_>, rows: &[u32], gradient: &Matrix) {
        self.pass.backward(gradient);
        if let Some(projection) = &mut self.projection {
            projection.backward(points, rows, gradient);
        }
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
        if let Some(projection) = &mut self.projection {
            parameters.push(Parameter {
                name: "encoder.projection",
                shape: (dim, projection.weights.n_cols()),
                values: projection.weights.values_mut(),
                gradient: Gradient::Dense(&projection.gradient),
                decays: false,
                rate_factor: PROJECTION_RATE,
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
        let embeddings = match &self.embeddings {
            WeightRows::Full(matrix) => TensorValues::Full(matrix.values()),
            WeightRows::Eight(rows) => TensorValues::Eight(rows),
        };
        let mut tensors = vec![
            tensor("encoder.embeddings", self.embeddings.n_rows(), embeddings),
            tensor("encoder.bias", 1, TensorValues::Full(&self.bias)),
        ];
        if let Some(Projection {
            weights, source, ..
        }) = &self.projection
        {
            tensors.push(NamedTensor {
                name: "encoder.projection",
                shape: (dim, weights.n_cols()),
                values: TensorValues::Full(weights.values()),
            });
            if let Source::Texts(_, values) = source {
                tensors.push(NamedTensor {
                    name: "encoder.standard",
                    shape: (1, values.len()),
                    values: TensorValues::Full(values),
                });
            }
        }
        tensors
    }

    fn narrow(&mut self, precision: Precision) {
        if let Some(projection) = &self.projection
            && let Source::Words(outside) = &projection.source
        {
            let embeddings = std::mem::replace(&mut self.embeddings, Matrix::default().into());
            self.embeddings = projection.of_words(outside, embeddings.into_full()).into();
            self.projection = None;
            self.pass.by_word = Groups::new(self.embeddings.n_rows());
        }
        if precision == Precision::Eight {
            let embeddings = std::mem::replace(&mut self.embeddings, Matrix::default().into());
            self.embeddings = embeddings.into_eight();
        }
    }

    fn as_encoder(&self) -> &dyn Encoder {
        self
    }

    fn boxed(&self) -> Box<dyn TrainableEncoder> {
        Box::new(self.clone())
    }
}

impl Projection {
    /// u of these rows, one after the other.
    fn vectors(&self, embedded: &Matrix, rows: &[u32]) -> Vec<f32> {
        let rows = rows.iter().flat_map(|&row| embedded.row(row as usize));
        let mut vectors: Vec<f32> = rows.copied().collect();
        if let Source::Texts(standard, _) = &self.source {
            standard.apply(&mut vectors);
        }
        vectors
    }

    /// ∂L/∂P = ∂L/∂φᵀ·u.
    fn backward(&mut self, points: Points<'_>, rows: &[u32], gradient: &Matrix) {
        let embedded = points
            .embedded
            .expect("points have vectors where there is a P");
        let (dim, m) = (gradient.n_cols(), self.weights.n_cols());
        let vectors = self.vectors(embedded, rows);
        let tasks = self.gradient.par_chunks_mut(ROWS_PER_TASK * m).enumerate();
        tasks.for_each(|(task, out)| {
            let of_rows = View::transposed(&gradient.values()[task * ROWS_PER_TASK..], dim);
            let shape = [out.len() / m, m, rows.len()];
            product(
                shape,
                of_rows,
                View::rows(&vectors, m),
                out,
                Output::Replace,
            );
        });
    }

    /// E_w + P·v_w of every word, and P·v of the parts of other words. own: V×d
    fn of_words(&self, outside: &Outside, own: Matrix) -> Matrix {
        let (vectors, m) = (outside.vectors(), self.weights.n_cols());
        let (n_rows, dim) = (vectors.n_rows(), own.n_cols());
        let mut values = own.values().to_vec();
        values.resize(n_rows * dim, 0.0);
        let tasks = values.par_chunks_mut(WORDS_PER_TASK * dim);
        let tasks = tasks.zip(vectors.values().par_chunks(WORDS_PER_TASK * m));
        tasks.for_each(|(out, vectors)| {
            let weights = View::transposed(self.weights.values(), m);
            let shape = [out.len() / dim, dim, m];
            product(shape, View::rows(vectors, m), weights, out, Output::Add);
        });
        Matrix::from_vec(values, n_rows, dim)
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
