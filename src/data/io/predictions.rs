//! Predictions in and out: ranked labels with scores for each point.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::data::LabelSet;
use crate::data::builder::keep_highest;
use crate::data::formats::jsonl::json_error;
use crate::data::formats::line_text::write_line_text;
use crate::data::formats::npz::{UnsortedRows, write_npz_to};
use crate::data::formats::sparse_text::{read_rows, write_rows};
use crate::data::io::source::{Lines, Progress, Source};
use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};
use crate::matrix::{CsrBuilder, sort_descending};

const EXPECTED: &str =
    r#"{"labels": [{"label": "name", "score": 0.5}, ...]} or {"labels": {"name": 0.5}}"#;

/// Reads anyone's predictions for `n_points` points: JSON Lines, a SciPy CSR npz, or sparse text with the header
/// `rows cols`.
///
/// Each row comes in descending order of scores, ties by label id; a label given twice counts once, with its highest
/// score. Names that `label_set` does not know get ids behind it: they are wrong answers that keep their rank.
/// Where labels are numbered, there are as many columns as labels, or as the first `n_trained` of them: whoever learnt
/// from the training data alone knows no others.
///
/// # Errors
/// [`Error::Malformed`] and [`Error::BadFile`] if the file is none of these, or not of this size.
pub fn read_predictions(
    path: &Path,
    n_points: usize,
    label_set: &LabelSet,
    n_trained: usize,
) -> Result<Vec<Vec<Scored>>> {
    let source = Source::file(path);
    let head = source.head(4096)?;
    let silent = Progress::default();
    let mut rows = Vec::new();
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    let mut n_columns = None;
    if start.starts_with(b"PK") {
        let matrix = UnsortedRows::read(path)?;
        rows.extend((0..matrix.n_rows()).map(|row_idx| rank(&mut matrix.row(row_idx).collect())));
        n_columns = Some(matrix.n_columns);
    } else if start.trim_ascii_start().starts_with(b"{") {
        read_json(&mut source.lines(&silent)?, label_set, &mut rows)?;
    } else {
        let mut lines = source.lines(&silent)?;
        n_columns = Some(read_rows(&mut lines, |_, row| {
            rows.push(rank(row));
            Ok(())
        })?);
    }
    let bad_file = |problem: String| {
        Err(Error::BadFile {
            path: path.to_path_buf(),
            problem,
        })
    };
    if rows.len() != n_points {
        return bad_file(format!(
            "holds predictions for {} points, expected {n_points} as in the data",
            rows.len()
        ));
    }
    let n_labels = label_set.len();
    let is_known = |n_columns: &usize| [n_labels, n_trained].contains(n_columns);
    if let Some(n_columns) = n_columns.filter(|n_columns| !is_known(n_columns)) {
        let trained = match n_trained == n_labels {
            true => String::new(),
            false => format!(", or {n_trained} as in the training data"),
        };
        return bad_file(format!(
            "holds scores for {n_columns} labels, expected {n_labels} as in the data{trained}"
        ));
    }
    Ok(rows)
}

fn rank(row: &mut Vec<(u32, f32)>) -> Vec<Scored> {
    keep_highest(row);
    let mut scored: Vec<Scored> = row
        .iter()
        .map(|&(label, score)| Scored {
            label: LabelId(label),
            score,
        })
        .collect();
    sort_descending(&mut scored);
    scored
}

fn read_json(
    lines: &mut Lines<'_>,
    label_set: &LabelSet,
    rows: &mut Vec<Vec<Scored>>,
) -> Result<()> {
    let mut label_set = label_set.clone();
    while let Some(line) = lines.next()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let record: Record =
            serde_json::from_str(line.text).map_err(|error| json_error(&line, &error, EXPECTED))?;
        let mut row = Vec::with_capacity(record.labels.0.len());
        for (name, score) in record.labels.0 {
            if !score.is_finite() {
                return Err(line.malformed(format!("score {score}"), "a finite number"));
            }
            row.push((label_set.intern(&name).0, score));
        }
        rows.push(rank(&mut row));
    }
    Ok(())
}

#[derive(Deserialize)]
struct Record {
    labels: Named,
}

#[derive(Deserialize)]
struct Answer {
    label: String,
    score: f32,
}

/// Names and scores, written as a list of objects or as one object.
struct Named(Vec<(String, f32)>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamedVisitor).map(Named)
    }
}

struct NamedVisitor;

impl<'de> Visitor<'de> for NamedVisitor {
    type Value = Vec<(String, f32)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of labels with scores, or an object of labels and scores")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut answers: A) -> Result<Self::Value, A::Error> {
        let mut named = Vec::new();
        while let Some(Answer { label, score }) = answers.next_element()? {
            named.push((label, score));
        }
        Ok(named)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut scores: A) -> Result<Self::Value, A::Error> {
        let mut named = Vec::new();
        while let Some((name, score)) = scores.next_entry::<String, f32>()? {
            named.push((name, score));
        }
        Ok(named)
    }
}

