//! Texts to predict for: one per line, JSON Lines with `"text"` and perhaps `"id"`, or CSV or TSV with a header.
//!
//! JSON objects have their text in the keys that data sets have it in.
//!
//! It is JSON Lines if the first line that is not blank starts with `{`; a table if that line has at least two of the
//! usual column names, columns are named, or the file ends in `.csv` or `.tsv`; plain text otherwise. In plain text
//! every line counts, even a blank one, so that answers are in the order of the lines; elsewhere blank lines are
//! skipped.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::data::Format;
use crate::data::formats::columns::Columns;
use crate::data::formats::jsonl::json_error;
use crate::data::formats::table::{self, Table};
use crate::data::formats::text_fields::TextFields;
use crate::data::io::missing::missing;
use crate::data::io::recognise::by_ending;
use crate::data::io::source::{Line, Lines};
use crate::data::io::unknown::foreign_format;
use crate::error::{Error, Result};

/// Bytes that show a file of another program.
const HEAD_BYTES: usize = 512;

/// A text to predict for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextInput {
    /// Its identifier, if the input has one.
    pub id: Option<InputId>,
    /// The text.
    pub text: String,
    /// All columns, if the input is a table.
    pub columns: Option<InputColumns>,
}

/// The columns of a row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputColumns {
    /// Their names, the same for all rows.
    pub names: Arc<Vec<String>>,
    /// Their values.
    pub values: Vec<String>,
}

impl From<String> for TextInput {
    fn from(text: String) -> Self {
        TextInput {
            text,
            ..TextInput::default()
        }
    }
}

/// An identifier, as JSON has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputId {
    /// A string.
    Text(String),
    /// An integer.
    Number(i128),
}

impl fmt::Display for InputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputId::Text(text) => f.write_str(text),
            InputId::Number(number) => number.fmt(f),
        }
    }
}

impl From<&str> for InputId {
    fn from(text: &str) -> Self {
        InputId::Text(text.to_owned())
    }
}

/// The texts of an input, one after the other; gzip and zstd are decompressed.
///
/// After [`Error::Malformed`] the iterator continues with the next text; any other error is final.
pub struct TextInputs<'a> {
    source: InputSource<'a>,
    columns: Columns<'a>,
    /// Blank lines of plain text that are still to be returned.
    n_blank: usize,
}

enum InputSource<'a> {
    /// The first line that is not blank is still to be seen.
    Unknown(Lines<'a>),
    Plain(Lines<'a>),
    Json(Lines<'a>),
    Table(Box<Table<'a>>),
    /// After an error that is final.
    Ended,
}

impl TextInputs<'static> {
    /// The texts of a file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened, [`Error::BadFile`] if it does not exist or is of another program.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(|error| missing(path, error))?;
        let mut head = vec![0; HEAD_BYTES];
        // One read, since a pipe may have more only later.
        let read = file.read(&mut head);
        head.truncate(read.map_err(|error| Error::io(path, "read", error))?);
        if let Some(problem) = foreign_format(&head) {
            let path = path.into();
            return Err(Error::BadFile { path, problem });
        }
        TextInputs::new(path, Cursor::new(head).chain(file))
    }
}

impl<'a> TextInputs<'a> {
    /// The texts of any reader, such as standard input; errors refer to it as `name`.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read.
    pub fn new(name: impl Into<PathBuf>, reader: impl Read + 'a) -> Result<Self> {
        let lines = Lines::new(name.into(), Box::new(reader))?;
        Ok(TextInputs {
            source: InputSource::Unknown(lines),
            columns: Columns::default(),
            n_blank: 0,
        })
    }

    /// The same texts, read from these columns of a CSV or TSV file, or keys of JSON objects.
    pub fn with_columns(self, columns: Columns<'a>) -> Self {
        TextInputs { columns, ..self }
    }

    fn next_input(&mut self) -> Result<Option<TextInput>> {
        if let InputSource::Unknown(lines) = &mut self.source {
            let kind = recognise(lines, &self.columns, &mut self.n_blank)?;
            if let InputSource::Unknown(lines) =
                std::mem::replace(&mut self.source, InputSource::Ended)
            {
                self.source = kind.open(lines, &self.columns)?;
            }
        }
        if self.n_blank > 0 {
            self.n_blank -= 1;
            return Ok(Some(TextInput::default()));
        }
        match &mut self.source {
            InputSource::Plain(lines) => Ok(lines.next()?.map(|line| plain(&line))),
            InputSource::Json(lines) => next_object(lines, &self.columns),
            InputSource::Table(table) => next_row(table),
            InputSource::Unknown(_) | InputSource::Ended => Ok(None),
        }
    }
}

impl Iterator for TextInputs<'_> {
    type Item = Result<TextInput>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_input();
        let is_final = |error: &Error| !matches!(error, Error::Malformed { .. });
        if next.as_ref().is_err_and(is_final) {
            self.source = InputSource::Ended;
        }
        next.transpose()
    }
}

