//! Reading predictions: ranked labels with scores for each point, in any format that is written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use crate::data::builder::keep_highest;
use crate::data::formats::columns::{Problem, describe, find_one};
use crate::data::formats::jsonl::json_error;
use crate::data::formats::npz::UnsortedRows;
use crate::data::formats::number::{parse_finite, parse_integer};
use crate::data::formats::records::Records;
use crate::data::formats::sparse_text::{parse_header, read_rows};
use crate::data::formats::table::split_header;
use crate::data::io::formula;
use crate::data::io::source::{Lines, ReadProgress, Source, excerpt, is_stream};
use crate::data::{Dataset, LabelSet, PredictionFormat, Texts};
use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};
use crate::matrix::sort_descending;

const EXPECTED: &str =
    r#"{"labels": [{"label": "name", "score": 0.5}, ...]} or {"labels": {"name": 0.5}}"#;

/// The points and labels that predictions are for.
#[derive(Clone, Copy, Debug)]
pub struct PredictionShape<'a> {
    /// Number of points.
    pub n_points: usize,
    /// The labels of the data.
    pub label_set: &'a LabelSet,
    /// Number of them that the training data has; those are the first ones.
    pub n_trained: usize,
    /// The ids of the points, if they have any.
    pub ids: Option<&'a Texts>,
}

impl<'a> PredictionShape<'a> {
    /// The shape of predictions for a data set whose first `n_trained` labels are those of the training data.
    pub fn of(dataset: &'a Dataset, n_trained: usize) -> Self {
        PredictionShape {
            n_points: dataset.n_points(),
            label_set: dataset.label_set(),
            n_trained,
            ids: dataset.ids(),
        }
    }
}

fn first_line(head: &[u8]) -> Cow<'_, str> {
    let end = memchr::memchr(b'\n', head).unwrap_or(head.len());
    String::from_utf8_lossy(&head[..end])
}

impl PredictionFormat {
    /// Whether predictions name their labels by number, so that they need the list those numbers come from.
    ///
    /// # Errors
    /// As [`read_predictions`].
    pub fn has_numbered_labels(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        if is_stream(path) {
            return Ok(false);
        }
        let head = Source::file(path).head(4096)?;
        Ok(head.starts_with(b"PK") || parse_header::<2>(&first_line(&head)).is_some())
    }
}

impl PredictionShape<'_> {
    /// Reads predictions: JSON Lines, CSV or TSV as [`crate::data::PredictionWriter`] writes them, a SciPy CSR npz, or
    /// sparse text with the header `rows cols`.
    ///
    /// Each row comes in descending order of scores, ties by label id; a label given twice counts once, with its highest
    /// score. Names that are not in the label set get ids after it: they are wrong answers that keep their rank. In CSV
    /// and TSV, answers belong to points by id or by row number from 0, and a point may have none. Where labels are
    /// numbered, there are as many columns as labels, or as labels in the training data.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::BadFile`] if the file is none of these, or not of this shape.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<Vec<Scored>>> {
        let (path, shape) = (path.as_ref(), self);
        let source = Source::open(path)?;
        let head = source.head(4096)?;
        let silent = ReadProgress::default();
        let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
        let first_line = first_line(start);
        let mut rows = Vec::new();
        let mut n_columns = None;
        if start.starts_with(b"PK") {
            if source.in_memory().is_some() {
                return Err(Error::BadFile {
                    path: path.into(),
                    problem: "is a SciPy npz in a pipe: save it to a file first".into(),
                });
            }
            let matrix = UnsortedRows::read(path)?;
            rows.extend(
                (0..matrix.n_rows()).map(|row_idx| rank(&mut matrix.row(row_idx).collect())),
            );
            n_columns = Some(matrix.n_columns);
        } else if start.trim_ascii_start().starts_with(b"{") {
            read_json(&mut source.lines(&silent)?, shape.label_set, &mut rows)?;
        } else if AnswerColumns::find(&split_header(&first_line, b',')).is_ok() {
            return read_csv(source.lines(&silent)?, shape);
        } else if parse_header::<2>(&first_line).is_none() && first_line.contains('\t') {
            return read_tsv(&mut source.lines(&silent)?, shape);
        } else {
            let mut lines = source.lines(&silent)?;
            n_columns = Some(read_rows(&mut lines, |_, row| {
                rows.push(rank(row));
                Ok(())
            })?);
        }
        check_shape(rows.len(), n_columns, shape).map_err(|problem| Error::BadFile {
            path: path.to_path_buf(),
            problem,
        })?;
        Ok(rows)
    }
}

fn check_shape(
    n_rows: usize,
    n_columns: Option<usize>,
    shape: &PredictionShape<'_>,
) -> Result<(), String> {
    let PredictionShape {
        n_points,
        n_trained,
        ..
    } = *shape;
    if n_rows != n_points {
        return Err(format!(
            "holds predictions for {n_rows} points, expected {n_points} as in the data"
        ));
    }
    let n_labels = shape.label_set.len();
    match n_columns {
        Some(n_columns) if ![n_labels, n_trained].contains(&n_columns) => {
            let trained = if n_trained == n_labels {
                String::new()
            } else {
                format!(", or {n_trained} as in the training data")
            };
            Err(format!(
                "holds scores for {n_columns} labels, expected {n_labels} as in the data{trained}"
            ))
        }
        _ => Ok(()),
    }
}

/// Collects answers that come one by one, by the key of their point.
struct AnswerCollector<'a> {
    n_points: usize,
    /// The point of an id; `None` if several have it.
    by_id: Option<HashMap<&'a str, Option<usize>>>,
    label_set: LabelSet,
    rows: Vec<Vec<(u32, f32)>>,
}