/// A format of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictionFormat {
    /// `{"id": .., "labels": [{"label": NAME, "score": S}, ...]}` a point, best first.
    #[default]
    Jsonl,
    /// `point<TAB>label<TAB>score` an answer, best first; a point without an id is named by its number from 0.
    Tsv,
    /// SciPy CSR, points × labels.
    Npz,
    /// Header `rows cols`, then `idx:val …` a point, by label number.
    Sparse,
}

impl PredictionFormat {
    /// All formats.
    pub const ALL: [PredictionFormat; 4] = [
        PredictionFormat::Jsonl,
        PredictionFormat::Tsv,
        PredictionFormat::Npz,
        PredictionFormat::Sparse,
    ];

    /// The name, as the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            PredictionFormat::Jsonl => "jsonl",
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
/// `jsonl` and `tsv` are written as they come; `npz` and `sparse` start with counts, so the rows are kept until
/// [`PredictionWriter::finish`].
pub struct PredictionWriter<'a, W: Write> {
    out: W,
    format: PredictionFormat,
    label_set: &'a LabelSet,
    probability: Option<&'a Probability<'a>>,
    kept: CsrBuilder,
    n_points: usize,
}

/// From a score to the probability that its answer is right.
pub type Probability<'a> = dyn Fn(f32) -> Option<f32> + 'a;

impl<'a, W: Write> PredictionWriter<'a, W> {
    /// A writer of answers over these labels.
    pub fn new(out: W, format: PredictionFormat, label_set: &'a LabelSet) -> Self {
        PredictionWriter {
            out,
            format,
            label_set,
            probability: None,
            kept: CsrBuilder::default(),
            n_points: 0,
        }
    }

    /// The same writer, which gives `jsonl` answers their probabilities where these are known.
    pub fn with_probability(self, probability: &'a Probability<'a>) -> Self {
        PredictionWriter {
            probability: Some(probability),
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
    pub fn push(&mut self, id: Option<&str>, answers: &[Scored]) -> io::Result<()> {
        match self.format {
            PredictionFormat::Jsonl => self.push_json(id, answers)?,
            PredictionFormat::Tsv => self.push_tsv(id, answers)?,
            PredictionFormat::Npz | PredictionFormat::Sparse => {
                let mut row: Vec<(u32, f32)> = answers
                    .iter()
                    .map(|answer| (answer.label.0, answer.score))
                    .collect();
                keep_highest(&mut row);
                self.kept.push_row(row);
            }
        }
        self.n_points += 1;
        Ok(())
    }

    /// Hands on what is written so far; `npz` and `sparse` write nothing before [`PredictionWriter::finish`].
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Completes the output and gives it back.
    ///
    /// # Errors
    /// Whatever the underlying writer returns.
    pub fn finish(mut self) -> io::Result<W> {
        match self.format {
            PredictionFormat::Jsonl | PredictionFormat::Tsv => {}
            PredictionFormat::Npz => {
                let matrix = self.kept.finish(self.label_set.len());
                let mut archive = io::Cursor::new(Vec::new());
                write_npz_to(&mut archive, &matrix.map_err(io::Error::other)?)?;
                self.out.write_all(archive.get_ref())?;
            }
            PredictionFormat::Sparse => {
                let matrix = self.kept.finish(self.label_set.len());
                write_rows(&mut self.out, &matrix.map_err(io::Error::other)?)?;
            }
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn push_json(&mut self, id: Option<&str>, answers: &[Scored]) -> io::Result<()> {
        let out = &mut self.out;
        out.write_all(b"{")?;
        if let Some(id) = id {
            out.write_all(b"\"id\": ")?;
            serde_json::to_writer(&mut *out, id)?;
            out.write_all(b", ")?;
        }
        out.write_all(b"\"labels\": [")?;
        let mut separator = "";
        for answer in answers {
            write!(out, "{separator}{{\"label\": ")?;
            serde_json::to_writer(&mut *out, self.label_set.name(answer.label))?;
            out.write_all(b", \"score\": ")?;
            serde_json::to_writer(&mut *out, &answer.score)?;
            if let Some(probability) = self.probability.and_then(|of| of(answer.score)) {
                out.write_all(b", \"probability\": ")?;
                serde_json::to_writer(&mut *out, &probability)?;
            }
            out.write_all(b"}")?;
            separator = ", ";
        }
        out.write_all(b"]}\n")
    }

    fn push_tsv(&mut self, id: Option<&str>, answers: &[Scored]) -> io::Result<()> {
        let out = &mut self.out;
        for answer in answers {
            match id {
                Some(id) => write_line_text(out, id, b"\t")?,
                None => write!(out, "{}", self.n_points)?,
            }
            out.write_all(b"\t")?;
            write_line_text(out, self.label_set.name(answer.label), b"\t")?;
            writeln!(out, "\t{}", answer.score)?;
        }
        Ok(())
    }
}
