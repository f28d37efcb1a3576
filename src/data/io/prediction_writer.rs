//! Writing predictions, point by point.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use crate::data::builder::keep_highest;
use crate::data::formats::line_text::write_line_text;
use crate::data::formats::npz::write_npz_to;
use crate::data::formats::sparse_text::write_rows;
use crate::data::io::formula;
use crate::data::io::inputs::{InputId, TextInput};
use crate::error::Error;
use crate::ids::Prediction;
use crate::matrix::CsrBuilder;

/// A format of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictionFormat {
    /// `{"id": .., "labels": [{"label": NAME, "score": S}, ...]}` per point, best first.
    #[default]
    Jsonl,
    /// A header, then one row per answer, best first: `id,rank,label,score,probability`; where the points have no
    /// ids, `row` takes the place of `id` and counts them from 0. Without a probability that field is empty.
    Csv,
    /// `point<TAB>label<TAB>score` per answer, best first, and `<TAB>probability` where it is known; a point without
    /// an id is named by its row number from 0.
    Tsv,
    /// SciPy CSR, points × labels; probabilities are a matrix of their own.
    Npz,
    /// Header `rows cols`, then `idx:val …` per point, by label number; probabilities are a matrix of their own.
    Sparse,
}

impl PredictionFormat {
    /// All formats.
    pub const ALL: [PredictionFormat; 5] = [
        PredictionFormat::Jsonl,
        PredictionFormat::Csv,
        PredictionFormat::Tsv,
        PredictionFormat::Npz,
        PredictionFormat::Sparse,
    ];

    /// The name, as the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            PredictionFormat::Jsonl => "jsonl",
            PredictionFormat::Csv => "csv",
            PredictionFormat::Tsv => "tsv",
            PredictionFormat::Npz => "npz",
            PredictionFormat::Sparse => "sparse",
        }
    }
}

impl fmt::Display for PredictionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PredictionFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = PredictionFormat::ALL
            .into_iter()
            .find(|format| format.name() == name);
        found.ok_or_else(|| Error::Config {
            key: "output-format".into(),
            found: format!("{name:?}"),
            expected: PredictionFormat::ALL.map(PredictionFormat::name).join(", "),
        })
    }
}

/// Writes predictions point by point.
///
/// `jsonl`, `csv` and `tsv` are written as they come; `npz` and `sparse` start with counts, so the rows are kept until
/// [`PredictionWriter::finish`].
pub struct PredictionWriter<'a, W: Write> {
    out: AnswerOutput<W>,
    format: PredictionFormat,
    n_labels: usize,
    kept: CsrBuilder,
    probabilities: Option<Probabilities<'a>>,
    with_input: bool,
    n_points: usize,
}

/// A matrix of probabilities beside that of scores.
struct Probabilities<'a> {
    out: Box<dyn Write + 'a>,
    kept: CsrBuilder,
}

enum AnswerOutput<W: Write> {
    Plain(W),
    Csv {
        writer: Box<csv::Writer<W>>,
        /// The naming of points, once the header is written.
        key: Option<PointKey>,
    },
}

/// The way in which the rows of a CSV file name their point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PointKey {
    Id,
    Row,
    /// By the columns of the input.
    Input,
}

impl<'a, W: Write> PredictionWriter<'a, W> {
    /// A writer of answers over so many labels.
    pub fn new(out: W, format: PredictionFormat, n_labels: usize) -> Self {
        let out = if format == PredictionFormat::Csv {
            AnswerOutput::Csv {
                writer: Box::new(csv::Writer::from_writer(out)),
                key: None,
            }
        } else {
            AnswerOutput::Plain(out)
        };
        PredictionWriter {
            out,
            format,
            n_labels,
            kept: CsrBuilder::default(),
            probabilities: None,
            with_input: false,
            n_points: 0,
        }
    }

    /// The same writer, which also writes probabilities instead of scores here if the format is `npz` or `sparse`.
    pub fn with_matrix_of_probabilities(self, out: impl Write + 'a) -> Self {
        PredictionWriter {
            probabilities: Some(Probabilities {
                out: Box::new(out),
                kept: CsrBuilder::default(),
            }),
            ..self
        }
    }

    /// The same writer, whose CSV rows begin with the columns of the input, or with its id and text.
    pub fn with_input_columns(self) -> Self {
        PredictionWriter {
            with_input: true,
            ..self
        }
    }

