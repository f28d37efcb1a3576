//! `elias predict`: the best labels of every text of an input, in its order.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use elias::data::{
    Part, PredictionFormat, PredictionWriter, ReadOptions, Sink, TextInput, TextInputs, Texts,
};
use elias::{Predictor, Scored};

use crate::ui::console::Console;
use crate::{models, reading};

/// Texts a batch for each thread; batches are predicted side by side and written in order.
const TEXTS_A_THREAD: usize = 512;

/// Predict the labels of texts
///
/// INPUT holds one text a line, or JSON Lines with "text" and perhaps "id"; gzip and zstd are undone. Answers come
/// in the order of the input. jsonl output: {"id"?, "labels": [{"label": NAME, "score": S}, ...]} a line.
/// For a model trained on sparse features, INPUT is a data set.
#[derive(Args)]
pub(crate) struct Predict {
    /// The model
    model: PathBuf,
    /// The texts; - is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    /// Labels a text
    #[arg(short = 'k', long, value_name = "N", default_value_t = 10, value_parser = parse_top_k)]
    top_k: usize,
    /// Leave out answers with a lower probability (of a model without calibration: a lower score)
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    threshold: f32,
    /// Format of the answers
    #[arg(long, value_name = "FORMAT", default_value_t, value_parser = format_parser())]
    output_format: PredictionFormat,
    /// Write to a file, which appears only when complete
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Predict {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load(&self.model)?;
        match &self.out {
            None => self.write(&predictor, BufWriter::new(io::stdout().lock()), console)?,
            Some(path) => {
                let mut sink = Sink::create(path)?;
                self.write(&predictor, &mut sink, console)?;
                sink.finish()?;
                console.say(format_args!("the answers are in {}", path.display()));
            }
        }
        Ok(())
    }

    fn write(
        &self,
        predictor: &Predictor,
        out: impl Write,
        console: &Console,
    ) -> anyhow::Result<()> {
        let probability = |score| predictor.probability(score);
        let writer = PredictionWriter::new(out, self.output_format, predictor.labels())
            .with_probability(&probability);
        if !predictor.takes_texts() {
            return self.answer_dataset(predictor, writer, console);
        }
        let is_stdin = self.input == Path::new("-");
        let inputs = if is_stdin {
            TextInputs::new("standard input", io::stdin().lock())
        } else {
            TextInputs::open(&self.input)
        };
        // Who types wants an answer to every line.
        let batch_size = match is_stdin && io::stdin().is_terminal() {
            true => 1,
            false => TEXTS_A_THREAD * rayon::current_num_threads(),
        };
        self.answer(predictor, inputs?, batch_size, writer)
    }

    fn answer(
        &self,
        predictor: &Predictor,
        mut inputs: TextInputs<'_>,
        batch_size: usize,
        mut writer: PredictionWriter<'_, impl Write>,
    ) -> anyhow::Result<()> {
        loop {
            let batch: elias::Result<Vec<TextInput>> = inputs.by_ref().take(batch_size).collect();
            let batch = batch.context("while reading the texts")?;
            if batch.is_empty() {
                break;
            }
            let texts: Texts = batch.iter().map(|input| &input.text).collect();
            let answers = predictor.rank(&texts, self.top_k)?;
            for (input, answers) in batch.iter().zip(&answers) {
                writer.push(
                    input.id.as_deref(),
                    self.above_threshold(predictor, answers),
                )?;
            }
            writer.flush()?;
        }
        writer.finish()?;
        Ok(())
    }

    fn answer_dataset(
        &self,
        predictor: &Predictor,
        mut writer: PredictionWriter<'_, impl Write>,
        console: &Console,
    ) -> anyhow::Result<()> {
        let options = ReadOptions {
            part: Part::Test,
            known_labels: Some(predictor.labels()),
            ..ReadOptions::default()
        };
        let data = reading::read(console, &self.input, options)?;
        let answers = predictor.rank(&data, self.top_k)?;
        for (point_idx, answers) in answers.iter().enumerate() {
            let id = data.ids().map(|ids| ids.get(point_idx));
            writer.push(id, self.above_threshold(predictor, answers))?;
        }
        writer.finish()?;
        Ok(())
    }

    fn above_threshold<'a>(&self, predictor: &Predictor, answers: &'a [Scored]) -> &'a [Scored] {
        // Probabilities never decrease with the score, so what is above comes first.
        let n_above = answers.partition_point(|answer| {
            let score = answer.score;
            self.threshold <= predictor.probability(score).unwrap_or(score)
        });
        &answers[..n_above]
    }
}

fn format_parser() -> impl TypedValueParser<Value = PredictionFormat> {
    PossibleValuesParser::new(PredictionFormat::ALL.map(PredictionFormat::name))
        .try_map(|name| name.parse::<PredictionFormat>())
}

fn parse_top_k(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number of labels, at least 1".into()),
        Ok(number) => Ok(number),
    }
}
