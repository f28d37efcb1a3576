//! A transformer as encoder: BERT, DistilBERT and models of their shape, such as MiniLM.
//!
//! φ = pool(transformer(tokens)), where pool takes the state of the first token or the mean of all, followed by an
//! optional linear projection. All layers are trained, or the upper ones, or none: then texts are embedded once,
//! before training. Forward and backward passes are written out over matrix products and row kernels; `body` runs a
//! batch, `layer` has the equations of one layer.

mod attention;
mod body;
mod dropout;
mod layer;
mod pooling;
mod read;
mod shape;
mod shard;
mod weights;

pub(crate) use shape::{Architecture, Shape};

use crate::config::{Config, EncoderConfig, Pooling, Recipe};
use crate::data::Pretrained;
use crate::encoder::{
    Encoder, EncoderSizes, NamedTensor, Parameter, StepSeed, TakeTensor, TrainableEncoder,
};
use crate::error::Result;
use crate::features::Points;
use crate::kernels::Kernels;
use crate::matrix::{Matrix, Output, View, product};
use crate::pool::Pool;
use crate::random::Random;

use body::{Body, TransformerPass};
use dropout::Dropout;
use weights::{Linear, Weight, Weights};

/// Tokens per batch in inference.
const INFER_TOKENS: usize = 4096;

/// Texts per thread embedded at once.
const TASK_TEXTS: usize = 64;

/// Share of hidden values and attention weights dropped in training, as BERT was trained with.
const LAYER_DROPOUT: f32 = 0.1;
/// Factor of the encoder's learning rate for the projection, which starts untrained.
const PROJECTION_RATE: f32 = 10.0;

/// A pretrained transformer with its pooling.
#[derive(Clone, Debug)]
pub(crate) struct TransformerEncoder {
    body: Body,
    projection: Option<Linear>,
    config: EncoderConfig,
    pooling: Pooling,
    layer_dropout: f32,
    /// `config.json`, saved with the model.
    json: String,
    pass: TransformerPass,
    /// Pooled states, B×h.
    pooled: Matrix,
    d_pooled: Matrix,
    /// The step of the last forward pass, whose dropout the backward pass draws again.
    step: StepSeed,
    /// Buffers for inference.
    passes: Pool<TransformerPass>,
}

impl TransformerEncoder {
    /// A pretrained transformer. `seed` initialises the projection, if there is one.
    ///
    /// # Errors
    /// [`crate::Error::BadFile`] with what was found and what is supported.
    pub(crate) fn from_pretrained(files: &Pretrained, config: &Config) -> Result<Self> {
        let shape = read::read_shape(files)?;
        if config.encoder.max_len > shape.n_positions {
            let (found, most) = (config.encoder.max_len, shape.n_positions);
            let problem = format!("it has {most} positions, encoder.max_len is {found}: lower it");
            return Err(files.bad_config(problem));
        }
        let weights = read::read_weights(files, &shape)?;
        Ok(TransformerEncoder::assemble(
            shape,
            weights,
            config,
            &files.config,
            config.train.seed,
        ))
    }

    /// A transformer with random weights, to measure its speed.
    pub(crate) fn random(shape: &Shape, config: &Config, seed: u64) -> Self {
        let weights = Weights::random(shape, seed);
        TransformerEncoder::assemble(shape.clone(), weights, config, "", seed)
    }

    /// A transformer from its saved parameters.
    ///
    /// # Errors
    /// Whatever `take` returns; [`crate::Error::Config`] if `json` is not that of a supported transformer.
    pub(crate) fn from_tensors(
        json: &str,
        config: &Config,
        take: &mut TakeTensor<'_>,
    ) -> Result<Self> {
        let shape = Shape::from_json(json).map_err(|problem| crate::Error::Config {
            key: "(config.json of the encoder)".into(),
            found: problem,
            expected: "that of a supported transformer".into(),
        })?;
        let weights = Weights::new(&shape, take)?;
        let projection = match config.encoder.projection {
            None => None,
            Some(dim) => Some(Linear::take(
                &["projection".into()],
                dim,
                shape.hidden,
                take,
            )?),
        };
        let mut encoder = TransformerEncoder::assemble(shape, weights, config, json, 0);
        encoder.projection = projection;
        Ok(encoder)
    }

    fn assemble(shape: Shape, weights: Weights, config: &Config, json: &str, seed: u64) -> Self {
        let projection = config.encoder.projection.map(|dim| {
            let mut projection = random_projection(dim, shape.hidden, seed);
            projection.weight.train();
            projection.bias.train();
            projection
        });
        TransformerEncoder {
            body: Body::new(shape, weights, config.encoder.trained_layers),
            projection,
            config: config.encoder.clone(),
            pooling: Recipe::of(config).pooling,
            layer_dropout: LAYER_DROPOUT,
            json: json.into(),
            pass: TransformerPass::default(),
            pooled: Matrix::default(),
            d_pooled: Matrix::default(),
            step: StepSeed { seed: 0, step: 0 },
            passes: Pool::new(),
        }
    }

