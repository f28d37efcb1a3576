//! `elias predict`: the best labels of every input text, in input order.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use elias::data::{
    EmbeddingRows, InputId, Part, PredictionFormat, PredictionWriter, Sink, TextEmbeddings,
    TextInput, Texts,
};
use elias::{Inputs, Prediction, Predictor, Query};

use crate::read_ahead::ReadAhead;
use crate::rules::RuleArgs;
use crate::ui::answers;
use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::ui::table::shorten;
use crate::{models, outputs, reading};

/// Predict the labels of texts
///
/// INPUT has one text per line, JSON Lines with "text" and optionally "id", or CSV or TSV with a header; gzip and zstd
/// are decompressed. It may also be a text itself, in quotes. Answers are in input order.
/// jsonl output: {"id"?, "labels": [{"label": NAME, "score": S, "probability"?}, ...]} per line. csv output: one row
/// per answer, with the columns id (or row, from 0, if the input has no ids), rank, label, score and probability.
/// npz and sparse output is a matrix of scores; with --out, probabilities and label names are written beside it.
/// For a model trained on sparse features, INPUT is a data set.
#[derive(Args)]
pub(crate) struct Predict {
    /// The model
    model: PathBuf,
    /// File of texts, or a text in quotes; - is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    /// A text to answer; can be repeated
    #[arg(long, value_name = "TEXT", conflicts_with = "input")]
    text: Vec<String>,
    /// Labels per text
    #[arg(short = 'k', long, value_name = "N", default_value_t = Query::default().k, value_parser = parse_top_k)]
    top_k: usize,
    /// Omit answers below this probability (score, if not calibrated)
    #[arg(long, value_name = "P", value_parser = parse_threshold)]
    threshold: Option<f32>,
    /// Format of the answers [default: table on a terminal, else jsonl]
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    output_format: Option<OutputFormat>,
    /// csv output begins with the text, or with all columns of the input
    #[arg(long, hide_short_help = true)]
    with_input: bool,
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
        hide_possible_values = true,
        hide_short_help = true
    )]
    on_error: OnError,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    columns: reading::ColumnArgs,
}

/// A format of answers, or a table to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    Table,
    File(PredictionFormat),
}

/// Name of the format for people.
const TABLE: &str = "table";

/// Where answers go.
enum AnswerOutput<'a, W: Write> {
    Table(W),
    File(PredictionWriter<'a, W>),
}

impl<W: Write> AnswerOutput<'_, W> {
    fn push(
        &mut self,
        input: &TextInput,
        is_unknown: bool,
        answers: &[Prediction<'_>],
    ) -> io::Result<()> {
        match self {
            AnswerOutput::Table(out) => answers::write(out, &input.text, is_unknown, answers),
            AnswerOutput::File(writer) => writer.push_text(input, is_unknown, answers),
        }
    }

    fn skip(&mut self) {
        if let AnswerOutput::File(writer) = self {
            writer.skip();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            AnswerOutput::Table(out) => out.flush(),
            AnswerOutput::File(writer) => writer.flush(),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            AnswerOutput::Table(mut out) => out.flush(),
            AnswerOutput::File(writer) => writer.finish().map(drop),
        }
    }
}

/// Treatment of an input that cannot be read
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    Stop,
    Skip,
}

/// Inputs that need a word: those that were skipped, and those of which the model knows none.
#[derive(Default)]
struct Remarks {
    n_skipped: usize,
    /// Where the first one is, and what is wrong with it.
    first: Option<elias::Error>,
    n_unknown: usize,
    first_unknown: Option<String>,
}

impl Remarks {
    fn show(&self, console: &Console) {
        if let Some(first) = &self.first {
            let skipped = count(self.n_skipped, "input");
            console.info(format_args!("skipped {skipped}; the first: {first}"));
        }
        if let Some(first) = &self.first_unknown {
            console.info(format_args!(
                "{} without a word that the model knows, so that the answers say nothing; the first: {:?}",
                count(self.n_unknown, "text"),
                shorten(first, 40)
            ));
        }
    }
}

impl Predict {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        for out in self.out.iter().flat_map(|out| self.files(out)) {
            outputs::check(&out, self.overwrite, &[&self.input])?;
            outputs::check_outside(&out, &self.model)?;
        }
        let format = self.format()?;
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
                let output = match format {
                    OutputFormat::Table => AnswerOutput::Table(stdout),
                    OutputFormat::File(format) => self.writer(stdout, format, &predictor),
                };
                self.write((&predictor, &query), output, console)?;
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

    /// The format that was asked for, else a table on a terminal and JSON Lines elsewhere.
    fn format(&self) -> anyhow::Result<OutputFormat> {
        let is_terminal = self.out.is_none() && io::stdout().is_terminal();
        let format = match self.output_format {
            Some(format) => format,
            None if is_terminal => OutputFormat::Table,
            None => OutputFormat::File(PredictionFormat::default()),
        };
        let problem = match format {
            OutputFormat::File(PredictionFormat::Npz) if is_terminal => {
                "npz is no text for a terminal: write it to a file with --out"
            }
            OutputFormat::Table if self.out.is_some() => {
                "a table is for reading: choose another --output-format for a file"
            }
            format if self.with_input && format != OutputFormat::File(PredictionFormat::Csv) => {
                "--with-input needs --output-format csv"
            }
            _ => return Ok(format),
        };
        Err(Misuse(problem.into()).into())
    }

