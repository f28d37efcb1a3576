//! Texts to predict for: one a line, or JSON Lines with `"text"` and perhaps `"id"`.
//!
//! It is JSON Lines if the first line that is not blank starts with `{`. In plain text every line counts, blank ones
//! too, so that answers stand in the order of the lines; in JSON Lines blank lines are skipped.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::data::formats::jsonl::{Uid, json_error};
use crate::data::io::missing::missing;
use crate::data::io::source::{Line, Lines};
use crate::error::Result;

/// A text to predict for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextInput {
    /// Its identifier, if the input names one.
    pub id: Option<String>,
    /// The text.
    pub text: String,
}

/// The texts of an input, one after the other; gzip and zstd are undone.
pub struct TextInputs<'a> {
    lines: Lines<'a>,
    is_json: Option<bool>,
    n_blank: usize,
    held: Option<TextInput>,
}

impl TextInputs<'static> {
    /// The texts of a file.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if it cannot be opened, [`crate::Error::BadFile`] if it is not there.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| missing(path, error))?;
        TextInputs::new(path, file)
    }
}

impl<'a> TextInputs<'a> {
    /// The texts of any reader, such as standard input; errors call it `name`.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if it cannot be read.
    pub fn new(name: impl Into<PathBuf>, reader: impl Read + 'a) -> Result<Self> {
        Ok(TextInputs {
            lines: Lines::new(name.into(), Box::new(reader))?,
            is_json: None,
            n_blank: 0,
            held: None,
        })
    }

    fn next_input(&mut self) -> Result<Option<TextInput>> {
        loop {
            if self.is_json.is_some() && 0 < self.n_blank {
                self.n_blank -= 1;
                return Ok(Some(TextInput::default()));
            }
            if let Some(held) = self.held.take() {
                return Ok(Some(held));
            }
            let Some(line) = self.lines.next()? else {
                // Blank lines alone are plain text.
                if self.is_json.is_none() && 0 < self.n_blank {
                    self.is_json = Some(false);
                    continue;
                }
                return Ok(None);
            };
            let is_blank = line.text.trim_ascii().is_empty();
            match self.is_json {
                Some(true) if is_blank => {}
                Some(true) => return parse(&line).map(Some),
                Some(false) => return Ok(Some(plain(&line))),
                None if is_blank => self.n_blank += 1,
                None if line.text.trim_ascii_start().starts_with('{') => {
                    self.is_json = Some(true);
                    self.n_blank = 0;
                    self.held = Some(parse(&line)?);
                }
                None => {
                    self.is_json = Some(false);
                    self.held = Some(plain(&line));
                }
            }
        }
    }
}

impl Iterator for TextInputs<'_> {
    type Item = Result<TextInput>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_input().transpose()
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Record<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(default)]
    id: Option<Uid>,
}

fn parse(line: &Line<'_>) -> Result<TextInput> {
    let record: Record<'_> = serde_json::from_str(line.text)
        .map_err(|error| json_error(line, &error, r#"{"text": "..."}, as in the first line"#))?;
    Ok(TextInput {
        id: record.id.map(|uid| uid.0),
        text: record.text.into_owned(),
    })
}

fn plain(line: &Line<'_>) -> TextInput {
    TextInput {
        id: None,
        text: line.text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &[(Option<&str>, &str)]) {
        let inputs: Result<Vec<TextInput>> = TextInputs::new("input", input.as_bytes())
            .unwrap()
            .collect();
        let inputs = inputs.unwrap();
        let found: Vec<(Option<&str>, &str)> = inputs
            .iter()
            .map(|input| (input.id.as_deref(), input.text.as_str()))
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
    fn a_line_that_is_no_json_after_json_lines_is_an_error() {
        let mut inputs = TextInputs::new("input", "{\"text\": \"a\"}\nb\n".as_bytes()).unwrap();
        assert!(inputs.next().unwrap().is_ok());
        let error = inputs.next().unwrap().unwrap_err().to_string();
        assert!(
            error.starts_with("input:2: found \"b\" which is no JSON"),
            "{error}"
        );
    }
}
