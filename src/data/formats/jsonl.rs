//! JSON Lines, the first choice: `{"text": "...", "labels": ["name", ...]}`, one object per line.
//!
//! `"labels"` may also be an object of names and relevances, or a string, which is read as a cell of a table is; it may be
//! null or missing for a point without labels. Labels and `"id"` may be integers, which become their decimal digits; an
//! empty name in a list is a name like any other, and surrounding spaces do not count.
//!
//! `"weight"` is the weight of the point, a number; `"not"` is a list of labels that were rejected for it.
//!
//! Keys are those of tables: labels may also be in `"subjects"`, `"subject_uris"`, `"tags"` or `"categories"`, and the
//! caller may name others. Other keys are ignored, blank lines too.

use std::fmt;
use std::io::{self, Write};

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::columns::{Columns, LABELS, WEIGHT};
use crate::data::formats::label_cell::{CellStyle, read_labels};
use crate::data::formats::text_fields::TextFields;
use crate::data::io::source::{Line, Lines, excerpt};
use crate::error::{Error, Result, in_plain_words, shortened};
use crate::ids::LabelId;

const EXPECTED: &str = r#"{"text": "...", "labels": ["name", ...]}"#;

/// Reads all lines into the builder; columns that the caller named are the keys of the text and of the labels.
pub(in crate::data) fn read(
    lines: &mut Lines<'_>,
    columns: &Columns<'_>,
    builder: &mut Builder,
) -> Result<()> {
    let mut fields = TextFields::new(columns.text);
    while let Some(line) = lines.next()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let mut json = serde_json::Deserializer::from_str(line.text);
        let record = RecordSeed {
            builder,
            fields: &mut fields,
            labels: columns.labels,
            style: CellStyle::of(columns),
        };
        record
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| json_error(&line, &error, EXPECTED))?;
    }
    Ok(())
}

/// Writes all points.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    let Some(texts) = dataset.texts() else {
        return Ok(());
    };
    for (point, text) in texts.iter().enumerate() {
        out.write_all(b"{")?;
        if let Some(ids) = dataset.ids() {
            out.write_all(b"\"id\": ")?;
            serde_json::to_writer(&mut *out, ids.get(point))?;
            out.write_all(b", ")?;
        }
        out.write_all(b"\"text\": ")?;
        serde_json::to_writer(&mut *out, text)?;
        out.write_all(b", \"labels\": ")?;
        write_labels(dataset, point, out)?;
        if let Some(rejected) = dataset.rejected() {
            let names = rejected.row(point).0.iter();
            let names = names.map(|&label| dataset.label_set().name(LabelId(label)));
            let names: Vec<&str> = names.collect();
            if !names.is_empty() {
                out.write_all(b", \"not\": ")?;
                serde_json::to_writer(&mut *out, &names)?;
            }
        }
        if let Some(weight) = dataset.weights().map(|weights| weights[point])
            && weight != 1.0
        {
            write!(out, ", \"weight\": {weight}")?;
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}

/// Writes the labels of a point: a list of names, or an object where a relevance is not 1.
pub(in crate::data) fn write_labels(
    dataset: &Dataset,
    point: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let (_, relevances) = dataset.labels().row(point);
    let is_weighted = relevances.iter().any(|relevance| *relevance != 1.0);
    out.write_all(if is_weighted { b"{" } else { b"[" })?;
    let mut separator = "";
    for (name, relevance) in dataset.label_names(point).zip(relevances) {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, name)?;
        if is_weighted {
            write!(out, ": {relevance}")?;
        }
        separator = ", ";
    }
    out.write_all(if is_weighted { b"}" } else { b"]" })
}

/// An identifier, a string or an integer, as text.
pub(in crate::data) struct Uid(pub(in crate::data) String);

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut id = String::new();
        StringOrInteger(|text: &str| id.push_str(text)).deserialize(deserializer)?;
        Ok(Uid(id))
    }
}

/// The error of a line that is not the JSON it should be.
pub(in crate::data) fn json_error(
    line: &Line<'_>,
    error: &serde_json::Error,
    expected: &str,
) -> Error {
    line.malformed(json_problem(line.text, error), expected)
}

/// Describes the error in a text that is not the JSON it should be.
pub(in crate::data) fn json_problem(text: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    // The parser sees one line, so its line number would mislead.
    let reason = message.split(" at line ").next().unwrap_or(&message);
    if !error.is_data() {
        let (found, column) = (excerpt(text), error.column());
        return format!(
            "{found} which is not valid JSON: {} at column {column}",
            shortened(reason)
        );
    }
    shortened(&in_plain_words(reason))
}

/// A key of an object.
enum RecordKey {
    /// A part of the text, by its number.
    Text(usize),
    Labels,
    Id,
    Weight,
    Not,
    Other,
}

/// Keys by their names.
struct KeySeed<'r> {
    fields: &'r TextFields<'r>,
    labels: Option<&'r str>,
}

