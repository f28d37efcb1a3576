//! PECOS text2text: `id1,id2<TAB>text`, with `id::0.3` for relevance. The names are in `output-items.txt`.

use std::io::{self, Write};

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::line_text::{split_at_tab, write_line_text, write_lines};
use crate::data::formats::number::{parse_integer, parse_relevance};
use crate::data::io::source::{Lines, excerpt};
use crate::error::Result;

/// Reads all lines into the builder; labels by number.
pub(in crate::data) fn read(lines: &mut Lines<'_>, builder: &mut Builder) -> Result<()> {
    while let Some(line) = lines.next()? {
        let (labels, text) = split_at_tab(&line, "id1,id2<TAB>text")?;
        let labels = labels.trim_ascii();
        for entry in labels.split(',').filter(|_| !labels.is_empty()) {
            let (number, relevance) = entry.split_once("::").unwrap_or((entry, "1"));
            let number = parse_integer(number.trim_ascii().as_bytes())
                .filter(|number| *number < u64::from(u32::MAX));
            let relevance = parse_relevance(relevance.trim_ascii());
            let (Some(number), Some(relevance)) = (number, relevance) else {
                return Err(line.malformed(
                    format!("{} as a label", excerpt(entry)),
                    "a label number, or number::relevance with a finite relevance of at least 0",
                ));
            };
            builder.push_label_number(number as u32, relevance);
        }
        builder.push_text(text);
        builder.end_labels();
    }
    Ok(())
}

/// Writes all points.
pub(in crate::data) fn write(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    write_lines(dataset, out, |out, point, text| {
        let (labels, relevances) = dataset.labels().row(point);
        let mut separator = "";
        for (label, relevance) in labels.iter().zip(relevances) {
            write!(out, "{separator}{label}")?;
            if *relevance != 1.0 {
                write!(out, "::{relevance}")?;
            }
            separator = ",";
        }
        out.write_all(b"\t")?;
        write_line_text(out, text, b"\t")
    })
}