    /// Writes the answers for the next point, best first.
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    pub fn push(&mut self, id: Option<&InputId>, answers: &[Prediction<'_>]) -> io::Result<()> {
        self.push_answers(PointAnswers {
            id,
            input: None,
            is_unknown: false,
            row: self.n_points,
            answers,
        })
    }

    /// Writes the answers for the next text, best first; JSON says so if the model knows no word of it.
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    pub fn push_text(
        &mut self,
        input: &TextInput,
        is_unknown: bool,
        answers: &[Prediction<'_>],
    ) -> io::Result<()> {
        self.push_answers(PointAnswers {
            id: input.id.as_ref(),
            input: self.with_input.then_some(input),
            is_unknown,
            row: self.n_points,
            answers,
        })
    }

    fn push_answers(&mut self, point: PointAnswers<'_>) -> io::Result<()> {
        let answers = point.answers;
        match &mut self.out {
            AnswerOutput::Csv { writer, key } => {
                let key = match *key {
                    Some(key) => key,
                    None => *key.insert(write_header(writer, &point)?),
                };
                point.write_csv(writer, key)?;
            }
            AnswerOutput::Plain(out) => match self.format {
                PredictionFormat::Jsonl => point.write_json(out)?,
                PredictionFormat::Tsv => point.write_tsv(out)?,
                _ => {
                    let scores = answers.iter().map(|answer| (answer.id.0, answer.score));
                    self.kept.push_row(sorted(scores));
                    if let Some(probabilities) = &mut self.probabilities {
                        let probability = |answer: &Prediction<'_>| {
                            (answer.id.0, answer.probability.unwrap_or_default())
                        };
                        let row = sorted(answers.iter().map(probability));
                        probabilities.kept.push_row(row);
                    }
                }
            },
        }
        self.n_points += 1;
        Ok(())
    }

    /// Leaves out the next point, which could not be read: the points after it keep their row numbers, and `npz` and
    /// `sparse` get an empty row for it.
    pub fn skip(&mut self) {
        if is_matrix(self.format) {
            self.kept.push_row([]);
            if let Some(probabilities) = &mut self.probabilities {
                probabilities.kept.push_row([]);
            }
        }
        self.n_points += 1;
    }

    /// Passes on what is written so far; `npz` and `sparse` write nothing before [`PredictionWriter::finish`].
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            AnswerOutput::Plain(out) => out.flush(),
            AnswerOutput::Csv { writer, .. } => writer.flush(),
        }
    }

    /// Completes the output and returns it.
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    pub fn finish(self) -> io::Result<W> {
        let mut out = match self.out {
            AnswerOutput::Plain(out) => out,
            AnswerOutput::Csv { mut writer, key } => {
                if key.is_none() {
                    writer.write_record(["row"].into_iter().chain(ANSWER_COLUMNS))?;
                }
                writer.into_inner().map_err(|error| error.into_error())?
            }
        };
        if is_matrix(self.format) {
            write_matrix(&mut out, self.kept, self.n_labels, self.format)?;
            if let Some(mut probabilities) = self.probabilities {
                let out = &mut probabilities.out;
                write_matrix(out, probabilities.kept, self.n_labels, self.format)?;
                out.flush()?;
            }
        }
        out.flush()?;
        Ok(out)
    }
}

fn is_matrix(format: PredictionFormat) -> bool {
    matches!(format, PredictionFormat::Npz | PredictionFormat::Sparse)
}

/// A row of a matrix, by ascending label.
fn sorted(answers: impl Iterator<Item = (u32, f32)>) -> Vec<(u32, f32)> {
    let mut row: Vec<(u32, f32)> = answers.collect();
    keep_highest(&mut row);
    row
}

fn write_matrix(
    out: &mut impl Write,
    rows: CsrBuilder,
    n_labels: usize,
    format: PredictionFormat,
) -> io::Result<()> {
    let matrix = rows.finish(n_labels).map_err(io::Error::other)?;
    if format == PredictionFormat::Sparse {
        return write_rows(out, &matrix);
    }
    let mut archive = io::Cursor::new(Vec::new());
    write_npz_to(&mut archive, &matrix)?;
    out.write_all(archive.get_ref())
}

/// Columns of an answer in a CSV file.
const ANSWER_COLUMNS: [&str; 4] = ["rank", "label", "score", "probability"];