/// The kind of an input.
enum InputKind {
    Plain,
    Json,
    /// A table, with the separator of its fields.
    Table(u8),
}

impl InputKind {
    fn open<'a>(self, lines: Lines<'a>, columns: &Columns<'_>) -> Result<InputSource<'a>> {
        let delimiter = match self {
            InputKind::Plain => return Ok(InputSource::Plain(lines)),
            InputKind::Json => return Ok(InputSource::Json(lines)),
            InputKind::Table(delimiter) => delimiter,
        };
        let table = Table::open(lines, delimiter, columns).map_err(|error| match error {
            // Without its header no row of a table can be read, so this is final.
            Error::Malformed {
                path,
                line,
                found,
                expected,
            } => Error::BadFile {
                path,
                problem: format!("line {line}: found {found}, expected {expected}"),
            },
            error => error,
        });
        table.map(|table| InputSource::Table(Box::new(table)))
    }
}

/// Looks at the first line that is not blank and puts it back; counts the blank lines of plain text before it.
fn recognise(
    lines: &mut Lines<'_>,
    columns: &Columns<'_>,
    n_blank: &mut usize,
) -> Result<InputKind> {
    let ending = by_ending(lines.path());
    let kind = loop {
        let Some(line) = lines.next()? else {
            // Blank lines alone are plain text.
            return Ok(InputKind::Plain);
        };
        if line.text.trim_ascii().is_empty() {
            *n_blank += 1;
            continue;
        }
        if line.text.trim_ascii_start().starts_with('{') {
            break InputKind::Json;
        }
        let by_name = columns.are_given().then(|| {
            let is_tsv = line.text.contains('\t');
            if is_tsv { Format::Tsv } else { Format::Csv }
        });
        let format = table::recognise_texts(line.text).or(ending).or(by_name);
        break match format {
            Some(format) => InputKind::Table(table::delimiter(format, line.text, columns)),
            None => InputKind::Plain,
        };
    };
    if !matches!(kind, InputKind::Plain) {
        *n_blank = 0;
    }
    lines.put_back();
    Ok(kind)
}

fn next_object(lines: &mut Lines<'_>, columns: &Columns<'_>) -> Result<Option<TextInput>> {
    while let Some(line) = lines.next()? {
        if !line.text.trim_ascii().is_empty() {
            return parse(&line, columns).map(Some);
        }
    }
    Ok(None)
}

fn next_row(table: &mut Table<'_>) -> Result<Option<TextInput>> {
    if !table.advance()? {
        return Ok(None);
    }
    let mut text = String::new();
    table.text(&mut text);
    let id = table.id().map(InputId::from);
    let columns = Some(table.columns());
    Ok(Some(TextInput { id, text, columns }))
}

/// Parses an object into a text.
struct InputSeed<'r, 'c>(&'r mut TextFields<'c>);

