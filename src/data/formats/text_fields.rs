//! The text of a JSON object: its key `text`, or the keys that the caller names, joined by a space in that order.
//!
//! A named key may be missing or null in some objects, not all of them in the same one.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};

const TEXT: &str = "text";

/// The parts of one text after another; reuses its buffers.
pub(in crate::data) struct TextFields<'c> {
    names: &'c [String],
    /// The parts of the object that is being read: whether its key was seen, whether it has a text, and the text.
    parts: Vec<TextPart>,
    joined: String,
}

#[derive(Clone, Default)]
struct TextPart {
    is_seen: bool,
    is_present: bool,
    text: String,
}

impl<'c> TextFields<'c> {
    /// Texts in these keys; in `text` if there are none.
    pub(in crate::data) fn new(names: &'c [String]) -> Self {
        TextFields {
            names,
            parts: vec![TextPart::default(); names.len().max(1)],
            joined: String::new(),
        }
    }

    /// The number of the part that a key holds.
    pub(in crate::data) fn find(&self, key: &str) -> Option<usize> {
        if self.names.is_empty() {
            return (key == TEXT).then_some(0);
        }
        self.names.iter().position(|name| name.trim() == key.trim())
    }

    /// Forgets the last object.
    pub(in crate::data) fn start(&mut self) {
        for part in &mut self.parts {
            (part.is_seen, part.is_present) = (false, false);
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
            let name = self.names.get(part_idx).map_or(TEXT, String::as_str);
            return Err(de::Error::custom(format!("key {name:?} twice")));
        }
        part.is_present = map.next_value_seed(StringOrNull {
            text: &mut part.text,
            may_be_null: !self.names.is_empty(),
        })?;
        Ok(())
    }

    /// The text of the object.
    ///
    /// # Errors
    /// If no part of it is there.
    pub(in crate::data) fn finish<E: de::Error>(&mut self) -> Result<&str, E> {
        if !self.parts.iter().any(|part| part.is_present) {
            let names = self.names.iter().map(|name| format!("{name:?}"));
            let names = names.collect::<Vec<_>>().join(" or ");
            let names = if names.is_empty() { "\"text\"" } else { &names };
            return Err(de::Error::custom(format!("no key {names}")));
        }
        self.joined.clear();
        for part in self.parts.iter().filter(|part| !part.text.is_empty()) {
            if !self.joined.is_empty() {
                self.joined.push(' ');
            }
            self.joined.push_str(&part.text);
        }
        Ok(&self.joined)
    }
}

/// A string, written into the buffer; false for null.
struct StringOrNull<'b> {
    text: &'b mut String,
    may_be_null: bool,
}

impl<'de> DeserializeSeed<'de> for StringOrNull<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        if self.may_be_null {
            deserializer.deserialize_any(self)
        } else {
            deserializer.deserialize_str(self)
        }
    }
}

impl<'de> Visitor<'de> for StringOrNull<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<bool, E> {
        self.text.push_str(text);
        Ok(true)
    }

    fn visit_unit<E: de::Error>(self) -> Result<bool, E> {
        if self.may_be_null {
            Ok(false)
        } else {
            Err(de::Error::invalid_type(de::Unexpected::Unit, &self))
        }
    }
}
