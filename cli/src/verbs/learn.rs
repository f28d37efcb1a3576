//! `elias learn`: takes corrections into a model at once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use elias::{Correction, Predictor};
use serde::Deserialize;

use crate::ui::console::Console;
use crate::ui::count::count;

/// Most bytes of a line.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Learn from accepted and rejected labels of texts at once
///
/// A text with accepted labels becomes one that similar texts are compared with; a rejected label is lowered for similar
/// texts, and gone for the same text. Everybody who loads the model from now on gets such answers. Nothing is trained:
/// give the texts to the next training, too.
#[derive(Args)]
pub(crate) struct Learn {
    /// The model
    model: PathBuf,
    /// JSON Lines, {"text": "..", "labels": ["accepted", ..], "not": ["rejected", ..]}; - is standard input
    corrections: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    not: Vec<String>,
}

impl Learn {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let corrections = read(&self.corrections)?;
        Predictor::learn_in(&self.model, &corrections)?;
        console.info(format_args!(
            "learned {}",
            count(corrections.len(), "correction")
        ));
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<Correction>> {
    let name = path.display();
    let mut input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("while opening {name}"))?;
        Box::new(BufReader::new(file))
    };
    let (mut corrections, mut line, mut number) = (Vec::new(), String::new(), 0);
    loop {
        line.clear();
        let n_read = input.by_ref().take(MAX_LINE_BYTES).read_line(&mut line);
        if n_read.with_context(|| format!("while reading {name}"))? == 0 {
            return Ok(corrections);
        }
        number += 1;
        if line.trim().is_empty() {
            continue;
        }
        let Line { text, labels, not } = serde_json::from_str(&line).map_err(|error| {
            anyhow!("{name}:{number}: found {error}, expected {{\"text\": \"..\", \"labels\": [..], \"not\": [..]}}")
        })?;
        if labels.is_empty() && not.is_empty() {
            return Err(anyhow!(
                "{name}:{number}: found neither \"labels\" nor \"not\", expected one of them"
            ));
        }
        corrections.push(Correction { text, labels, not });
    }
}
