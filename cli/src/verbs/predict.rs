//! `elias predict`: the best labels of every input text, in input order.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use elias::data::{
    EmbeddingRows, InputId, Part, PredictionFormat, PredictionWriter, Sink, TextEmbeddings,
    TextInput, Texts,
};
use elias::{Inputs, Predictor, Query};

use crate::read_ahead::ReadAhead;
use crate::rules::RuleArgs;
use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::{models, outputs, reading};

/// Predict the labels of texts
///
/// INPUT has one text per line, JSON Lines with "text" and optionally "id", or CSV or TSV with a header; gzip and zstd
/// are decompressed. Answers are in input order.
/// jsonl output: {"id"?, "labels": [{"label": NAME, "score": S, "probability"?}, ...]} per line. csv output: one row
/// per answer, with the columns id (or row, from 0, if the input has no ids), rank, label, score and probability.
/// npz and sparse output is a matrix of scores; with --out, probabilities and label names are written beside it.
/// For a model trained on sparse features, INPUT is a data set.
#[derive(Args)]
pub(crate) struct Predict {
    /// The model
    model: PathBuf,
    /// Texts; - is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    /// Labels per text
    #[arg(short = 'k', long, value_name = "N", default_value_t = Query::default().k, value_parser = parse_top_k)]
    top_k: usize,
    /// Omit answers below this probability (score, if not calibrated)
    #[arg(long, value_name = "P", value_parser = parse_threshold)]
    threshold: Option<f32>,
    /// Format of the answers
    #[arg(long, value_name = "FORMAT", default_value_t, value_parser = format_parser())]
    output_format: PredictionFormat,
    /// Write to a file, which appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    overwrite: bool,
    /// NumPy array with an embedding of every text, for a model that was trained with such
    #[arg(long, value_name = "FILE.npy", hide_short_help = true)]
    embeddings_of_texts: Option<PathBuf>,
    /// If a text cannot be read: stop, or skip it
    #[arg(
        long,
        value_name = "stop|skip",
        default_value = "stop",
        hide_possible_values = true
    )]
    on_error: OnError,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    columns: reading::ColumnArgs,
}

