//! Lists of texts as files that people can read: one text a line.
//!
//! UTF-8; every text ends with a line feed. Inside a text a backslash is written `\\` and a line feed `\n`; nothing
//! else is escaped, and no other escape is valid.

use std::io::{self, Write};
use std::path::Path;

use memchr::memchr;

use crate::data::Texts;
use crate::error::{Error, Result};

/// Writes texts, one per line.
pub(crate) fn write(texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    for text in texts.iter() {
        let is_plain = !text.contains(['\\', '\n']);
        if is_plain {
            out.write_all(text.as_bytes())?;
        } else {
            let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
            out.write_all(escaped.as_bytes())?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads what [`write`] wrote.
///
/// # Errors
/// [`Error::BadFile`] for bytes that are not UTF-8 or not terminated, [`Error::Malformed`] for an unknown escape.
pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<Texts> {
    let bad = |problem: String| Error::BadFile {
        path: path.into(),
        problem,
    };
    let mut rest = std::str::from_utf8(bytes)
        .map_err(|error| bad(format!("it is not UTF-8 at byte {}", error.valid_up_to())))?;
    let mut texts = Texts::default();
    while let Some(end) = memchr(b'\n', rest.as_bytes()) {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if memchr(b'\\', line.as_bytes()).is_none() {
            texts.push(line);
        } else {
            let text = unescape(line).ok_or_else(|| Error::Malformed {
                path: path.into(),
                line: texts.len() + 1,
                found: "an unknown escape".into(),
                expected: r"only \\ and \n".into(),
            })?;
            texts.push(&text);
        }
    }
    if !rest.is_empty() {
        return Err(bad("its last line does not end".into()));
    }
    Ok(texts)
}

fn unescape(line: &str) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(match characters.next()? {
                '\\' => '\\',
                'n' => '\n',
                _ => return None,
            }),
            plain => text.push(plain),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_texts_survive(texts in prop::collection::vec(r"(.|[\\n\n\r]){0,6}", 0..8)) {
            let texts: Texts = texts.iter().collect();
            let mut bytes = Vec::new();
            write(&texts, &mut bytes).unwrap();
            prop_assert_eq!(read(Path::new("labels.txt"), &bytes).unwrap(), texts);
        }
    }

    #[test]
    fn what_was_not_written_here_is_refused() {
        let check = |bytes: &[u8], expected: &str| {
            let error = read(Path::new("labels.txt"), bytes).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(b"a\nb", "last line does not end");
        check(b"a\n\\t\n", "labels.txt:2: found an unknown escape");
        check(b"a\\\n", "unknown escape");
        check(b"ab\xff\n", "not UTF-8 at byte 2");
    }
}
