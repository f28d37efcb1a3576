//! `elias bench encoder`: how fast transformers train and embed, beside the plain matrix product of the same process.

use std::path::PathBuf;

use clap::Args;
use elias::bench::{EncoderBench, EncoderFigures, KNOWN_SHAPES};

use super::{Groups, write_groups};
use crate::ui::console::Console;

/// Measure transformers: training steps with AdamW, and embedding texts
///
/// Without DIR the shapes are those of MiniLM-L6 and BERT-base, with random weights. Every text of a batch has the
/// same number of tokens. A rate counts the matrix products alone, three times the forward pass for a training step.
#[derive(Args)]
pub(crate) struct BenchEncoder {
    /// Directory of a transformer
    dir: Option<PathBuf>,
    /// Shapes to measure without DIR
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = KNOWN_SHAPES,
          default_values_t = KNOWN_SHAPES.map(str::to_owned))]
    shapes: Vec<String>,
    /// Steps to measure
    #[arg(long, value_name = "N", default_value_t = 5)]
    steps: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Texts per batch and tokens per text.
const BATCHES: [(usize, usize); 3] = [(32, 32), (16, 128), (1, 32)];

impl BenchEncoder {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let mut groups = Groups::new();
        for (name, mut encoder) in self.encoders()? {
            for (n_texts, n_tokens) in BATCHES {
                console.detail(format_args!("{name}, {n_texts} texts of {n_tokens} tokens"));
                let figures = encoder.measure(n_texts, n_tokens, self.steps);
                let group = format!("{name} {n_texts}x{n_tokens}");
                groups.push((group, rows(&figures, (n_texts * n_tokens) as f64)));
            }
        }
        write_groups(&groups, self.json)
    }

    fn encoders(&self) -> anyhow::Result<Vec<(String, EncoderBench)>> {
        if let Some(dir) = &self.dir {
            let name = dir.file_name().unwrap_or(dir.as_os_str());
            let encoder = EncoderBench::from_directory(dir)?;
            return Ok(vec![(name.to_string_lossy().into_owned(), encoder)]);
        }
        let named = |name: &String| Some((name.clone(), EncoderBench::from_shape(name)?));
        Ok(self.shapes.iter().filter_map(named).collect())
    }
}

fn rows(figures: &EncoderFigures, n_tokens: f64) -> Vec<(&'static str, f64)> {
    let rate = figures.sgemm_gflops;
    vec![
        ("training_tokens_per_s", n_tokens / figures.training_step),
        ("training_step_ms", 1e3 * figures.training_step),
        ("training_gflops", figures.training_gflops),
        ("training_fraction_of_sgemm", figures.training_gflops / rate),
        ("inference_tokens_per_s", n_tokens / figures.inference),
        ("inference_ms", 1e3 * figures.inference),
        ("inference_gflops", figures.inference_gflops),
        (
            "inference_fraction_of_sgemm",
            figures.inference_gflops / rate,
        ),
        ("sgemm_gflops", rate),
    ]
}
