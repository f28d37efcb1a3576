//! Sparse rows as text: a header of counts, then `idx:val idx:val …` per row.

use std::io::{self, Write};

use crate::data::formats::number::{parse_finite, parse_integer};
use crate::data::io::source::{Line, Lines, excerpt};
use crate::error::{Error, Result};
use crate::matrix::CsrMatrix;

/// Reads a header of exactly `N` counts.
pub(in crate::data) fn read_header<const N: usize>(
    lines: &mut Lines<'_>,
    expected: &str,
) -> Result<[u64; N]> {
    let Some(line) = lines.next()? else {
        return Err(lines.bad_file(format!("is empty, expected the header `{expected}`")));
    };
    parse_header(line.text).ok_or_else(|| {
        line.malformed(
            excerpt(line.text),
            format!("the header `{expected}` of {N} counts"),
        )
    })
}

/// The counts of a header, if there are exactly `N`.
pub(in crate::data) fn parse_header<const N: usize>(line: &str) -> Option<[u64; N]> {
    let mut counts = [0u64; N];
    let mut fields = line.split_ascii_whitespace();
    for count in &mut counts {
        *count = parse_integer(fields.next()?.as_bytes())?;
    }
    fields.next().is_none().then_some(counts)
}

/// A number of columns that 32-bit indices can address.
pub(in crate::data) fn check_columns(
    lines: &Lines<'_>,
    what: &str,
    n_columns: u64,
) -> Result<usize> {
    if n_columns > u64::from(u32::MAX) {
        return Err(lines.bad_file(format!(
            "the header declares {n_columns} {what}, expected at most {}",
            u32::MAX
        )));
    }
    Ok(n_columns as usize)
}

/// The kind of a line after the header.
pub(in crate::data) enum RowCheck {
    /// The line is a row.
    Row,
    /// The line is blank and after the last row.
    Blank,
}

/// Checks whether the line is one more of the declared rows.
///
/// # Errors
/// If there are more rows than declared.
pub(in crate::data) fn check_row(
    line: &Line<'_>,
    n_rows_read: usize,
    n_declared: u64,
) -> Result<RowCheck> {
    if (n_rows_read as u64) < n_declared {
        return Ok(RowCheck::Row);
    }
    if line.text.trim_ascii().is_empty() {
        return Ok(RowCheck::Blank);
    }
    Err(line.malformed(
        format!("row {}", n_rows_read + 1),
        format!("the end of the file: the header declares {n_declared} rows"),
    ))
}

/// Checks that all declared rows were there.
pub(in crate::data) fn check_end(
    lines: &Lines<'_>,
    n_rows_read: usize,
    n_declared: u64,
) -> Result<()> {
    if n_rows_read as u64 == n_declared {
        return Ok(());
    }
    Err(lines.bad_file(format!(
        "ends after {n_rows_read} rows (line {}), expected {n_declared} as the header declares",
        lines.n_lines()
    )))
}

/// Calls `entry` for each `idx:val` of the text, a part of the line.
///
/// # Errors
/// At the first word that is not a pair, and whatever `entry` returns.
pub(in crate::data) fn parse_pairs(
    line: &Line<'_>,
    text: &str,
    mut entry: impl FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at == bytes.len() {
            return Ok(());
        }
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let digits = &bytes[start..at];
        let value_start = at + 1;
        let is_pair = bytes.get(at) == Some(&b':');
        while bytes
            .get(at)
            .is_some_and(|byte| !byte.is_ascii_whitespace())
        {
            at += 1;
        }
        // White space is ASCII, so every cut is at a character border.
        match parse_integer(digits).filter(|_| is_pair) {
            Some(index) => entry(index, &text[value_start..at])?,
            None => {
                return Err(line.malformed(
                    excerpt(&text[start..at]),
                    "index:value, the index counted from 0",
                ));
            }
        }
    }
}

/// A column below the declared count, and its finite value.
pub(in crate::data) fn check_entry(
    line: &Line<'_>,
    index: u64,
    value: &str,
    n_columns: usize,
) -> Result<(u32, f32)> {
    if index >= n_columns as u64 {
        return Err(line.malformed(
            format!("column {index}"),
            format!("one below {n_columns}, which the header declares (columns start at 0)"),
        ));
    }
    Ok((index as u32, finite(line, value)?))
}

/// A finite value.
pub(in crate::data) fn finite(line: &Line<'_>, value: &str) -> Result<f32, Error> {
    parse_finite(value)
        .ok_or_else(|| line.malformed(format!("value {}", excerpt(value)), "a finite number"))
}

/// Reads a whole file of header `rows cols` and one row per line; `row` gets each row as it is.
///
/// Returns the number of columns.
pub(in crate::data) fn read_rows(
    lines: &mut Lines<'_>,
    mut row: impl FnMut(&Line<'_>, &mut Vec<(u32, f32)>) -> Result<()>,
) -> Result<usize> {
    let [n_rows, n_columns] = read_header::<2>(lines, "rows cols")?;
    let n_columns = check_columns(lines, "columns", n_columns)?;
    let mut n_rows_read = 0;
    let mut entries = Vec::new();
    while let Some(line) = lines.next()? {
        if let RowCheck::Blank = check_row(&line, n_rows_read, n_rows)? {
            continue;
        }
        entries.clear();
        parse_pairs(&line, line.text, |index, value| {
            entries.push(check_entry(&line, index, value, n_columns)?);
            Ok(())
        })?;
        row(&line, &mut entries)?;
        n_rows_read += 1;
    }
    check_end(lines, n_rows_read, n_rows)?;
    Ok(n_columns)
}

/// Writes `idx:val idx:val …` and the end of the line.
pub(in crate::data) fn write_pairs(
    out: &mut impl Write,
    columns: &[u32],
    values: &[f32],
) -> io::Result<()> {
    let mut separator = "";
    for (column, value) in columns.iter().zip(values) {
        write!(out, "{separator}{column}:{value}")?;
        separator = " ";
    }
    out.write_all(b"\n")
}

/// Writes a whole file of header `rows cols` and one row per line.
pub(in crate::data) fn write_rows(out: &mut impl Write, matrix: &CsrMatrix) -> io::Result<()> {
    writeln!(out, "{} {}", matrix.n_rows(), matrix.n_cols())?;
    for row_idx in 0..matrix.n_rows() {
        let (columns, values) = matrix.row(row_idx);
        write_pairs(out, columns, values)?;
    }
    Ok(())
}
