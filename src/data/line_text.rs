//! Texts in formats of lines: a line break, and where the format separates by tabs a tab, becomes a space.

use std::io::{self, Write};

/// Whether [`write_line_text`] would change the text.
pub(super) fn is_changed(text: &str, separators: &[u8]) -> bool {
    text.bytes().any(|byte| is_break(byte, separators))
}

/// Writes a text without line breaks and without the separators.
pub(super) fn write_line_text(
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
