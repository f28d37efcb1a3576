//! Writing predictions, point by point.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use crate::data::LabelSet;
use crate::data::builder::keep_highest;
use crate::data::formats::line_text::write_line_text;
use crate::data::formats::npz::write_npz_to;
use crate::data::formats::sparse_text::write_rows;
use crate::data::io::formula;
use crate::data::io::inputs::InputId;
use crate::error::Error;
use crate::ids::Scored;
use crate::matrix::{CsrBuilder, CsrMatrix};

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
    label_set: &'a LabelSet,
    probability: Option<&'a Probability<'a>>,
    matrix_of_probabilities: Option<Box<dyn Write + 'a>>,
    kept: CsrBuilder,
    n_points: usize,
}

/// From a score to the probability that its answer is right.
pub type Probability<'a> = dyn Fn(f32) -> Option<f32> + 'a;

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
}

impl<'a, W: Write> PredictionWriter<'a, W> {
    /// A writer of answers over these labels.
    pub fn new(out: W, format: PredictionFormat, label_set: &'a LabelSet) -> Self {
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
            label_set,
            probability: None,
            matrix_of_probabilities: None,
            kept: CsrBuilder::default(),
            n_points: 0,
        }
    }

    /// The same writer, which adds probabilities to `jsonl`, `csv` and `tsv` answers where they are known.
    pub fn with_probability(self, probability: &'a Probability<'a>) -> Self {
        PredictionWriter {
            probability: Some(probability),
            ..self
        }
    }

    /// The same writer, which also writes probabilities instead of scores here if the format is `npz` or `sparse`.
    pub fn with_matrix_of_probabilities(self, out: impl Write + 'a) -> Self {
        PredictionWriter {
            matrix_of_probabilities: Some(Box::new(out)),
            ..self
        }
    }

    /// Writes the answers for the next point, best first.
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    ///
    /// # Panics
    /// If a label is not in the label set.
    pub fn push(&mut self, id: Option<&InputId>, answers: &[Scored]) -> io::Result<()> {
        let point = PointAnswers {
            id,
            row: self.n_points,
            answers,
        };
        let (label_set, probability) = (self.label_set, self.probability);
        match &mut self.out {
            AnswerOutput::Csv { writer, key } => {
                let key = match *key {
                    Some(key) => key,
                    None => *key.insert(write_header(writer, id)?),
                };
                point.write_csv(writer, key, label_set, probability)?;
            }
            AnswerOutput::Plain(out) => match self.format {
                PredictionFormat::Jsonl => point.write_json(out, label_set, probability)?,
                PredictionFormat::Tsv => point.write_tsv(out, label_set, probability)?,
                _ => {
                    let mut row: Vec<(u32, f32)> = answers
                        .iter()
                        .map(|answer| (answer.label.0, answer.score))
                        .collect();
                    keep_highest(&mut row);
                    self.kept.push_row(row);
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
                    write_header(&mut writer, None)?;
                }
                writer.into_inner().map_err(|error| error.into_error())?
            }
        };
        if is_matrix(self.format) {
            let scores = self
                .kept
                .finish(self.label_set.len())
                .map_err(io::Error::other)?;
            write_matrix(&mut out, &scores, self.format)?;
            if let (Some(mut out), Some(probability)) =
                (self.matrix_of_probabilities, self.probability)
            {
                let probabilities = probabilities(&scores, probability)?;
                write_matrix(&mut out, &probabilities, self.format)?;
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

fn write_matrix(
    out: &mut impl Write,
    matrix: &CsrMatrix,
    format: PredictionFormat,
) -> io::Result<()> {
    if format == PredictionFormat::Sparse {
        return write_rows(out, matrix);
    }
    let mut archive = io::Cursor::new(Vec::new());
    write_npz_to(&mut archive, matrix)?;
    out.write_all(archive.get_ref())
}

/// The probabilities of scores, in the same places.
fn probabilities(scores: &CsrMatrix, probability: &Probability<'_>) -> io::Result<CsrMatrix> {
    let mut builder = CsrBuilder::default();
    for row_idx in 0..scores.n_rows() {
        let (labels, scores) = scores.row(row_idx);
        let of = |score: &f32| probability(*score).unwrap_or_default();
        builder.push_row(labels.iter().copied().zip(scores.iter().map(of)));
    }
    builder.finish(scores.n_cols()).map_err(io::Error::other)
}

/// Writes the header of a CSV file whose first point has this id.
fn write_header<W: Write>(
    writer: &mut csv::Writer<W>,
    id: Option<&InputId>,
) -> io::Result<PointKey> {
    let (key, name) = match id {
        Some(_) => (PointKey::Id, "id"),
        None => (PointKey::Row, "row"),
    };
    writer.write_record([name, "rank", "label", "score", "probability"])?;
    Ok(key)
}

/// A point with its answers.
struct PointAnswers<'p> {
    id: Option<&'p InputId>,
    row: usize,
    answers: &'p [Scored],
}

impl PointAnswers<'_> {
    fn write_json(
        &self,
        out: &mut impl Write,
        label_set: &LabelSet,
        probability: Option<&Probability<'_>>,
    ) -> io::Result<()> {
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
            serde_json::to_writer(&mut *out, label_set.name(answer.label))?;
            out.write_all(b", \"score\": ")?;
            serde_json::to_writer(&mut *out, &answer.score)?;
            if let Some(probability) = probability.and_then(|of| of(answer.score)) {
                out.write_all(b", \"probability\": ")?;
                serde_json::to_writer(&mut *out, &probability)?;
            }
            out.write_all(b"}")?;
            separator = ", ";
        }
        out.write_all(b"]}\n")
    }

    fn write_csv<W: Write>(
        &self,
        writer: &mut csv::Writer<W>,
        key: PointKey,
        label_set: &LabelSet,
        probability: Option<&Probability<'_>>,
    ) -> io::Result<()> {
        let key = match key {
            PointKey::Id => self.id.map_or(String::new(), InputId::to_string),
            PointKey::Row => self.row.to_string(),
        };
        let key = formula::guarded(&key);
        for (answer_idx, answer) in self.answers.iter().enumerate() {
            let probability = probability
                .and_then(|of| of(answer.score))
                .map_or(String::new(), |value| value.to_string());
            writer.write_record([
                &*key,
                &(answer_idx + 1).to_string(),
                &formula::guarded(label_set.name(answer.label)),
                &answer.score.to_string(),
                &probability,
            ])?;
        }
        Ok(())
    }

    fn write_tsv(
        &self,
        out: &mut impl Write,
        label_set: &LabelSet,
        probability: Option<&Probability<'_>>,
    ) -> io::Result<()> {
        for answer in self.answers {
            match self.id {
                Some(id) => write_line_text(out, &id.to_string(), b"\t")?,
                None => write!(out, "{}", self.row)?,
            }
            out.write_all(b"\t")?;
            let name = label_set.name(answer.label);
            if name.contains(['\t', '\n', '\r']) {
                let problem = format!("tsv cannot hold the label {name:?}: choose jsonl or csv");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            out.write_all(name.as_bytes())?;
            write!(out, "\t{}", answer.score)?;
            if let Some(probability) = probability.and_then(|of| of(answer.score)) {
                write!(out, "\t{probability}")?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}
