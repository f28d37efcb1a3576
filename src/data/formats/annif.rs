//! Annif: `text<TAB><uri> <uri>`.
//!
//! A label is what is between the brackets, including spaces, or a word without brackets.

use std::io::{self, Write};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::line_text::{split_at_tab, write_line_text, write_lines};
use crate::data::io::source::Lines;
use crate::error::Result;

/// Reads all lines into the builder.
pub(in crate::data) fn read(lines: &mut Lines<'_>, builder: &mut Builder) -> Result<()> {
    while let Some(line) = lines.next()? {
        let (text, labels) = split_at_tab(&line, "text<TAB><uri> <uri>")?;
        let mut rest = labels.trim_ascii();
        while !rest.is_empty() {
            let (label, after) = split_label(rest);
            builder.push_label(label, 1.0);
            rest = after.trim_ascii_start();
        }
        builder.push_text(text);
        builder.end_labels();
    }
    Ok(())
}

/// The first label of a text that is not empty, and what comes after it.
pub(in crate::data) fn split_label(text: &str) -> (&str, &str) {
    let Some(inner) = text.strip_prefix('<') else {
        let end = text.find([' ', '\t']).unwrap_or(text.len());
        return text.split_at(end);
    };
    for (at, _) in inner.match_indices('>') {
        let after = &inner[at + 1..];
        if after.is_empty() || after.starts_with([' ', '\t']) {
            return (&inner[..at], after);
        }
    }
    text.split_at(text.find([' ', '\t']).unwrap_or(text.len()))
}

/// Whether a name is read as it is between brackets.
pub(in crate::data) fn can_hold(name: &str) -> bool {
    !name.contains(['\n', '\r', '\t']) && !name.contains("> ") && !name.ends_with('>')
}

/// Writes all points.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    write_lines(dataset, out, |out, point, text| {
        write_line_text(out, text, b"\t")?;
        let mut separator = "\t";
        for name in dataset.label_names(point) {
            write!(out, "{separator}<{name}>")?;
            separator = " ";
        }
        out.write_all(if separator == "\t" { b"\t" } else { b"" })
    })
}
