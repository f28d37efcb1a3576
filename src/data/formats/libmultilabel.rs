//! LibMultiLabel: `id<TAB>label label<TAB>text`. Without ids, `label label<TAB>text` if the format is named.
//!
//! White space in label names is escaped.

use std::io::{self, Write};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::label_token::{escape, unescape};
use crate::data::formats::line_text::{split_at_tab, write_line_text, write_lines};
use crate::data::io::source::Lines;
use crate::error::Result;

/// Reads all lines into the builder.
pub(in crate::data) fn read(lines: &mut Lines<'_>, builder: &mut Builder) -> Result<()> {
    let mut has_ids = None;
    while let Some(line) = lines.next()? {
        let (first, rest) = split_at_tab(&line, "id<TAB>label label<TAB>text")?;
        // The first line decides whether there are ids; a text may contain tabs.
        let has_ids = *has_ids.get_or_insert(rest.contains('\t'));
        let (labels, text) = if !has_ids {
            (first, rest)
        } else if let Some((labels, text)) = rest.split_once('\t') {
            builder.push_id(first);
            (labels, text)
        } else {
            return Err(line.malformed(
                "2 columns",
                "3 as in the first line: id<TAB>label label<TAB>text",
            ));
        };
        for token in labels.split_ascii_whitespace() {
            builder.push_label(&unescape(token), 1.0);
        }
        builder.push_text(text);
        builder.end_labels();
    }
    Ok(())
}

/// Writes all points; those without an id get the number of their row.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    write_lines(dataset, out, |out, point, text| {
        match dataset.ids() {
            Some(ids) => write_line_text(out, ids.get(point), b"\t")?,
            None => write!(out, "{point}")?,
        }
        let mut separator = "\t";
        for name in dataset.label_names(point) {
            write!(out, "{separator}{}", escape(name))?;
            separator = " ";
        }
        out.write_all(if separator == "\t" { b"\t\t" } else { b"\t" })?;
        write_line_text(out, text, b"\t")
    })
}
