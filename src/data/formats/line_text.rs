//! Shared by formats with one line per point: the split at a tab, and texts that must not break a line.
//!
//! In a text a line break, and where the format separates by tabs a tab, becomes a space.

use std::io::{self, Write};

use crate::data::Dataset;
use crate::data::io::source::{Line, excerpt};
use crate::error::Result;

/// The parts of a line before and after its first tab.
///
/// # Errors
/// [`crate::Error::Malformed`] with what was expected, if there is no tab.
pub(in crate::data) fn split_at_tab<'a>(
    line: &Line<'a>,
    expected: &str,
) -> Result<(&'a str, &'a str)> {
    let no_tab = || line.malformed(format!("{} without a tab", excerpt(line.text)), expected);
    line.text.split_once('\t').ok_or_else(no_tab)
}

/// Writes a line for each text; `line` gets the number of the point and its text.
pub(in crate::data) fn write_lines<W: Write>(
    dataset: &Dataset,
    out: &mut W,
    mut line: impl FnMut(&mut W, usize, &str) -> io::Result<()>,
) -> io::Result<()> {
    let texts = dataset.texts().into_iter().flat_map(|texts| texts.iter());
    for (point, text) in texts.enumerate() {
        line(out, point, text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Whether [`write_line_text`] would change the text.
pub(in crate::data) fn is_changed(text: &str, separators: &[u8]) -> bool {
    text.bytes().any(|byte| is_break(byte, separators))
}

/// Writes a text without line breaks and without the separators.
pub(in crate::data) fn write_line_text(
    out: &mut impl Write,
    text: &str,
    separators: &[u8],
) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| is_break(byte, separators)) {
        out.write_all(&rest[..at])?;
        out.write_all(b" ")?;
        rest = &rest[at + 1..];
    }
    out.write_all(rest)
}

fn is_break(byte: u8, separators: &[u8]) -> bool {
    matches!(byte, b'\n' | b'\r') || separators.contains(&byte)
}
