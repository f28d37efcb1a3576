//! Filter pairs of the XC Repository: `row label` per line, labels that must not be counted for a test point.

use std::path::Path;

use crate::data::formats::number::parse_integer;
use crate::data::io::source::{ReadProgress, Source, excerpt};
use crate::error::Result;
use crate::ids::LabelId;

/// Reads the pairs of a file such as `filter_labels_test.txt`; it may be empty.
///
/// # Errors
/// [`crate::Error::Malformed`] for a line that is not two numbers.
pub fn read_filter_pairs(path: &Path) -> Result<Vec<(usize, LabelId)>> {
    let source = Source::open(path)?;
    let silent = ReadProgress::default();
    let mut lines = source.lines(&silent)?;
    let mut pairs = Vec::new();
    while let Some(line) = lines.next()? {
        let mut fields = line.text.split_ascii_whitespace();
        let Some(row) = fields.next() else {
            continue;
        };
        let row = parse_integer(row.as_bytes()).and_then(|row| usize::try_from(row).ok());
        let label = fields
            .next()
            .and_then(|label| parse_integer(label.as_bytes()))
            .and_then(|label| u32::try_from(label).ok());
        match (row, label, fields.next()) {
            (Some(row), Some(label), None) => pairs.push((row, LabelId(label))),
            _ => return Err(line.malformed(excerpt(line.text), "`row label`, two numbers")),
        }
    }
    Ok(pairs)
}
