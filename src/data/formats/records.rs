//! The records of a CSV or TSV file, each with the line at which it starts.
//!
//! Quoting follows RFC 4180: a quoted field may contain the separator, line breaks, and quotes that are doubled.
//! Blank lines between records are skipped. Lines are handed to the parser one at a time, so that a record can be
//! located and a quote that is never closed can be reported where it opens.

use std::io::{self, Read};
use std::path::PathBuf;

use csv::StringRecord;

use crate::data::io::source::{Lines, MAX_LINE_BYTES};
use crate::error::{Error, Result};

/// The records of a file.
pub(in crate::data) struct Records<'a> {
    path: PathBuf,
    /// `None` only while an error is handled.
    reader: Option<csv::Reader<LineFeed<'a>>>,
    delimiter: u8,
    record: StringRecord,
    line: usize,
}

impl<'a> Records<'a> {
    /// The records of these lines.
    pub(in crate::data) fn new(lines: Lines<'a>, delimiter: u8) -> Self {
        let path = lines.path().to_path_buf();
        let feed = LineFeed {
            lines,
            delimiter,
            line: Vec::new(),
            n_read: 0,
            record_line: None,
            n_record_bytes: 0,
            max_record_bytes: MAX_LINE_BYTES,
            quote: QuoteState::FieldStart,
            quote_line: 0,
            failure: None,
        };
        Records {
            path,
            reader: Some(parser(feed, delimiter)),
            delimiter,
            record: StringRecord::new(),
            line: 0,
        }
    }

    /// Moves to the next record; false at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or a quote is never closed. After [`Error::Malformed`] the next call continues
    /// behind the place of the error.
    pub(in crate::data) fn advance(&mut self) -> Result<bool> {
        let Some(reader) = &mut self.reader else {
            return Ok(false);
        };
        reader.get_mut().start_record();
        let outcome = reader.read_record(&mut self.record);
        let feed = reader.get_mut();
        self.line = feed.record_line.unwrap_or(feed.lines.n_lines());
        match (outcome, feed.failure.take()) {
            (Ok(is_record), None) => Ok(is_record),
            (Ok(_), Some(error)) => Err(error),
            (Err(error), failure) => {
                let error = failure.unwrap_or_else(|| {
                    feed.lines
                        .malformed(self.line, error.to_string(), "a record of UTF-8 text")
                });
                // The parser gives up after an error; a new one continues with the next line.
                self.reader = self.reader.take().map(|reader| {
                    let mut feed = reader.into_inner();
                    feed.quote = QuoteState::FieldStart;
                    feed.line.clear();
                    feed.n_read = 0;
                    parser(feed, self.delimiter)
                });
                Err(error)
            }
        }
    }

    /// The fields of the record.
    pub(in crate::data) fn fields(&self) -> &StringRecord {
        &self.record
    }

    /// A field; empty if the record has fewer.
    pub(in crate::data) fn field(&self, position: usize) -> &str {
        self.record.get(position).unwrap_or_default()
    }

    /// Checks that the record has as many fields as the header.
    ///
    /// # Errors
    /// [`Error::Malformed`] with both numbers.
    pub(in crate::data) fn check_n_fields(&self, n_expected: usize) -> Result<()> {
        let n_fields = self.record.len();
        if n_fields == n_expected {
            return Ok(());
        }
        let fields = if n_fields == 1 { "field" } else { "fields" };
        let separator = match self.delimiter {
            b'\t' => "a tab",
            b';' => "a semicolon",
            _ => "a comma",
        };
        Err(self.malformed(
            format!("{n_fields} {fields}"),
            format!(
                "{n_expected} as in the header: put double quotes around fields that contain {separator} or a line break"
            ),
        ))
    }

    /// The error that the record does not follow its format.
    pub(in crate::data) fn malformed(
        &self,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Error {
        Error::Malformed {
            path: self.path.clone(),
            line: self.line,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// The error that the file as a whole is wrong.
    pub(in crate::data) fn bad_file(&self, problem: impl Into<String>) -> Error {
        Error::BadFile {
            path: self.path.clone(),
            problem: problem.into(),
        }
    }
}

fn parser(feed: LineFeed<'_>, delimiter: u8) -> csv::Reader<LineFeed<'_>> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(feed)
}

/// The state of quoting at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuoteState {
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote within a quoted field: its end, or the first of two.
    Closing,
}

/// Hands lines to the parser, and keeps account of where records and quotes start.
struct LineFeed<'a> {
    lines: Lines<'a>,
    delimiter: u8,
    /// The current line with its end.
    line: Vec<u8>,
    /// Bytes of it that the parser has read.
    n_read: usize,
    /// The line at which the current record starts, once it is known.
    record_line: Option<usize>,
    n_record_bytes: usize,
    max_record_bytes: usize,
    quote: QuoteState,
    /// The line of the last quote that opened a field.
    quote_line: usize,
    /// The error behind the one that the parser passes on.
    failure: Option<Error>,
}

impl LineFeed<'_> {
    fn start_record(&mut self) {
        self.record_line = None;
        self.n_record_bytes = 0;
    }

