//! How fast transformers train and embed, beside the plain matrix product of the same process.
//!
//! Every text of a batch has the same number of tokens. A rate counts the matrix products alone: three times those of
//! the forward pass for a training step.

use std::path::Path;
use std::time::Instant;

use super::{Sgemm, median};
use crate::config::{Config, LearningRates, Recipe, RowUpdates};
use crate::data::Pretrained;
use crate::encoder::{
    Architecture, Encoder, Shape, StepSeed, TrainableEncoder, TransformerEncoder,
};
use crate::error::Result;
use crate::features::{Points, TokenRows};
use crate::matrix::{CsrMatrix, Matrix};
use crate::optim::{Moments, Schedule, update_parameter};

/// Names of the shapes that can be measured without weights.
pub const KNOWN_SHAPES: [&str; 2] = ["minilm-l6", "bert-base"];

/// A transformer to measure.
pub struct EncoderBench {
    encoder: TransformerEncoder,
}

/// Figures of one batch shape.
#[derive(Clone, Copy, Debug)]
pub struct EncoderFigures {
    /// Seconds of a training step with AdamW.
    pub training_step: f64,
    /// GFLOPS of a training step.
    pub training_gflops: f64,
    /// Seconds to embed the batch.
    pub inference: f64,
    /// GFLOPS of inference.
    pub inference_gflops: f64,
    /// GFLOPS of a plain matrix product.
    pub sgemm_gflops: f64,
}

impl EncoderBench {
    /// The transformer of a directory.
    ///
    /// # Errors
    /// As reading a pretrained encoder for training.
    pub fn from_directory(directory: impl AsRef<Path>) -> Result<Self> {
        let files = Pretrained::read(directory.as_ref())?;
        let encoder = TransformerEncoder::from_pretrained(&files, &Config::default())?;
        Ok(EncoderBench { encoder })
    }

    /// A transformer of one of the [`KNOWN_SHAPES`] with random weights; none for another name.
    pub fn from_shape(name: &str) -> Option<Self> {
        let (hidden, n_layers) = match name {
            "minilm-l6" => (384, 6),
            "bert-base" => (768, 12),
            _ => return None,
        };
        let shape = Shape {
            architecture: Architecture::Bert,
            n_words: 30_522,
            n_positions: 512,
            n_types: 2,
            hidden,
            inner: 4 * hidden,
            n_layers,
            n_heads: 12,
            epsilon: 1e-12,
        };
        let encoder = TransformerEncoder::random(&shape, &Config::default(), 1);
        Some(EncoderBench { encoder })
    }

    /// Measures batches of so many texts with so many tokens each. Products and steps take turns, so that both see the
    /// same machine; medians count.
    pub fn measure(&mut self, n_texts: usize, n_tokens: usize, n_steps: usize) -> EncoderFigures {
        let encoder = &mut self.encoder;
        let forward_flops = n_texts as f64 * encoder.shape().flops(n_tokens);
        let n_words = encoder.shape().n_words;
        let token = |text: usize, at: usize| ((text * 7919 + at * 104_729) % n_words) as u32;
        let text = |text: usize| (0..n_tokens).map(|at| token(text, at)).collect::<Vec<_>>();
        let tokens: TokenRows = (0..n_texts).map(text).collect();
        let features = CsrMatrix::new(vec![0; n_texts + 1], vec![], vec![], 1)
            .expect("rows without entries are a matrix");
        let points = Points {
            tokens: Some(&tokens),
            ..Points::of_features(&features)
        };
        let rows: Vec<u32> = (0..n_texts as u32).collect();
        let mut trainer = Trainer::new(encoder);
        let mut sgemm = Sgemm::new();
        let (mut rates, mut steps, mut inferences) = (Vec::new(), Vec::new(), Vec::new());
        let mut out = Matrix::default();
        for turn in 0..=n_steps {
            let rate = median(&[sgemm.measure(), sgemm.measure(), sgemm.measure()]);
            let started = Instant::now();
            trainer.step(encoder, points, &rows, turn);
            let step = started.elapsed().as_secs_f64();
            let started = Instant::now();
            encoder.encode(points, &rows, &mut out);
            let inference = started.elapsed().as_secs_f64();
            // The first turn makes room.
            if turn > 0 {
                rates.push(rate);
                steps.push(step);
                inferences.push(inference);
            }
        }
        let (rate, step, inference) = (median(&rates), median(&steps), median(&inferences));
        EncoderFigures {
            training_step: step,
            training_gflops: 3.0 * forward_flops / step / 1e9,
            inference,
            inference_gflops: forward_flops / inference / 1e9,
            sgemm_gflops: rate,
        }
    }
}

/// AdamW on every parameter of an encoder.
struct Trainer {
    moments: Vec<Moments>,
    schedule: Schedule,
    row_updates: RowUpdates,
    embeddings: Matrix,
    gradient: Matrix,
}

impl Trainer {
    fn new(encoder: &mut TransformerEncoder) -> Self {
        let Recipe {
            second_moments: kind,
            row_updates,
            ..
        } = Recipe::of(&Config::default());
        let parameters = encoder.parameters();
        let moments = parameters
            .iter()
            .map(|one| Moments::for_parameter(one, kind));
        Trainer {
            moments: moments.collect(),
            schedule: Schedule::new(1_000),
            row_updates,
            embeddings: Matrix::default(),
            gradient: Matrix::default(),
        }
    }

    fn step(
        &mut self,
        encoder: &mut TransformerEncoder,
        points: Points<'_>,
        rows: &[u32],
        step: usize,
    ) {
        let seed = StepSeed {
            seed: 1,
            step: step as u64,
        };
        encoder.forward(points, rows, seed, &mut self.embeddings);
        let dim = self.embeddings.n_cols();
        self.gradient.reshape(rows.len(), dim);
        let entries = self.gradient.values_mut().iter_mut().zip(0..);
        entries.for_each(|(value, at): (&mut f32, i32)| *value = ((at % 7) - 3) as f32 * 1e-3);
        encoder.backward(points, rows, &self.gradient);
        let config = Config::default();
        let rates = LearningRates {
            encoder: 1e-5,
            ..config.rates.by_stage()[0]
        };
        let rates = self.schedule.rates(step, &rates, &Recipe::of(&config));
        let parameters = encoder.parameters().into_iter().zip(&mut self.moments);
        parameters.for_each(|(parameter, moments)| {
            update_parameter(parameter, moments, &rates, self.row_updates)
        });
    }
}