impl KeySeed<'_> {
    /// Whether a key holds labels.
    fn is_labels(&self, key: &str) -> bool {
        match self.labels {
            Some(name) => key.trim() == name.trim(),
            None => LABELS.contains(&key),
        }
    }
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = RecordKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RecordKey, D::Error> {
        let mut found = RecordKey::Other;
        let find = |key: &str| {
            found = match self.fields.find(key) {
                Some(part_idx) => RecordKey::Text(part_idx),
                None if self.is_labels(key) => RecordKey::Labels,
                None if key == "id" => RecordKey::Id,
                None if key == WEIGHT => RecordKey::Weight,
                None if key == "not" => RecordKey::Not,
                None => RecordKey::Other,
            }
        };
        Str(find).deserialize(deserializer)?;
        Ok(found)
    }
}

/// Parses a line into the builder.
struct RecordSeed<'r, 'c> {
    builder: &'r mut Builder,
    fields: &'r mut TextFields<'c>,
    labels: Option<&'c str>,
    style: CellStyle,
}

impl<'de> DeserializeSeed<'de> for RecordSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(r#"an object with "text" and "labels""#)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let RecordSeed {
            builder,
            fields,
            labels,
            style,
        } = self;
        let (mut has_labels, mut has_id) = (false, false);
        let (mut has_weight, mut has_not) = (false, false);
        fields.start();
        while let Some(key) = map.next_key_seed(KeySeed { fields, labels })? {
            let (seen, name) = match key {
                RecordKey::Text(part_idx) => {
                    fields.read(part_idx, &mut map)?;
                    continue;
                }
                RecordKey::Labels => (&mut has_labels, labels.unwrap_or("labels")),
                RecordKey::Id => (&mut has_id, "id"),
                RecordKey::Weight => (&mut has_weight, WEIGHT),
                RecordKey::Not => (&mut has_not, "not"),
                RecordKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if std::mem::replace(seen, true) {
                return Err(de::Error::custom(format!("key \"{name}\" twice")));
            }
            match key {
                RecordKey::Id => {
                    let push = |id: &str| builder.push_id(id);
                    map.next_value_seed(OrNull(StringOrInteger(push)))?;
                }
                RecordKey::Weight => {
                    if let Some(weight) = map.next_value::<Option<f32>>()? {
                        builder.push_weight(weight).map_err(de::Error::custom)?;
                    }
                }
                RecordKey::Not => {
                    for Uid(name) in map.next_value::<Option<Vec<Uid>>>()?.into_iter().flatten() {
                        builder.push_rejected(trimmed(&name, style));
                    }
                }
                _ => map.next_value_seed(LabelsSeed::new(builder, style))?,
            }
        }
        builder.push_text(fields.finish()?);
        builder.end_labels();
        Ok(())
    }
}

/// A string, handed to the function.
struct Str<F>(F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for Str<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for Str<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(mut self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }
}

/// A string or an integer, handed to the function as text.
struct StringOrInteger<F>(F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for StringOrInteger<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for StringOrInteger<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_str<E: de::Error>(mut self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }

    fn visit_u64<E: de::Error>(mut self, number: u64) -> Result<(), E> {
        (self.0)(&number.to_string());
        Ok(())
    }

    fn visit_i64<E: de::Error>(mut self, number: i64) -> Result<(), E> {
        (self.0)(&number.to_string());
        Ok(())
    }
}

/// Null, or something else.
struct OrNull<S>(S);

impl<'de, S: DeserializeSeed<'de, Value = ()>> DeserializeSeed<'de> for OrNull<S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de, Value = ()>> Visitor<'de> for OrNull<S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an integer or null")
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.deserialize(deserializer)
    }
}

/// A name without the spaces around it, unless it is to be taken as it is.
fn trimmed(name: &str, style: CellStyle) -> &str {
    match style {
        CellStyle::Whole => name,
        _ => name.trim_ascii(),
    }
}

/// Labels as a list of names, as an object of names and relevances, or as a string.
pub(in crate::data) struct LabelsSeed<'b> {
    builder: &'b mut Builder,
    style: CellStyle,
}

impl<'b> LabelsSeed<'b> {
    /// Labels that go into the builder; a string is split in this style.
    pub(in crate::data) fn new(builder: &'b mut Builder, style: CellStyle) -> Self {
        LabelsSeed { builder, style }
    }
}

impl<'de> DeserializeSeed<'de> for LabelsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LabelsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of label names, an object of label names and relevances, or a string")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, names: &str) -> Result<(), E> {
        read_labels(names, self.style, self.builder).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<(), A::Error> {
        let LabelsSeed { builder, style } = self;
        let mut push = |name: &str| builder.push_label(trimmed(name, style), 1.0);
        while names
            .next_element_seed(OrNull(StringOrInteger(&mut push)))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut relevances: A) -> Result<(), A::Error> {
        let mut name = String::new();
        loop {
            name.clear();
            let key = relevances.next_key_seed(Str(|key: &str| name.push_str(key)))?;
            if key.is_none() {
                return Ok(());
            }
            let relevance = relevances.next_value::<f32>()?;
            if !relevance.is_finite() || relevance < 0.0 {
                return Err(de::Error::custom(format!(
                    "relevance {relevance}, which is not a finite number of at least 0"
                )));
            }
            self.builder
                .push_label(trimmed(&name, self.style), relevance);
        }
    }
}
