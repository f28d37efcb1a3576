//! JSON Lines, the first choice: `{"text": "...", "labels": ["name", ...]}`, one object per line.
//!
//! `"labels"` may also be an object of names and relevances, and may be missing for a point without labels. Labels
//! and `"id"` may be integers, which become their decimal digits; an empty name is a name like any other.
//! Other keys are ignored, blank lines too. The text may be in several keys that the caller names, and so may the labels
//! be in another one.

use std::fmt;
use std::io::{self, Write};

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::columns::Columns;
use crate::data::formats::text_fields::TextFields;
use crate::data::io::source::{Line, Lines, excerpt};
use crate::error::{Error, Result, in_plain_words, shortened};

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
            labels: columns.labels.unwrap_or("labels"),
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
    Other,
}

/// Keys by their names.
struct KeySeed<'r> {
    fields: &'r TextFields<'r>,
    labels: &'r str,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = RecordKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RecordKey, D::Error> {
        let mut found = RecordKey::Other;
        let find = |key: &str| {
            found = match self.fields.find(key) {
                Some(part_idx) => RecordKey::Text(part_idx),
                None if key == self.labels => RecordKey::Labels,
                None if key == "id" => RecordKey::Id,
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
    labels: &'c str,
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
        } = self;
        let (mut has_labels, mut has_id) = (false, false);
        fields.start();
        while let Some(key) = map.next_key_seed(KeySeed { fields, labels })? {
            let (seen, name) = match key {
                RecordKey::Text(part_idx) => {
                    fields.read(part_idx, &mut map)?;
                    continue;
                }
                RecordKey::Labels => (&mut has_labels, labels),
                RecordKey::Id => (&mut has_id, "id"),
                RecordKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if std::mem::replace(seen, true) {
                return Err(de::Error::custom(format!("key \"{name}\" twice")));
            }
            if matches!(key, RecordKey::Id) {
                map.next_value_seed(StringOrInteger(|id: &str| builder.push_id(id)))?;
            } else {
                map.next_value_seed(LabelsSeed(builder))?;
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

/// Labels as a list of names, or as an object of names and relevances.
pub(in crate::data) struct LabelsSeed<'b>(pub(in crate::data) &'b mut Builder);

impl<'de> DeserializeSeed<'de> for LabelsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LabelsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of label names, or an object of label names and relevances")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<(), A::Error> {
        let builder = self.0;
        while names
            .next_element_seed(StringOrInteger(|name: &str| builder.push_label(name, 1.0)))?
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
            self.0.push_label(&name, relevance);
        }
    }
}
