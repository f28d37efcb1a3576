//! `elias predict`: the best labels of every input text, in input order.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use elias::data::{
    self, Part, PredictionFormat, PredictionWriter, Sink, TextInput, TextInputs, Texts,
};
use elias::{Predictor, Scored};

use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::{models, outputs, reading};

/// Texts per batch and thread; a batch is predicted in parallel and written in order.
const TEXTS_PER_THREAD: usize = 512;

/// Predict the labels of texts
///
/// INPUT has one text per line, JSON Lines with "text" and optionally "id", or CSV or TSV with a header; gzip and zstd
/// are decompressed. Answers are in input order.
/// jsonl output: {"id"?, "labels": [{"label": NAME, "score": S}, ...]} per line. csv output: one row per answer, with
/// the columns id (or row, from 0, if the input has no ids), rank, label, score and probability.
/// For a model trained on sparse features, INPUT is a data set.
#[derive(Args)]
pub(crate) struct Predict {
    /// The model
    model: PathBuf,
    /// Texts; - is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    /// Labels per text
    #[arg(short = 'k', long, value_name = "N", default_value_t = 10, value_parser = parse_top_k)]
    top_k: usize,
    /// Omit answers below this probability (score, if not calibrated)
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = parse_threshold)]
    threshold: f32,
    /// Format of the answers
    #[arg(long, value_name = "FORMAT", default_value_t, value_parser = format_parser())]
    output_format: PredictionFormat,
    /// Write to a file, which appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    overwrite: bool,
    /// If a text cannot be read: stop, or skip it
    #[arg(
        long,
        value_name = "stop|skip",
        default_value = "stop",
        hide_possible_values = true
    )]
    on_error: OnError,
    #[command(flatten)]
    columns: reading::ColumnArgs,
}

/// What to do if an input cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    Stop,
    Skip,
}

/// The inputs that were skipped.
#[derive(Default)]
struct Skipped {
    count: usize,
    /// Where the first one is, and what is wrong with it.
    first: Option<elias::Error>,
}

impl Predict {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        if let Some(out) = &self.out {
            outputs::check(out, self.overwrite, &[&self.input])?;
        }
        let predictor = models::load(&self.model)?;
        if self.threshold > 0.0 && predictor.probability(0.0).is_none() {
            console.info(
                "the model is not calibrated: --threshold compares scores, not probabilities",
            );
        }
        match &self.out {
            None => self.write(&predictor, BufWriter::new(io::stdout().lock()), console)?,
            Some(path) => {
                let mut sink = Sink::create(path)?;
                self.write(&predictor, &mut sink, console)?;
                sink.finish()?;
                if matches!(
                    self.output_format,
                    PredictionFormat::Npz | PredictionFormat::Sparse
                ) {
                    data::write_label_list(&data::label_list_of(path), predictor.labels())?;
                }
                console.info(format_args!("answers written to {}", path.display()));
            }
        }
        // Answers of a damaged model must not pass for good ones.
        predictor.check_files()?;
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
        let skipped = self.answer(predictor, self.read_ahead()?, writer)?;
        if let Some(first) = skipped.first {
            let skipped = count(skipped.count, "input");
            console.info(format_args!("skipped {skipped}; the first: {first}"));
        }
        Ok(())
    }

    /// Reads the texts on a thread of its own, which may wait for input when this process ends.
    fn read_ahead(&self) -> anyhow::Result<Receiver<elias::Result<TextInput>>> {
        let (path, columns) = (self.input.clone(), self.columns.clone());
        let (sender, receiver) = mpsc::sync_channel(batch_size());
        let read = move || {
            let inputs = if path == Path::new("-") {
                TextInputs::new("standard input", io::stdin())
            } else {
                TextInputs::open(&path)
            };
            match inputs {
                Ok(inputs) => {
                    for input in inputs.with_columns(columns.columns()) {
                        if sender.send(input).is_err() {
                            return;
                        }
                    }
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("reader".into());
        thread
            .spawn(read)
            .context("while starting a thread to read the texts")?;
        Ok(receiver)
    }

    /// Answers what has arrived, in batches that grow while input comes faster than answers.
    fn answer(
        &self,
        predictor: &Predictor,
        inputs: Receiver<elias::Result<TextInput>>,
        mut writer: PredictionWriter<'_, impl Write>,
    ) -> anyhow::Result<Skipped> {
        let mut skipped = Skipped::default();
        loop {
            let batch = self.next_batch(&inputs, &mut skipped)?;
            if batch.is_empty() {
                break;
            }
            let texts: Texts = batch.iter().flatten().map(|input| &input.text).collect();
            let mut answers = predictor.rank(&texts, self.top_k)?.into_iter();
            for input in &batch {
                match (input, input.as_ref().and_then(|_| answers.next())) {
                    (Some(input), Some(answers)) => writer.push(
                        input.id.as_deref(),
                        self.above_threshold(predictor, &answers),
                    )?,
                    _ => writer.skip(),
                }
            }
            writer.flush()?;
        }
        writer.finish()?;
        Ok(skipped)
    }

    /// The inputs that have arrived, at least one unless the input has ended; None for one that was skipped.
    fn next_batch(
        &self,
        inputs: &Receiver<elias::Result<TextInput>>,
        skipped: &mut Skipped,
    ) -> anyhow::Result<Vec<Option<TextInput>>> {
        let first = inputs.recv().into_iter();
        let arrived = first.chain(inputs.try_iter()).take(batch_size());
        let mut batch = Vec::new();
        for input in arrived {
            match input {
                Ok(input) => batch.push(Some(input)),
                Err(error @ elias::Error::Malformed { .. }) if self.on_error == OnError::Skip => {
                    skipped.count += 1;
                    skipped.first.get_or_insert(error);
                    batch.push(None);
                }
                Err(error) => return Err(error).context("while reading the texts"),
            }
        }
        Ok(batch)
    }

    fn answer_dataset(
        &self,
        predictor: &Predictor,
        mut writer: PredictionWriter<'_, impl Write>,
        console: &Console,
    ) -> anyhow::Result<()> {
        if self.on_error == OnError::Skip {
            let misuse = "--on-error skip works with texts only; this model takes sparse features";
            return Err(Misuse(misuse.into()).into());
        }
        let options = self.columns.options(Part::Test, Some(predictor.labels()));
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
        // Probabilities never decrease with the score, so answers above the threshold come first.
        let n_above = answers.partition_point(|answer| {
            let score = answer.score;
            predictor.probability(score).unwrap_or(score) >= self.threshold
        });
        &answers[..n_above]
    }
}

/// Most texts per batch.
fn batch_size() -> usize {
    TEXTS_PER_THREAD * rayon::current_num_threads()
}

fn format_parser() -> impl TypedValueParser<Value = PredictionFormat> {
    PossibleValuesParser::new(PredictionFormat::ALL.map(PredictionFormat::name))
        .try_map(|name| name.parse::<PredictionFormat>())
}

fn parse_top_k(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected an integer of at least 1".into()),
        Ok(number) => Ok(number),
    }
}

fn parse_threshold(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("expected a finite number".into()),
    }
}