impl<'a> AnswerCollector<'a> {
    fn new(shape: &PredictionShape<'a>) -> Self {
        let by_id = shape.ids.map(|ids| {
            let mut by_id = HashMap::with_capacity(ids.len());
            for (point, id) in ids.iter().enumerate() {
                by_id
                    .entry(id)
                    .and_modify(|known| *known = None)
                    .or_insert(Some(point));
            }
            by_id
        });
        AnswerCollector {
            n_points: shape.n_points,
            by_id,
            label_set: shape.label_set.clone(),
            rows: vec![Vec::new(); shape.n_points],
        }
    }

    /// The point with this id.
    ///
    /// # Errors
    /// A phrase for what was found, and one for what was expected.
    fn point_of_id(&self, id: &str) -> Result<usize, Problem> {
        let problem = |what: &str, expected: &str| Problem {
            found: format!("id {}{what}", excerpt(id)),
            expected: expected.into(),
            needs: None,
        };
        let Some(by_id) = &self.by_id else {
            let remedy = "row numbers, since the data has no ids: predict from the same data";
            return Err(problem("", remedy));
        };
        match by_id.get(id) {
            Some(Some(point)) => Ok(*point),
            Some(None) => Err(problem(
                ", which several points of the data have",
                "unique ids",
            )),
            None => Err(problem("", "an id of the data")),
        }
    }

    /// The point at this row.
    ///
    /// # Errors
    /// A phrase for what was found, and one for what was expected.
    fn point_at_row(&self, row: &str) -> Result<usize, Problem> {
        let number = parse_integer(row.trim_ascii().as_bytes());
        let in_range = number.filter(|number| *number < self.n_points as u64);
        in_range.map(|row| row as usize).ok_or_else(|| Problem {
            found: format!("row {}", excerpt(row)),
            expected: format!("a number below {}, the points of the data", self.n_points),
            needs: None,
        })
    }

    fn push(&mut self, point: usize, label: &str, score: f32) {
        let label = self.label_set.intern(label);
        self.rows[point].push((label.0, score));
    }

    fn finish(mut self) -> Vec<Vec<Scored>> {
        self.rows.iter_mut().map(rank).collect()
    }
}

/// The columns of a CSV file of answers.
struct AnswerColumns {
    id: Option<usize>,
    row: Option<usize>,
    label: usize,
    score: usize,
}

impl AnswerColumns {
    fn find(header: &csv::StringRecord) -> Result<Self, Problem> {
        let header: Vec<&str> = header.iter().collect();
        let missing = || Problem {
            found: describe(&header),
            expected: "the columns id or row, label and score".into(),
            needs: None,
        };
        let id = find_one(&header, "id")?;
        let row = find_one(&header, "row")?;
        if id.is_none() && row.is_none() {
            return Err(missing());
        }
        Ok(AnswerColumns {
            id,
            row,
            label: find_one(&header, "label")?.ok_or_else(missing)?,
            score: find_one(&header, "score")?.ok_or_else(missing)?,
        })
    }
}

fn read_csv(lines: Lines<'_>, shape: &PredictionShape<'_>) -> Result<Vec<Vec<Scored>>> {
    let mut records = Records::new(lines, b',');
    records.advance()?;
    let n_columns = records.fields().len();
    let columns = AnswerColumns::find(records.fields())
        .map_err(|problem| records.malformed(problem.found, problem.expected))?;
    let mut answers = AnswerCollector::new(shape);
    while records.advance()? {
        records.check_n_fields(n_columns)?;
        let by_id = columns.id.filter(|_| shape.ids.is_some());
        let point = match (by_id, columns.row, columns.id) {
            (Some(id), ..) => answers.point_of_id(&formula::plain(records.field(id))),
            (None, Some(row), _) => answers.point_at_row(records.field(row)),
            (None, None, id) => {
                answers.point_of_id(&formula::plain(records.field(id.unwrap_or_default())))
            }
        }
        .map_err(|problem| records.malformed(problem.found, problem.expected))?;
        let field = records.field(columns.score);
        let score = parse_finite(field.trim_ascii()).ok_or_else(|| {
            records.malformed(format!("score {}", excerpt(field)), "a finite number")
        })?;
        answers.push(point, &formula::plain(records.field(columns.label)), score);
    }
    Ok(answers.finish())
}

fn read_tsv(lines: &mut Lines<'_>, shape: &PredictionShape<'_>) -> Result<Vec<Vec<Scored>>> {
    let mut answers = AnswerCollector::new(shape);
    while let Some(line) = lines.next()? {
        if line.text.is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.text.split('\t').collect();
        // The probability of an answer does not change its rank.
        let ([key, label, score] | [key, label, score, _]) = fields[..] else {
            let expected = "point<TAB>label<TAB>score, perhaps with <TAB>probability";
            return Err(line.malformed(excerpt(line.text), expected));
        };
        // A point without an id is written by its row number.
        let point = answers
            .point_of_id(key)
            .or_else(|problem| {
                answers
                    .point_at_row(key)
                    .map_err(|by_row| if shape.ids.is_some() { problem } else { by_row })
            })
            .map_err(|problem| line.malformed(problem.found, problem.expected))?;
        let score = parse_finite(score.trim_ascii_end()).ok_or_else(|| {
            line.malformed(format!("score {}", excerpt(score)), "a finite number")
        })?;
        answers.push(point, label, score);
    }
    Ok(answers.finish())
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
        let record: PredictionRecord =
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
#[serde(expecting = "an object")]
struct PredictionRecord {
    labels: Named,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with \"label\" and \"score\"")]
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