/// Writes the header of a CSV file with this first point.
fn write_header<W: Write>(
    writer: &mut csv::Writer<W>,
    point: &PointAnswers<'_>,
) -> io::Result<PointKey> {
    let (key, names) = match (point.input, point.id) {
        (Some(input), id) => (PointKey::Input, input_names(input, id.is_some())),
        (None, Some(_)) => (PointKey::Id, vec!["id"]),
        (None, None) => (PointKey::Row, vec!["row"]),
    };
    let names = names.iter().map(|name| formula::guarded(name));
    let answers = ANSWER_COLUMNS.into_iter().map(Cow::Borrowed);
    let names: Vec<Cow<'_, str>> = names.chain(answers).collect();
    writer.write_record(names.iter().map(|name| name.as_bytes()))?;
    Ok(key)
}

/// Names of the columns of an input.
fn input_names(input: &TextInput, has_id: bool) -> Vec<&str> {
    match &input.columns {
        Some(columns) => columns.names.iter().map(String::as_str).collect(),
        None if has_id => vec!["id", "text"],
        None => vec!["text"],
    }
}

/// A point with its answers.
struct PointAnswers<'p> {
    id: Option<&'p InputId>,
    /// The input, if it is written, too.
    input: Option<&'p TextInput>,
    /// Whether the model knows no word of the text.
    is_unknown: bool,
    row: usize,
    answers: &'p [Prediction<'p>],
}

impl PointAnswers<'_> {
    fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{")?;
        if let Some(id) = self.id {
            out.write_all(b"\"id\": ")?;
            match id {
                InputId::Text(text) => serde_json::to_writer(&mut *out, text)?,
                InputId::Number(number) => write!(out, "{number}")?,
            }
            out.write_all(b", ")?;
        }
        out.write_all(b"\"labels\": [")?;
        let mut separator = "";
        for answer in self.answers {
            write!(out, "{separator}{{\"label\": ")?;
            serde_json::to_writer(&mut *out, answer.label)?;
            out.write_all(b", \"score\": ")?;
            serde_json::to_writer(&mut *out, &answer.score)?;
            if let Some(probability) = answer.probability {
                out.write_all(b", \"probability\": ")?;
                serde_json::to_writer(&mut *out, &probability)?;
            }
            out.write_all(b"}")?;
            separator = ", ";
        }
        out.write_all(b"]")?;
        if self.is_unknown {
            out.write_all(b", \"no_known_word\": true")?;
        }
        out.write_all(b"}\n")
    }

    /// The cells that name the point.
    fn key(&self, key: PointKey) -> Vec<String> {
        let id = || self.id.map_or(String::new(), InputId::to_string);
        match (key, self.input) {
            (PointKey::Input, Some(input)) => match &input.columns {
                Some(columns) => columns.values.clone(),
                None if self.id.is_some() => vec![id(), input.text.clone()],
                None => vec![input.text.clone()],
            },
            (PointKey::Row, _) => vec![self.row.to_string()],
            _ => vec![id()],
        }
    }

    fn write_csv<W: Write>(&self, writer: &mut csv::Writer<W>, key: PointKey) -> io::Result<()> {
        let key = self.key(key);
        let key: Vec<Cow<'_, str>> = key.iter().map(|cell| formula::guarded(cell)).collect();
        for (answer_idx, answer) in self.answers.iter().enumerate() {
            let probability = answer
                .probability
                .map_or(String::new(), |value| value.to_string());
            for cell in &key {
                writer.write_field(cell.as_bytes())?;
            }
            writer.write_record([
                &(answer_idx + 1).to_string(),
                &*formula::guarded(answer.label),
                &answer.score.to_string(),
                &probability,
            ])?;
        }
        Ok(())
    }

    fn write_tsv(&self, out: &mut impl Write) -> io::Result<()> {
        for answer in self.answers {
            match self.id {
                Some(id) => write_line_text(out, &id.to_string(), b"\t")?,
                None => write!(out, "{}", self.row)?,
            }
            out.write_all(b"\t")?;
            let name = answer.label;
            if name.contains(['\t', '\n', '\r']) {
                let problem = format!("tsv cannot hold the label {name:?}: choose jsonl or csv");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            out.write_all(name.as_bytes())?;
            write!(out, "\t{}", answer.score)?;
            if let Some(probability) = answer.probability {
                write!(out, "\t{probability}")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}
