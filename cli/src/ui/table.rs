//! Plain tables that fit 80 columns.
//!
//! The first column is text and is shortened with `…` if a row would be too wide; the others hold short values and
//! are right-aligned.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of the narrowest terminal.
pub(crate) const MAX_WIDTH: usize = 80;
const GAP: usize = 2;

/// Headings, and rows with as many cells.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Self {
        Table {
            rows: vec![headings.into_iter().map(Into::into).collect()],
        }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.rows[0].len(), String::new());
        self.rows.push(cells);
    }

    /// Writes the table.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let n_columns = self.rows[0].len();
        let mut widths: Vec<usize> = (0..n_columns)
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].width());
                cells.max().unwrap_or(0)
            })
            .collect();
        if let Some((first, others)) = widths.split_first_mut() {
            let taken: usize = others.iter().map(|width| width + GAP).sum();
            *first = (*first).min(MAX_WIDTH.saturating_sub(taken).max(1));
        }
        for row in &self.rows {
            let mut line = shorten(&row[0], widths[0]);
            line.extend(std::iter::repeat_n(' ', widths[0] - line.width()));
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.extend(std::iter::repeat_n(' ', GAP + width - cell.width()));
                line.push_str(cell);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The text, or as much of it as fits, with `…` for the rest. Control characters become spaces.
pub(crate) fn shorten(text: &str, max_width: usize) -> String {
    let is_plain = |c: char| !c.is_control();
    let clean: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { ' ' })
        .collect();
    if clean.width() <= max_width {
        return clean;
    }
    let mut kept = String::new();
    let mut width = 1; // of the ellipsis
    for c in clean.chars() {
        width += c.width().unwrap_or(0);
        if width > max_width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headings: &[&str], rows: &[&[&str]], expected: &str) {
        let mut table = Table::new(headings.iter().copied());
        for row in rows {
            table.row(row.iter().copied());
        }
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_are_right_aligned() {
        check(
            &["", "@1", "@3"],
            &[&["P", "70.63", "4.40"], &["nDCG", "1.00"]],
            "         @1    @3\nP     70.63  4.40\nnDCG   1.00\n",
        );
    }

    #[test]
    fn a_long_first_column_is_shortened() {
        let mut table = Table::new(["label", "points"]);
        table.row(["ä".repeat(200), "12".into()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.lines().all(|line| line.width() <= MAX_WIDTH), "{out}");
        assert!(out.contains("ä…") && out.contains("12"), "{out}");
    }

    #[test]
    fn wide_characters_count_as_two() {
        assert_eq!(shorten("漢字漢字", 5), "漢字…");
        assert_eq!(shorten("漢字", 4), "漢字");
        assert_eq!(shorten("a\tb\x1b", 9), "a b ");
    }
}
