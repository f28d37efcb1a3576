//! The text of a JSON object: its key `text`, or else those of `title`, `abstract`, `content` and `description` that it
//! has, or the keys that the caller names, joined by a space in that order.
//!
//! A key may be null, and keys may be missing in some objects, not all of them in the same one.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};

use crate::data::formats::columns::{TEXT, TEXT_PARTS};

/// The parts of one text after another; reuses its buffers.
pub(in crate::data) struct TextFields<'c> {
    names: &'c [String],
    /// The parts of the object that is being read; without names the first is the whole text.
    parts: Vec<TextPart>,
    joined: String,
}

#[derive(Clone, Default)]
struct TextPart {
    is_seen: bool,
    text: String,
}

impl<'c> TextFields<'c> {
    /// Texts in these keys; in the usual ones if there are none.
    pub(in crate::data) fn new(names: &'c [String]) -> Self {
        let n_parts = match names.len() {
            0 => 1 + TEXT_PARTS.len(),
            n_names => n_names,
        };
        TextFields {
            names,
            parts: vec![TextPart::default(); n_parts],
            joined: String::new(),
        }
    }

    /// The number of the part that a key holds.
    pub(in crate::data) fn find(&self, key: &str) -> Option<usize> {
        if self.names.is_empty() {
            let mut usual = std::iter::once(TEXT).chain(TEXT_PARTS);
            return usual.position(|name| name == key);
        }
        self.names.iter().position(|name| name.trim() == key.trim())
    }

    /// Forgets the last object.
    pub(in crate::data) fn start(&mut self) {
        for part in &mut self.parts {
            part.is_seen = false;
            part.text.clear();
        }
    }

    /// Reads the value of a part.
    pub(in crate::data) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        part_idx: usize,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let part = &mut self.parts[part_idx];
        if std::mem::replace(&mut part.is_seen, true) {
            let usual = std::iter::once(TEXT).chain(TEXT_PARTS).nth(part_idx);
            let name = self.names.get(part_idx).map(String::as_str).or(usual);
            let name = name.unwrap_or_default();
            return Err(de::Error::custom(format!("key {name:?} twice")));
        }
        map.next_value_seed(StringOrNull(&mut part.text))
    }

    /// The text of the object.
    ///
    /// # Errors
    /// If no part of it is there.
    pub(in crate::data) fn finish<E: de::Error>(&mut self) -> Result<&str, E> {
        if !self.parts.iter().any(|part| part.is_seen) {
            let names = self.names.iter().map(|name| format!("{name:?}"));
            let names = names.collect::<Vec<_>>().join(" or ");
            let names = if names.is_empty() { "\"text\"" } else { &names };
            return Err(de::Error::custom(format!("no key {names}")));
        }
        self.joined.clear();
        let has_whole = self.names.is_empty() && self.parts[0].is_seen;
        let n_parts = if has_whole { 1 } else { self.parts.len() };
        let parts = self.parts[..n_parts].iter();
        for part in parts.filter(|part| !part.text.is_empty()) {
            if !self.joined.is_empty() {
                self.joined.push(' ');
            }
            self.joined.push_str(&part.text);
        }
        Ok(&self.joined)
    }
}

/// A string, written into the buffer, or null.
struct StringOrNull<'b>(&'b mut String);

impl<'de> DeserializeSeed<'de> for StringOrNull<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StringOrNull<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}
