//! fastText: `__label__a __label__b text`.
//!
//! As in fastText, a word with the prefix is a label anywhere in the line. White space in label names is escaped.

use std::io::{self, Write};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::label_token::{escape, unescape};
use crate::data::formats::line_text::{write_line_text, write_lines};
use crate::data::io::source::Lines;
use crate::error::Result;

pub(in crate::data) const PREFIX: &str = "__label__";

/// Reads all lines into the builder.
pub(in crate::data) fn read(lines: &mut Lines<'_>, builder: &mut Builder) -> Result<()> {
    let finder = memchr::memmem::Finder::new(PREFIX);
    let mut text = String::new();
    while let Some(line) = lines.next()? {
        let mut rest = line.text;
        while let Some(after) = rest.strip_prefix(PREFIX) {
            let end = memchr::memchr2(b' ', b'\t', after.as_bytes()).unwrap_or(after.len());
            builder.push_label(&unescape(&after[..end]), 1.0);
            // The separator is one character; what follows belongs to the text, even a space.
            rest = after.get(end + 1..).unwrap_or_default();
        }
        if finder.find(rest.as_bytes()).is_none() {
            builder.push_text(rest);
        } else {
            text.clear();
            for word in rest.split([' ', '\t']) {
                match word.strip_prefix(PREFIX) {
                    Some(name) => builder.push_label(&unescape(name), 1.0),
                    None => {
                        text.push_str(if text.is_empty() { "" } else { " " });
                        text.push_str(word);
                    }
                }
            }
            builder.push_text(&text);
        }
        builder.end_labels();
    }
    Ok(())
}

/// Writes all points.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    write_lines(dataset, out, |out, point, text| {
        let mut separator = "";
        for name in dataset.label_names(point) {
            write!(out, "{separator}{PREFIX}{}", escape(name))?;
            separator = " ";
        }
        out.write_all(separator.as_bytes())?;
        if has_label_word(text) {
            write_line_text(out, &text.replace(PREFIX, "_label_"), b"")
        } else {
            write_line_text(out, text, b"")
        }
    })
}

/// Whether a part of the text would be read as a label.
pub(in crate::data) fn has_label_word(text: &str) -> bool {
    text.contains(PREFIX)
}
