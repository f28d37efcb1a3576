//! Raw lines: `train_texts.txt`, `train_labels.txt` with the labels of each text separated by spaces, and
//! `labels.txt` with one name per line.
//!
//! Labels are names if all of them are in `labels.txt`, otherwise numbers; without that file they are names.

use std::io::{self, Write};

use crate::data::builder::Builder;
use crate::data::formats::number::parse_integer;
use crate::data::io::source::{Lines, excerpt};
use crate::data::{Dataset, LabelSet, Texts};
use crate::error::Result;

/// Reads one text per line.
pub(in crate::data) fn read_texts(lines: &mut Lines<'_>, builder: &mut Builder) -> Result<()> {
    while let Some(line) = lines.next()? {
        builder.push_text(line.text);
    }
    Ok(())
}

/// Reads the labels of one point per line, by name.
pub(in crate::data) fn read_named_labels(
    lines: &mut Lines<'_>,
    builder: &mut Builder,
) -> Result<()> {
    while let Some(line) = lines.next()? {
        for name in line.text.split_ascii_whitespace() {
            builder.push_label(name, 1.0);
        }
        builder.end_labels();
    }
    Ok(())
}

/// Reads the labels of one point per line into the builder, by number, whether the file has names or numbers.
pub(in crate::data) fn read_labels(
    lines: &mut Lines<'_>,
    names: &Texts,
    builder: &mut Builder,
) -> Result<()> {
    let mut of_name = LabelSet::default();
    let number_of_id: Vec<u32> = (0..names.len() as u32)
        .filter(|&number| {
            let n_before = of_name.len();
            of_name.intern(names.get(number as usize));
            of_name.len() > n_before
        })
        .collect();
    // Which of the two it is shows only at the end, so both readings are kept while both are possible.
    let (mut by_name, mut by_number) = (Some(Vec::new()), Some(Vec::new()));
    let mut ends = Vec::new();
    let mut n_labels = 0usize;
    while let Some(line) = lines.next()? {
        for token in line.text.split_ascii_whitespace() {
            let as_name = of_name.find(token).map(|id| number_of_id[id.idx()]);
            let as_number = parse_integer(token.as_bytes());
            let in_range = as_number.filter(|number| *number < names.len() as u64);
            extend(&mut by_name, as_name);
            extend(&mut by_number, in_range.map(|number| number as u32));
            n_labels += 1;
            if by_name.is_some() || by_number.is_some() {
                continue;
            }
            return Err(match (as_name, as_number) {
                (None, Some(number)) => line.label_out_of_range(number, names.len()),
                _ => line.malformed(
                    format!("label {}", excerpt(token)),
                    format!(
                        "names, or else numbers, of the {} labels in the file of label names",
                        names.len()
                    ),
                ),
            });
        }
        ends.push(n_labels);
    }
    let numbers = by_name.or(by_number).unwrap_or_default();
    let mut start = 0;
    for end in ends {
        for &number in &numbers[start..end] {
            builder.push_label_number(number, 1.0);
        }
        builder.end_labels();
        start = end;
    }
    Ok(())
}

fn extend(numbers: &mut Option<Vec<u32>>, number: Option<u32>) {
    match (numbers.as_mut(), number) {
        (Some(numbers), Some(number)) => numbers.push(number),
        _ => *numbers = None,
    }
}

/// Writes the labels of one point per line: by number, unless names that are numbers themselves would confuse a reader.
pub(in crate::data) fn write_labels(dataset: &Dataset, out: &mut impl Write) -> io::Result<()> {
    let by_name = uses_names(dataset);
    for point in 0..dataset.n_points() {
        let mut separator = "";
        let (labels, _) = dataset.labels().row(point);
        for (label, name) in labels.iter().zip(dataset.label_names(point)) {
            if by_name {
                write!(out, "{separator}{name}")?;
            } else {
                write!(out, "{separator}{label}")?;
            }
            separator = " ";
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Whether a label number in use is at the same time the name of a label.
pub(in crate::data) fn uses_names(dataset: &Dataset) -> bool {
    let names = dataset.label_set();
    let used = dataset.labels().indices();
    used.iter()
        .any(|label| names.find(&label.to_string()).is_some())
}

/// Whether a name is read as it is among others separated by spaces.
pub(in crate::data) fn can_hold(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_ascii_whitespace())
}