    fn writer<'w, W: Write>(
        &self,
        out: W,
        format: PredictionFormat,
        predictor: &Predictor,
    ) -> AnswerOutput<'w, W> {
        let writer = PredictionWriter::new(out, format, predictor.labels().len());
        AnswerOutput::File(match self.with_input {
            true => writer.with_input_columns(),
            false => writer,
        })
    }

    fn is_numbered(&self) -> bool {
        matches!(
            self.output_format,
            Some(OutputFormat::File(
                PredictionFormat::Npz | PredictionFormat::Sparse
            ))
        )
    }

    /// The texts: those given, or those of a file.
    fn inputs(&self, console: &Console) -> anyhow::Result<ReadAhead> {
        if !self.text.is_empty() {
            return Ok(ReadAhead::of_texts(self.text.clone()));
        }
        if let Some(text) = text_in_place_of_a_file(&self.input) {
            console.info("no file has this name, so it is answered as a text");
            return Ok(ReadAhead::of_texts(vec![text]));
        }
        if self.input == Path::new("-") && io::stdin().is_terminal() {
            console.info("type a text and press Enter; Ctrl-D ends");
        }
        ReadAhead::start(self.input.clone(), self.columns.clone())
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
        let format = match self.format()? {
            OutputFormat::File(format) => format,
            OutputFormat::Table => PredictionFormat::default(),
        };
        let output = match (self.writer(&mut scores, format, predictor), &mut second) {
            (AnswerOutput::File(writer), Some(probabilities)) => {
                AnswerOutput::File(writer.with_matrix_of_probabilities(probabilities))
            }
            (output, _) => output,
        };
        self.write((predictor, query), output, console)?;
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
        output: AnswerOutput<'_, impl Write>,
        console: &Console,
    ) -> anyhow::Result<()> {
        if !predictor.takes_texts() {
            return self.answer_dataset((predictor, query), output, console);
        }
        let inputs = self.inputs(console)?;
        let remarks = self.answer((predictor, query), inputs, output)?;
        remarks.show(console);
        Ok(())
    }

    /// Answers what has arrived, in batches that grow while input comes faster than answers.
    fn answer(
        &self,
        (predictor, query): (&Predictor, &Query),
        mut inputs: ReadAhead,
        mut output: AnswerOutput<'_, impl Write>,
    ) -> anyhow::Result<Remarks> {
        let mut remarks = Remarks::default();
        let path = self.embeddings_of_texts.as_deref();
        let mut embeddings = path.map(EmbeddingRows::open).transpose()?;
        loop {
            let batch = self.readable(inputs.next_batch(), &mut remarks)?;
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
                    (Some(input), Some(answers)) => {
                        let is_unknown = !answers.has_known_word;
                        if is_unknown {
                            remarks.n_unknown += 1;
                            remarks.first_unknown.get_or_insert(input.text.clone());
                        }
                        output.push(input, is_unknown, &answers)?;
                    }
                    _ => output.skip(),
                }
            }
            output.flush()?;
        }
        if let Some(n_left) = embeddings
            .map(|rows| rows.n_left())
            .filter(|&left| left > 0)
        {
            bail!("there are {n_left} more embeddings than texts: give one per text");
        }
        output.finish()?;
        Ok(remarks)
    }

    /// The inputs of a batch; None for one that was skipped.
    fn readable(
        &self,
        batch: Vec<elias::Result<TextInput>>,
        remarks: &mut Remarks,
    ) -> anyhow::Result<Vec<Option<TextInput>>> {
        let readable = batch.into_iter().map(|input| match input {
            Ok(input) => Ok(Some(input)),
            Err(error @ elias::Error::Malformed { .. }) if self.on_error == OnError::Skip => {
                remarks.n_skipped += 1;
                remarks.first.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error).context("while reading the texts"),
        });
        readable.collect()
    }

    fn answer_dataset(
        &self,
        (predictor, query): (&Predictor, &Query),
        output: AnswerOutput<'_, impl Write>,
        console: &Console,
    ) -> anyhow::Result<()> {
        if self.on_error == OnError::Skip {
            let misuse = "--on-error skip works with texts only; this model takes sparse features";
            return Err(Misuse(misuse.into()).into());
        }
        let mut output = output;
        let options = self.columns.options(Part::Test, Some(predictor.labels()));
        let data = reading::read(console, &self.input, options)?;
        let data = reading::with_embeddings(data, self.embeddings_of_texts.as_deref())?;
        let answers = predictor.predict_batch(&data, query)?;
        for (point_idx, answers) in answers.iter().enumerate() {
            let input = TextInput {
                id: data.ids().map(|ids| InputId::from(ids.get(point_idx))),
                ..TextInput::from(format!("point {point_idx}"))
            };
            output.push(&input, false, answers)?;
        }
        output.finish()?;
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

fn format_parser() -> impl TypedValueParser<Value = OutputFormat> {
    let names = PredictionFormat::ALL.map(PredictionFormat::name);
    PossibleValuesParser::new([TABLE].into_iter().chain(names)).try_map(|name| {
        if name == TABLE {
            return Ok(OutputFormat::Table);
        }
        name.parse::<PredictionFormat>().map(OutputFormat::File)
    })
}

/// The text that was given in place of a file: it has several words, and nothing of a path.
fn text_in_place_of_a_file(input: &Path) -> Option<String> {
    let text = input.to_str().filter(|_| !input.exists())?;
    let has_words = text.trim().contains(char::is_whitespace);
    let is_path = text.starts_with(['/', '.', '~'])
        || input.extension().is_some_and(|ending| {
            let ending = ending.to_string_lossy();
            ENDINGS.contains(&&*ending)
        });
    (has_words && !is_path).then(|| text.to_owned())
}

/// Endings of files of texts.
const ENDINGS: [&str; 8] = ["txt", "csv", "tsv", "json", "jsonl", "gz", "zst", "npz"];

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
