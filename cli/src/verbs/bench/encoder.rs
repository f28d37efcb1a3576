//! `elias bench encoder`: how fast transformers train and embed, beside the plain matrix product of the same process.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use elias::config::{Config, EncoderConfig, LearningRates};
use elias::data::Pretrained;
use elias::encoder::{
    Architecture, Encoder, Points, Shape, StepSeed, TrainableEncoder, TransformerEncoder,
};
use elias::features::TokenRows;
use elias::matrix::{CsrMatrix, Matrix};
use elias::optim::{Moments, Schedule, update_parameter};

use super::{Groups, write_groups};
use crate::sgemm::{Sgemm, median};
use crate::ui::console::Console;

/// Measure transformers: training steps with AdamW, and embedding texts
///
/// Without DIR the shapes are those of MiniLM-L6 and BERT-base, with random weights. Every text of a batch has the
/// same number of tokens. A rate counts the matrix products alone, three times the forward pass for a training step.
#[derive(Args)]
pub(crate) struct BenchEncoder {
    /// The directory of a transformer
    dir: Option<PathBuf>,
    /// Shapes that are measured without DIR
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = ["minilm-l6", "bert-base"],
          default_value = "minilm-l6,bert-base")]
    shapes: Vec<String>,
    /// Steps that are measured of each kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    steps: usize,
    /// Share of values dropped inside the transformer
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    dropout: f32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Texts of a batch and tokens of each.
const BATCHES: [(usize, usize); 3] = [(32, 32), (16, 128), (1, 32)];

impl BenchEncoder {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let mut groups = Groups::new();
        for (name, mut encoder) in self.encoders()? {
            for (n_texts, n_tokens) in BATCHES {
                console.detail(format_args!("{name}, {n_texts} texts of {n_tokens} tokens"));
                let figures = self.measure(&mut encoder, n_texts, n_tokens);
                groups.push((format!("{name} {n_texts}x{n_tokens}"), figures));
            }
        }
        write_groups(&groups, self.json)
    }

    fn config(&self) -> EncoderConfig {
        EncoderConfig {
            layer_dropout: self.dropout,
            ..Config::default().encoder
        }
    }

    fn encoders(&self) -> anyhow::Result<Vec<(String, TransformerEncoder)>> {
        let config = self.config();
        if let Some(dir) = &self.dir {
            let files = Pretrained::read(dir)?;
            let encoder = TransformerEncoder::from_pretrained(&files, &config, 1)?;
            let name = dir.file_name().unwrap_or(dir.as_os_str());
            return Ok(vec![(name.to_string_lossy().into_owned(), encoder)]);
        }
        let bert = |hidden: usize, n_layers: usize| Shape {
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
        let shapes = [("minilm-l6", bert(384, 6)), ("bert-base", bert(768, 12))];
        let encoder = |shape: &Shape| TransformerEncoder::random(shape, &config, 1);
        let wanted = shapes
            .iter()
            .filter(|shape| self.shapes.iter().any(|name| name == shape.0));
        Ok(wanted
            .map(|(name, shape)| ((*name).into(), encoder(shape)))
            .collect())
    }

    /// Figures of one batch; products and steps by turns, so that both see the same machine.
    fn measure(
        &self,
        encoder: &mut TransformerEncoder,
        n_texts: usize,
        n_tokens: usize,
    ) -> Vec<(&'static str, f64)> {
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
        for turn in 0..=self.steps {
            let rate = median(&[sgemm.measure(), sgemm.measure(), sgemm.measure()]);
            let started = Instant::now();
            trainer.step(encoder, points, &rows, turn);
            let step = started.elapsed().as_secs_f64();
            let started = Instant::now();
            encoder.encode(points, &rows, &mut out);
            let inference = started.elapsed().as_secs_f64();
            // The first turn makes room.
            if 0 < turn {
                rates.push(rate);
                steps.push(step);
                inferences.push(inference);
            }
        }
        let (rate, step, inference) = (median(&rates), median(&steps), median(&inferences));
        let n_tokens = (n_texts * n_tokens) as f64;
        let gflops = [
            3.0 * forward_flops / step / 1e9,
            forward_flops / inference / 1e9,
        ];
        vec![
            ("training_tokens_per_s", n_tokens / step),
            ("training_step_ms", 1e3 * step),
            ("training_gflops", gflops[0]),
            ("training_fraction_of_sgemm", gflops[0] / rate),
            ("inference_tokens_per_s", n_tokens / inference),
            ("inference_ms", 1e3 * inference),
            ("inference_gflops", gflops[1]),
            ("inference_fraction_of_sgemm", gflops[1] / rate),
            ("sgemm_gflops", rate),
        ]
    }
}

/// AdamW on every parameter of an encoder.
struct Trainer {
    moments: Vec<Moments>,
    schedule: Schedule,
    embeddings: Matrix,
    gradient: Matrix,
}

impl Trainer {
    fn new(encoder: &mut TransformerEncoder) -> Self {
        let kind = Config::default().optim.second_moments;
        let parameters = encoder.parameters();
        let moments = parameters
            .iter()
            .map(|one| Moments::for_parameter(one, kind));
        Trainer {
            moments: moments.collect(),
            schedule: Schedule::new(1_000, 0.1),
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
        let rates = LearningRates {
            encoder: 1e-5,
            ..LearningRates::default()
        };
        let rates = self.schedule.rates(step, &rates, &Config::default().optim);
        let parameters = encoder.parameters().into_iter().zip(&mut self.moments);
        parameters.for_each(|(parameter, moments)| update_parameter(parameter, moments, &rates));
    }
}