    /// Its sizes.
    pub(crate) fn shape(&self) -> &Shape {
        &self.body.shape
    }

    /// The memory for steps of `n_texts` texts of `n_tokens` tokens, and for embedding texts on `n_threads` threads.
    pub(crate) fn sizes(&self, n_texts: usize, n_tokens: usize, n_threads: usize) -> EncoderSizes {
        let shape = &self.body.shape;
        let projection = self
            .projection
            .as_ref()
            .map_or(0, |p| p.weight.values.values().len());
        let n_layers = self.config.trained_layers.unwrap_or(shape.n_layers);
        let layers = n_layers.min(shape.n_layers) * shape.n_layer_parameters();
        let n_parameters = shape.n_parameters() + projection;
        let n_trained = match self.config.trained_layers {
            None => n_parameters,
            Some(_) => layers + projection,
        };
        let attention = shape.n_heads * n_tokens;
        let n_kept = self.body.n_kept_values(n_texts * n_tokens, attention);
        let n_at_once = if self.is_frozen() {
            INFER_TOKENS
        } else {
            n_threads * INFER_TOKENS.min(TASK_TEXTS * n_tokens)
        };
        let n_inferred = n_at_once * (19 * shape.hidden + 2 * shape.inner + attention);
        EncoderSizes {
            n_parameters,
            n_trained,
            n_step: layers + projection + n_kept + n_inferred,
            n_embedded: 0,
        }
    }

    fn dropout(&self, seed: StepSeed) -> Dropout {
        let share = self.layer_dropout;
        Dropout { share, seed }
    }

    /// Whether no layer is trained.
    pub(crate) fn is_frozen(&self) -> bool {
        self.config.trained_layers == Some(0)
    }

    /// Pooled states of these rows, without dropout. out: rows×h
    fn pool_all(&self, points: Points<'_>, rows: &[u32], out: &mut Matrix) {
        let h = self.body.shape.hidden;
        out.reshape(rows.len(), h);
        if let Some(embedded) = points.embedded {
            for (place, &row) in rows.iter().enumerate() {
                out.row_mut(place)
                    .copy_from_slice(embedded.row(row as usize));
            }
            return;
        }
        self.passes.with(TransformerPass::default, |pass| {
            let mut chunk = Matrix::default();
            let mut n_done = 0;
            while n_done < rows.len() {
                // At most INFER_TOKENS tokens, but at least one text.
                let mut n_tokens = 0;
                let more = rows[n_done..].iter().take_while(|&&row| {
                    n_tokens += self.tokens(points, row).len();
                    n_tokens <= INFER_TOKENS
                });
                let n_rows = more.count().max(1);
                let texts = rows[n_done..][..n_rows]
                    .iter()
                    .map(|&row| self.tokens(points, row));
                pass.pack(texts, self.config.max_len);
                let last = self.body.infer(pass);
                chunk.reshape(n_rows, h);
                pooling::pool(self.pooling, pass.shards(), last, &mut chunk);
                out.values_mut()[n_done * h..][..n_rows * h].copy_from_slice(chunk.values());
                n_done += n_rows;
            }
        });
    }

    fn tokens<'a>(&self, points: Points<'a>, row: u32) -> &'a [u32] {
        let tokens = points.tokens.expect("points of a transformer have tokens");
        tokens.row(row as usize)
    }

    /// φ from pooled states. pooled: B×h, out: B×d
    fn project(&self, pooled: &Matrix, out: &mut Matrix) {
        out.reshape(pooled.n_rows(), self.dim());
        let Some(projection) = &self.projection else {
            out.values_mut().copy_from_slice(pooled.values());
            return;
        };
        projection.apply(pooled.values(), out.values_mut());
        let bias = projection.bias.values.values();
        for row in out.values_mut().chunks_exact_mut(bias.len()) {
            Kernels::detect().axpy(1.0, bias, row);
        }
    }
}

impl Encoder for TransformerEncoder {
    fn dim(&self) -> usize {
        let hidden = self.body.shape.hidden;
        self.config.projection.unwrap_or(hidden)
    }

    fn encode(&self, points: Points<'_>, rows: &[u32], out: &mut Matrix) {
        let mut pooled = Matrix::default();
        self.pool_all(points, rows, &mut pooled);
        self.project(&pooled, out);
    }