    /// Fetches the next line; false at the end.
    fn fetch(&mut self) -> Result<bool> {
        self.line.clear();
        self.n_read = 0;
        let Some(line) = self.lines.next_with_end()? else {
            if self.quote == QuoteState::Quoted {
                self.quote = QuoteState::FieldStart;
                return Err(self.lines.malformed(
                    self.quote_line,
                    "a double quote that opens a field and is never closed",
                    "a closing quote: double the quotes inside a quoted field",
                ));
            }
            return Ok(false);
        };
        let number = line.number;
        self.line.extend_from_slice(line.text.as_bytes());
        if self.record_line.is_none() && !line.text.trim_ascii().is_empty() {
            self.record_line = Some(number);
        }
        self.n_record_bytes += self.line.len();
        if self.n_record_bytes > self.max_record_bytes {
            let found = format!("a record of more than {} bytes", self.max_record_bytes);
            let expected = "shorter records: look for a quote that is not closed";
            let start = self.record_line.unwrap_or(number);
            return Err(self.lines.malformed(start, found, expected));
        }
        self.follow_quotes(number);
        Ok(true)
    }

    fn follow_quotes(&mut self, number: usize) {
        for &byte in &self.line {
            let ends_field = byte == self.delimiter || byte == b'\n' || byte == b'\r';
            self.quote = match self.quote {
                QuoteState::Quoted if byte == b'"' => QuoteState::Closing,
                QuoteState::Quoted => QuoteState::Quoted,
                QuoteState::Closing if byte == b'"' => QuoteState::Quoted,
                QuoteState::FieldStart if byte == b'"' => {
                    self.quote_line = number;
                    QuoteState::Quoted
                }
                _ if ends_field => QuoteState::FieldStart,
                _ => QuoteState::Unquoted,
            };
        }
    }
}

impl Read for LineFeed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.n_read == self.line.len() {
            match self.fetch() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => {
                    self.failure = Some(error);
                    return Err(io::Error::other("see the failure of the line feed"));
                }
            }
        }
        let n_bytes = (&self.line[self.n_read..]).read(buffer)?;
        self.n_read += n_bytes;
        Ok(n_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every record with its line, and every error.
    fn read_all(text: &str, max_record_bytes: usize) -> Vec<String> {
        let lines = Lines::new("t".into(), Box::new(text.as_bytes())).unwrap();
        let mut records = Records::new(lines, b',');
        if let Some(reader) = &mut records.reader {
            reader.get_mut().max_record_bytes = max_record_bytes;
        }
        let mut found = Vec::new();
        loop {
            match records.advance() {
                Ok(false) => return found,
                Ok(true) => {
                    let fields: Vec<&str> = records.fields().iter().collect();
                    found.push(format!("{}: {}", records.line, fields.join("|")));
                }
                Err(error) => found.push(error.to_string()),
            }
        }
    }

    #[test]
    fn records_know_the_line_at_which_they_start() {
        for end in ["\n", "\r\n"] {
            let text = ["a,b", "", "\"c", "", "d\",e", "f\"g,\"h\"\"i\"", ""].join(end);
            let expected = [
                "1: a|b".to_owned(),
                format!("3: c{end}{end}d|e"),
                "6: f\"g|h\"i".to_owned(),
            ];
            assert_eq!(read_all(&text, 1000), expected);
        }
        assert_eq!(read_all("\u{feff}a,b\n", 1000), ["1: a|b"]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_reported_where_it_opens() {
        let found = read_all("a,b\n1,2\n3,\"4\n5,6\n", 1000);
        assert_eq!(found[..2], ["1: a|b", "2: 1|2"]);
        assert!(
            found[2].starts_with("t:3: found a double quote that opens a field"),
            "{found:?}"
        );
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_record_has_a_largest_size() {
        let found = read_all("a,\"b\nccccccccccccccc\n\"\nd,e\n", 12);
        assert!(
            found[0].starts_with("t:1: found a record of more than 12 bytes"),
            "{found:?}"
        );
    }

    #[test]
    fn long_fields_come_through_whole() {
        let long = "x y".repeat(100_000);
        let found = read_all(&format!("a,\"{long}\"\nb,c\n"), 1 << 20);
        assert_eq!(found, [format!("1: a|{long}"), "2: b|c".to_owned()]);
    }
}
