//! `elias bench encoder`: how fast transformers train and embed, compared with a plain matrix product.

use std::path::PathBuf;

use clap::Args;
use elias::internals::{EncoderBench, EncoderFigures, KNOWN_SHAPES};

use super::{Figures, Group, write_groups};
use crate::ui::console::Console;

/// Measure transformers: training steps with AdamW, and inference
///
/// Without DIR, MiniLM-L6 and BERT-base with random weights are measured. All texts of a batch have the same number
/// of tokens. gflops count matrix products only; a training step counts as three forward passes.
#[derive(Args)]
pub(crate) struct BenchEncoder {
    /// Directory of a transformer
    dir: Option<PathBuf>,
    /// Shapes to measure without DIR
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = KNOWN_SHAPES,
          default_values_t = KNOWN_SHAPES.map(str::to_owned))]
    shapes: Vec<String>,
    /// Number of steps to measure
    #[arg(long, value_name = "N", default_value_t = 5)]
    steps: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The batches to measure.
const BATCHES: [BatchShape; 3] = [
    BatchShape {
        n_texts: 32,
        n_tokens: 32,
    },
    BatchShape {
        n_texts: 16,
        n_tokens: 128,
    },
    BatchShape {
        n_texts: 1,
        n_tokens: 32,
    },
];

/// Texts per batch and tokens per text.
struct BatchShape {
    n_texts: usize,
    n_tokens: usize,
}

struct NamedEncoder {
    name: String,
    encoder: EncoderBench,
}

impl BenchEncoder {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let mut groups = Vec::new();
        for NamedEncoder { name, mut encoder } in self.encoders()? {
            for BatchShape { n_texts, n_tokens } in BATCHES {
                console.detail(format_args!("{name}, {n_texts} texts of {n_tokens} tokens"));
                let figures = encoder.measure(n_texts, n_tokens, self.steps);
                groups.push(Group {
                    name: format!("{name} {n_texts}x{n_tokens}"),
                    figures: rows(&figures, (n_texts * n_tokens) as f64),
                });
            }
        }
        write_groups(&groups, self.json)
    }

    fn encoders(&self) -> anyhow::Result<Vec<NamedEncoder>> {
        if let Some(dir) = &self.dir {
            let name = dir.file_name().unwrap_or(dir.as_os_str());
            return Ok(vec![NamedEncoder {
                name: name.to_string_lossy().into_owned(),
                encoder: EncoderBench::from_directory(dir)?,
            }]);
        }
        let named = |name: &String| {
            Some(NamedEncoder {
                name: name.clone(),
                encoder: EncoderBench::from_shape(name)?,
            })
        };
        Ok(self.shapes.iter().filter_map(named).collect())
    }
}

fn rows(figures: &EncoderFigures, n_tokens: f64) -> Figures {
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