impl<'de> DeserializeSeed<'de> for InputSeed<'_, '_> {
    type Value = TextInput;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TextInput, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InputSeed<'_, '_> {
    type Value = TextInput;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextInput, A::Error> {
        let InputSeed(fields) = self;
        fields.start();
        let (mut id, mut has_id) = (None, false);
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if let Some(part_idx) = fields.find(&key) {
                fields.read(part_idx, &mut map)?;
            } else if key == "id" {
                if std::mem::replace(&mut has_id, true) {
                    return Err(de::Error::duplicate_field("id"));
                }
                id = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let text = fields.finish()?.to_owned();
        Ok(TextInput {
            id,
            ..TextInput::from(text)
        })
    }
}

impl<'de> Deserialize<'de> for InputId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = InputId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<InputId, E> {
        Ok(text.into())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<InputId, E> {
        Ok(InputId::Number(number.into()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<InputId, E> {
        Ok(InputId::Number(number.into()))
    }
}

fn parse(line: &Line<'_>, columns: &Columns<'_>) -> Result<TextInput> {
    let mut fields = TextFields::new(columns.text);
    let mut json = serde_json::Deserializer::from_str(line.text);
    let input = InputSeed(&mut fields).deserialize(&mut json);
    input
        .and_then(|input| json.end().map(|()| input))
        .map_err(|error| json_error(line, &error, r#"{"text": "..."}, as in the first line"#))
}

fn plain(line: &Line<'_>) -> TextInput {
    TextInput::from(line.text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &[(Option<&str>, &str)]) {
        let inputs: Vec<TextInput> = TextInputs::new("input", input.as_bytes())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let ids: Vec<Option<String>> = inputs
            .iter()
            .map(|input| input.id.as_ref().map(InputId::to_string))
            .collect();
        let found: Vec<(Option<&str>, &str)> = inputs
            .iter()
            .zip(&ids)
            .map(|(input, id)| (id.as_deref(), input.text.as_str()))
            .collect();
        assert_eq!(found, expected, "{input:?}");
    }

    #[test]
    fn plain_lines_count_even_when_blank() {
        check("", &[]);
        check("\n\n", &[(None, ""), (None, "")]);
        check(
            "\na\r\n\nb",
            &[(None, ""), (None, "a"), (None, ""), (None, "b")],
        );
    }

    #[test]
    fn json_lines_hold_text_and_id() {
        check(
            "\n{\"text\": \"a\\n\", \"id\": 3, \"labels\": [1]}\n\n{\"id\": \"x\", \"text\": \"b\"}\n",
            &[(Some("3"), "a\n"), (Some("x"), "b")],
        );
    }

    #[test]
    fn tables_hold_text_and_id() {
        check(
            "\nid,title,abstract\n1,a,\"b\nc\"\n\nx,,d\n",
            &[(Some("1"), "a b\nc"), (Some("x"), "d")],
        );
        check(
            "text, the first\nb\n",
            &[(None, "text, the first"), (None, "b")],
        );
        let text = ["body".to_owned()];
        let columns = Columns {
            text: &text,
            ..Columns::default()
        };
        let inputs = TextInputs::new("input", "x\tbody\n1\ta b\n".as_bytes()).unwrap();
        let texts: Vec<_> = inputs.with_columns(columns).map(Result::unwrap).collect();
        assert_eq!(texts[0].text, "a b");
        let text = ["title".to_owned(), "body".to_owned()];
        let columns = Columns {
            text: &text,
            ..Columns::default()
        };
        let lines =
            "{\"body\": \"b\", \"id\": 7, \"text\": \"c\", \"title\": \"a\"}\n{\"text\": \"c\"}\n";
        let mut inputs = TextInputs::new("input", lines.as_bytes())
            .unwrap()
            .with_columns(columns);
        let first = inputs.next().unwrap().unwrap();
        assert_eq!(
            (first.text.as_str(), first.id),
            ("a b", Some(InputId::Number(7)))
        );
        let error = inputs.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("no key \"title\" or \"body\""), "{error}");
        let mut inputs = TextInputs::new("input.csv", "some text\nb\n".as_bytes()).unwrap();
        let error = inputs.next().unwrap().unwrap_err();
        let needed = Some(crate::error::ReadOption::TextColumn);
        assert_eq!(error.needed_option(), needed, "{error}");
        assert!(inputs.next().is_none());
    }

    #[test]
    fn texts_after_a_bad_one_are_still_read() {
        let check = |input: &[u8], expected: &[&str]| {
            let inputs = TextInputs::new("input", input).unwrap();
            let found: Vec<String> = inputs
                .map(|input| match input {
                    Ok(input) => input.text,
                    Err(Error::Malformed { line, .. }) => format!("error at {line}"),
                    Err(error) => panic!("{error}"),
                })
                .collect();
            assert_eq!(found, expected);
        };
        check(
            b"{\"text\": \"a\"}\n{\n{\"text\": \"\xff\"}\n{\"text\": \"b\"}\n",
            &["a", "error at 2", "error at 3", "b"],
        );
        check(b"\xff\na\n\xff", &["error at 1", "a", "error at 3"]);
        check(
            b"id,text\n1,a\n2\n3,\xff\n4,b\n",
            &["a", "error at 3", "error at 4", "b"],
        );
        let gzip_without_its_end = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0xab];
        let mut inputs = TextInputs::new("input", &gzip_without_its_end[..]).unwrap();
        assert!(matches!(inputs.next(), Some(Err(Error::BadFile { .. }))));
        assert!(inputs.next().is_none());
    }

    #[test]
    fn a_line_that_is_no_json_after_json_lines_is_an_error() {
        let mut inputs = TextInputs::new("input", "{\"text\": \"a\"}\nb\n".as_bytes()).unwrap();
        assert!(inputs.next().unwrap().is_ok());
        let error = inputs.next().unwrap().unwrap_err().to_string();
        assert!(
            error.starts_with("input:2: found \"b\" which is not valid JSON"),
            "{error}"
        );
    }
}
