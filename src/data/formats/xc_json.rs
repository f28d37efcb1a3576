//! XC Repository JSON: `{"uid": "..", "title": "..", "content": "..", "target_ind": [..], "target_rel": [..]}` per line.
//!
//! The text is title and content with a space between, or the one of them that is named. Labels are the lines of `lbl.json.gz`, named by their title,
//! or by their uid where there is no title.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Deserialize;

use crate::data::builder::Builder;
use crate::data::formats::columns::Columns;
use crate::data::formats::jsonl::{Uid, json_error};
use crate::data::io::source::Lines;
use crate::data::{Dataset, LabelSet, Texts};
use crate::error::Result;

const EXPECTED: &str =
    r#"{"uid": "..", "title": "..", "content": "..", "target_ind": [..], "target_rel": [..]}"#;

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct XcRecord<'a> {
    #[serde(default)]
    uid: Option<Uid>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(default)]
    target_ind: Option<Vec<u64>>,
    #[serde(default)]
    target_rel: Option<Vec<f32>>,
}

/// A field of a record that holds text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum TextField {
    Title,
    Content,
}

impl TextField {
    /// The fields of the text in their order: those that are named, or else title and content.
    ///
    /// # Errors
    /// The name that is neither.
    pub(in crate::data) fn of<'a>(columns: &Columns<'a>) -> Result<Vec<Self>, &'a str> {
        if columns.text.is_empty() {
            return Ok(vec![TextField::Title, TextField::Content]);
        }
        let field = |name: &'a String| match name.trim().to_ascii_lowercase().as_str() {
            "title" => Ok(TextField::Title),
            "content" => Ok(TextField::Content),
            _ => Err(name.as_str()),
        };
        columns.text.iter().map(field).collect()
    }

    fn name(self) -> &'static str {
        match self {
            TextField::Title => "title",
            TextField::Content => "content",
        }
    }
}

impl XcRecord<'_> {
    fn text(&self, field: TextField) -> Option<&str> {
        match field {
            TextField::Title => self.title.as_deref(),
            TextField::Content => self.content.as_deref(),
        }
    }
}

/// Reads all points into the builder; labels by number, which `n_labels` bounds if it is known.
pub(in crate::data) fn read(
    lines: &mut Lines<'_>,
    n_labels: Option<usize>,
    fields: &[TextField],
    builder: &mut Builder,
) -> Result<()> {
    let n_labels = n_labels.unwrap_or(u32::MAX as usize);
    let mut text = String::new();
    while let Some(line) = lines.next()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let record: XcRecord<'_> =
            serde_json::from_str(line.text).map_err(|error| json_error(&line, &error, EXPECTED))?;
        if fields.iter().all(|&field| record.text(field).is_none()) {
            let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
            let found = match names.as_slice() {
                [name] => format!("no \"{name}\""),
                _ => "neither \"title\" nor \"content\"".to_owned(),
            };
            return Err(line.malformed(found, EXPECTED));
        }
        text.clear();
        for &field in fields {
            let part = record.text(field).unwrap_or_default();
            if !text.is_empty() && !part.is_empty() {
                text.push(' ');
            }
            text.push_str(part);
        }
        let Some(numbers) = record.target_ind else {
            return Err(line.malformed("no \"target_ind\"", EXPECTED));
        };
        let relevances = record.target_rel.unwrap_or_default();
        if !relevances.is_empty() && relevances.len() != numbers.len() {
            return Err(line.malformed(
                format!("{} of \"target_rel\"", relevances.len()),
                format!("{}, as many as \"target_ind\"", numbers.len()),
            ));
        }
        for (position, &number) in numbers.iter().enumerate() {
            let relevance = relevances.get(position).copied().unwrap_or(1.0);
            if !relevance.is_finite() || relevance < 0.0 {
                return Err(line.malformed(
                    format!("relevance {relevance}"),
                    "a finite number of at least 0",
                ));
            }
            if number >= n_labels as u64 {
                return Err(line.label_out_of_range(number, n_labels));
            }
            builder.push_label_number(number as u32, relevance);
        }
        if let Some(uid) = record.uid {
            builder.push_id(&uid.0);
        }
        builder.push_text(&text);
        builder.end_labels();
    }
    Ok(())
}

/// Reads the names of the labels.
pub(in crate::data) fn read_names(lines: &mut Lines<'_>) -> Result<Texts> {
    let mut names = Texts::default();
    while let Some(line) = lines.next()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let record: XcRecord<'_> = serde_json::from_str(line.text)
            .map_err(|error| json_error(&line, &error, r#"{"uid": "..", "title": ".."}"#))?;
        match record.title.filter(|title| !title.is_empty()) {
            Some(title) => names.push(&title),
            None => names.push(&record.uid.map(|uid| uid.0).unwrap_or_default()),
        }
    }
    Ok(names)
}

/// Writes all points; those without an id get the number of their row.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    let Some(texts) = dataset.texts() else {
        return Ok(());
    };
    for (point, text) in texts.iter().enumerate() {
        let (labels, relevances) = dataset.labels().row(point);
        out.write_all(b"{\"uid\": ")?;
        match dataset.ids() {
            Some(ids) => serde_json::to_writer(&mut *out, ids.get(point))?,
            None => write!(out, "\"{point}\"")?,
        }
        out.write_all(b", \"title\": ")?;
        serde_json::to_writer(&mut *out, text)?;
        out.write_all(b", \"content\": \"\", \"target_ind\": ")?;
        serde_json::to_writer(&mut *out, labels)?;
        out.write_all(b", \"target_rel\": ")?;
        serde_json::to_writer(&mut *out, relevances)?;
        out.write_all(b"}\n")?;
    }
    Ok(())
}

/// Writes the names of the labels.
pub(in crate::data) fn write_names(names: &LabelSet, out: &mut impl Write) -> io::Result<()> {
    for (number, name) in names.names().iter().enumerate() {
        // A label without a name must not be read as one named by its number.
        let uid = match name {
            "" => String::new(),
            _ => number.to_string(),
        };
        write!(out, "{{\"uid\": \"{uid}\", \"title\": ")?;
        serde_json::to_writer(&mut *out, name)?;
        out.write_all(b", \"content\": \"\"}\n")?;
    }
    Ok(())
}
