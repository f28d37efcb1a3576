//! Which format a file has, by its first lines.

use crate::data::Format;
use crate::data::formats::number::parse_integer;
use crate::data::formats::sparse_text::parse_header;
use crate::data::io::source::Source;
use crate::error::{Error, Result};

/// How much of a file recognition looks at.
const HEAD_BYTES: usize = 64 * 1024;

/// The format of a file.
///
/// # Errors
/// [`Error::BadFile`] if the file is empty or looks like none of the formats.
pub(in crate::data) fn recognise(source: &Source<'_>) -> Result<Format> {
    let head = source.head(HEAD_BYTES)?;
    if head.starts_with(b"PK\x03\x04") {
        return Ok(Format::Pecos);
    }
    // Invalid UTF-8 is reported by the reader, which knows the offset.
    let text = String::from_utf8_lossy(&head);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    recognise_text(text).ok_or_else(|| Error::BadFile {
        path: source.path().to_path_buf(),
        problem: format!(
            "its first lines look like none of the formats ({}); name the format if you know it",
            Format::ALL.map(Format::name).join(", ")
        ),
    })
}

fn recognise_text(text: &str) -> Option<Format> {
    let lines = || text.lines().filter(|line| !line.trim_ascii().is_empty());
    let first = lines().next()?;
    if first.trim_ascii_start().starts_with('{') {
        return Some(match first.contains("\"target_ind\"") {
            true => Format::XcJson,
            false => Format::Jsonl,
        });
    }
    if parse_header::<3>(first).is_some() {
        return Some(Format::Xc);
    }
    if parse_header::<2>(first).is_some() {
        return Some(Format::XcSplit);
    }
    if first.starts_with("__label__") {
        return Some(Format::FastText);
    }
    if !first.contains('\t') {
        let has_labels = lines().any(|line| line.starts_with("__label__"));
        return has_labels.then_some(Format::FastText);
    }
    // Lines without a tab are left to the reader, which tells their number.
    let tabbed = || lines().filter(|line| line.contains('\t'));
    let fewest_tabs = tabbed()
        .map(|line| memchr::memchr_iter(b'\t', line.as_bytes()).count())
        .min()?;
    match fewest_tabs {
        1 if tabbed().any(ends_with_uri) => Some(Format::Annif),
        1 if tabbed().all(starts_with_numbers) => Some(Format::Text2Text),
        1 => None,
        _ => Some(Format::LibMultiLabel),
    }
}

fn ends_with_uri(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(_, labels)| {
        labels.starts_with('<') && labels.trim_ascii_end().ends_with('>')
    })
}

fn starts_with_numbers(line: &str) -> bool {
    let labels = line.split('\t').next().unwrap_or_default();
    labels.is_empty()
        || labels.split(',').all(|label| {
            let number = label.split("::").next().unwrap_or_default();
            parse_integer(number.trim_ascii().as_bytes()).is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Format>) {
        assert_eq!(recognise_text(text), expected, "{text}");
    }

    #[test]
    fn formats_are_recognised_by_their_first_lines() {
        check("\n{\"text\": \"a\"}\n", Some(Format::Jsonl));
        check(
            "{\"uid\": \"1\", \"target_ind\": [1]}",
            Some(Format::XcJson),
        );
        check("1 2 3\n0 1:1\n", Some(Format::Xc));
        check("1 2\n1:1\n", Some(Format::XcSplit));
        check("no label\n__label__a b\n", Some(Format::FastText));
        check("0,2::0.3\ttext\n\tno label\n", Some(Format::Text2Text));
        check("a text\t\nb\t<http://a> <b>\n", Some(Format::Annif));
        check("1\ta b\ttext\n", Some(Format::LibMultiLabel));
        check("a text\n", None);
        check("two\tcolumns\n", None);
        check("", None);
    }
}