/// Treatment of an input that cannot be read
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
        for out in self.out.iter().flat_map(|out| self.files(out)) {
            outputs::check(&out, self.overwrite, &[&self.input])?;
            outputs::check_outside(&out, &self.model)?;
        }
        let predictor = models::load(&self.model)?;
        let query = self.query(&predictor)?;
        if let Err(error) = predictor.check_query(&query) {
            return Err(Misuse(format!("--{error}")).into());
        }
        if let Some(reason) = models::why_uncalibrated(&predictor) {
            let threshold = match self.threshold {
                Some(_) => ", and --threshold compares scores",
                None => "",
            };
            console.info(format_args!(
                "answers have no probabilities{threshold}: {reason}"
            ));
        }
        match &self.out {
            None => {
                let stdout = BufWriter::new(io::stdout().lock());
                self.write((&predictor, &query), stdout, None, console)?;
            }
            Some(path) => self.write_files((&predictor, &query), path, console)?,
        }
        // Answers of a damaged model must not pass for good ones.
        predictor.check_files()?;
        Ok(())
    }

    fn query(&self, predictor: &Predictor) -> anyhow::Result<Query> {
        Ok(Query {
            k: self.top_k,
            threshold: self.threshold,
            rules: self.rules.resolve(predictor)?,
            ..Query::default()
        })
    }

    fn is_numbered(&self) -> bool {
        matches!(
            self.output_format,
            PredictionFormat::Npz | PredictionFormat::Sparse
        )
    }

    /// The files that are written: where labels are numbered, probabilities and names are beside the scores.
    fn files(&self, out: &Path) -> Vec<PathBuf> {
        let mut files = vec![out.to_path_buf()];
        if self.is_numbered() {
            files.extend([
                PredictionFormat::label_list_of(out),
                PredictionFormat::probabilities_of(out),
            ]);
        }
        files
    }

    fn write_files(
        &self,
        (predictor, query): (&Predictor, &Query),
        path: &Path,
        console: &Console,
    ) -> anyhow::Result<()> {
        let has_second = self.is_numbered() && predictor.is_calibrated();
        let mut scores = Sink::create(path)?;
        let second = has_second.then(|| Sink::create(&PredictionFormat::probabilities_of(path)));
        let mut second = second.transpose()?;
        self.write((predictor, query), &mut scores, second.as_mut(), console)?;
        scores.finish()?;
        if self.is_numbered() {
            predictor
                .labels()
                .write(PredictionFormat::label_list_of(path))?;
        }
        if let Some(probabilities) = second {
            probabilities.finish()?;
        }
        console.info(format_args!("answers written to {}", path.display()));
        Ok(())
    }

    fn write(
        &self,
        (predictor, query): (&Predictor, &Query),
        out: impl Write,
        probabilities: Option<&mut Sink>,
        console: &Console,
    ) -> anyhow::Result<()> {
        let n_labels = predictor.labels().len();
        let mut writer = PredictionWriter::new(out, self.output_format, n_labels);
        if let Some(probabilities) = probabilities {
            writer = writer.with_matrix_of_probabilities(probabilities);
        }
        if !predictor.takes_texts() {
            return self.answer_dataset((predictor, query), writer, console);
        }
        let inputs = ReadAhead::start(self.input.clone(), self.columns.clone())?;
        let skipped = self.answer((predictor, query), inputs, writer)?;
        if let Some(first) = skipped.first {
            let skipped = count(skipped.count, "input");
            console.info(format_args!("skipped {skipped}; the first: {first}"));
        }
        Ok(())
    }

    /// Answers what has arrived, in batches that grow while input comes faster than answers.
    fn answer(
        &self,
        (predictor, query): (&Predictor, &Query),
        mut inputs: ReadAhead,
        mut writer: PredictionWriter<'_, impl Write>,
    ) -> anyhow::Result<Skipped> {
        let mut skipped = Skipped::default();
        let path = self.embeddings_of_texts.as_deref();
        let mut embeddings = path.map(EmbeddingRows::open).transpose()?;
        loop {
            let batch = self.readable(inputs.next_batch(), &mut skipped)?;
            if batch.is_empty() {
                break;
            }
            let texts: Texts = batch.iter().flatten().map(|input| &input.text).collect();
            let answers = match &mut embeddings {
                None => predictor.predict_batch(&texts, query)?,
                Some(rows) => {
                    let embedded = rows_of(rows, &batch)?;
                    predictor.predict_batch(Inputs::Embedded(&texts, &embedded), query)?
                }
            };
            let mut answers = answers.into_iter();
            for input in &batch {
                match (input, input.as_ref().and_then(|_| answers.next())) {
                    (Some(input), Some(answers)) => writer.push(input.id.as_ref(), &answers)?,
                    _ => writer.skip(),
                }
            }
            writer.flush()?;
        }
        if let Some(n_left) = embeddings
            .map(|rows| rows.n_left())
            .filter(|&left| left > 0)
        {
            bail!("there are {n_left} more embeddings than texts: give one per text");
        }
        writer.finish()?;
        Ok(skipped)
    }

    /// The inputs of a batch; None for one that was skipped.
    fn readable(
        &self,
        batch: Vec<elias::Result<TextInput>>,
        skipped: &mut Skipped,
    ) -> anyhow::Result<Vec<Option<TextInput>>> {
        let readable = batch.into_iter().map(|input| match input {
            Ok(input) => Ok(Some(input)),
            Err(error @ elias::Error::Malformed { .. }) if self.on_error == OnError::Skip => {
                skipped.count += 1;
                skipped.first.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error).context("while reading the texts"),
        });
        readable.collect()
    }

    fn answer_dataset(
        &self,
        (predictor, query): (&Predictor, &Query),
        mut writer: PredictionWriter<'_, impl Write>,
        console: &Console,
    ) -> anyhow::Result<()> {
        if self.on_error == OnError::Skip {
            let misuse = "--on-error skip works with texts only; this model takes sparse features";
            return Err(Misuse(misuse.into()).into());
        }
        let options = self.columns.options(Part::Test, Some(predictor.labels()));
        let data = reading::read(console, &self.input, options)?;
        let data = reading::with_embeddings(data, self.embeddings_of_texts.as_deref())?;
        let answers = predictor.predict_batch(&data, query)?;
        for (point_idx, answers) in answers.iter().enumerate() {
            let id = data.ids().map(|ids| InputId::from(ids.get(point_idx)));
            writer.push(id.as_ref(), answers)?;
        }
        writer.finish()?;
        Ok(())
    }
}

/// The embeddings of the texts of a batch; one of a text that was skipped is skipped, too.
fn rows_of(
    rows: &mut EmbeddingRows,
    batch: &[Option<TextInput>],
) -> anyhow::Result<TextEmbeddings> {
    let read = rows.next(batch.len())?;
    if read.len() < batch.len() {
        bail!("there are fewer embeddings than texts: give one per text");
    }
    let kept: Vec<usize> = (0..batch.len()).filter(|&at| batch[at].is_some()).collect();
    Ok(read.select(&kept))
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

pub(crate) fn parse_threshold(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("expected a finite number".into()),
    }
}