    fn embed_once(&self, points: Points<'_>, rows: &[u32]) -> Option<Matrix> {
        self.is_frozen().then(|| {
            let mut pooled = Matrix::default();
            self.pool_all(points, rows, &mut pooled);
            pooled
        })
    }

    fn architecture(&self) -> Option<&str> {
        Some(&self.json)
    }
}

impl TrainableEncoder for TransformerEncoder {
    fn forward(&mut self, points: Points<'_>, rows: &[u32], step: StepSeed, out: &mut Matrix) {
        let mut pooled = std::mem::take(&mut self.pooled);
        if self.is_frozen() {
            self.pool_all(points, rows, &mut pooled);
        } else {
            let mut pass = std::mem::take(&mut self.pass);
            let texts = rows.iter().map(|&row| self.tokens(points, row));
            pass.pack(texts, self.config.max_len);
            let last = self.body.forward(&mut pass, self.dropout(step));
            pooled.reshape(rows.len(), self.body.shape.hidden);
            pooling::pool(self.pooling, pass.shards(), last, &mut pooled);
            self.pass = pass;
        }
        self.project(&pooled, out);
        self.pooled = pooled;
        self.step = step;
    }

    fn backward(&mut self, _points: Points<'_>, _rows: &[u32], gradient: &Matrix) {
        let mut d_pooled = std::mem::take(&mut self.d_pooled);
        let h = self.body.shape.hidden;
        d_pooled.reshape(gradient.n_rows(), h);
        match &mut self.projection {
            None => d_pooled.values_mut().copy_from_slice(gradient.values()),
            Some(projection) => {
                projection.backward(gradient.values(), d_pooled.values_mut(), Output::Replace);
                project_gradients(projection, gradient, &self.pooled);
            }
        }
        if !self.is_frozen() {
            let mut pass = std::mem::take(&mut self.pass);
            let shape = &self.body.shape;
            let shards = pass.shards_mut();
            shards
                .iter_mut()
                .for_each(|shard| shard.resize_deltas(shape));
            pooling::pool_backward(self.pooling, shards, &d_pooled);
            self.body.backward(&mut pass, self.dropout(self.step));
            self.pass = pass;
        }
        self.d_pooled = d_pooled;
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let mut parameters = self.body.parameters(&self.pass);
        if let Some(projection) = &mut self.projection {
            // Over a frozen body the projection is all there is: it learns at the rate that was set.
            let is_alone = self.config.trained_layers == Some(0);
            let rate = if is_alone { 1.0 } else { PROJECTION_RATE };
            let weights = [&mut projection.weight, &mut projection.bias];
            parameters.extend(weights.into_iter().flat_map(|w| w.parameters(rate)));
        }
        parameters
    }

    fn tensors(&self) -> Vec<NamedTensor<'_>> {
        let projection = self.projection.iter().flat_map(|p| [&p.weight, &p.bias]);
        let weights = self.body.weights.all().chain(projection);
        weights.flat_map(Weight::tensors).collect()
    }

    fn as_encoder(&self) -> &dyn Encoder {
        self
    }

    fn boxed(&self) -> Box<dyn TrainableEncoder> {
        Box::new(self.clone())
    }
}

/// The identity if the sizes are equal, so that training starts from the pretrained states; random otherwise.
fn random_projection(dim: usize, hidden: usize, seed: u64) -> Linear {
    let scale = (1.0 / hidden as f32).sqrt();
    let mut random = Random::new(seed, "projection", 0);
    let mut take = |_: &str, n_rows: usize, n_cols: usize| {
        let mut matrix = Matrix::zeros(n_rows, n_cols);
        if n_rows > 1 && dim == hidden {
            (0..dim).for_each(|at| matrix.row_mut(at)[at] = 1.0);
        } else if n_rows > 1 {
            for value in matrix.values_mut() {
                *value = scale * random.normal();
            }
        }
        Ok(matrix.into())
    };
    Linear::take(&["projection".into()], dim, hidden, &mut take)
        .expect("these tensors have any shape")
}

/// ∂L/∂P = ∂L/∂φᵀ pooled, ∂L/∂c = Σ ∂L/∂φ.
fn project_gradients(projection: &mut Linear, gradient: &Matrix, pooled: &Matrix) {
    let (n_points, dim, h) = (gradient.n_rows(), gradient.n_cols(), pooled.n_cols());
    let left = View::transposed(gradient.values(), dim);
    let right = View::rows(pooled.values(), h);
    let out = &mut projection.weight.gradient;
    product([dim, h, n_points], left, right, out, Output::Replace);
    let sums = &mut projection.bias.gradient;
    sums.fill(0.0);
    for row in gradient.values().chunks_exact(dim.max(1)) {
        Kernels::detect().axpy(1.0, row, sums);
    }
}

#[cfg(test)]
mod pretrained_tests;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
