//! Recognition of a file's format: by its first lines, and only where these do not show it by the ending of its name.

use std::path::Path;

use crate::data::formats::number::parse_integer;
use crate::data::formats::sparse_text::parse_header;
use crate::data::formats::table;
use crate::data::io::source::Source;
use crate::data::io::unknown::{foreign_format, is_npz, unknown_format};
use crate::data::{Columns, Format};
use crate::error::{Error, Result};

/// Bytes of a file that recognition looks at.
const HEAD_BYTES: usize = 64 * 1024;

/// The format of a file.
///
/// # Errors
/// [`Error::BadFile`] if the file is empty or in none of the formats.
pub(in crate::data) fn recognise(source: &Source<'_>, columns: &Columns<'_>) -> Result<Format> {
    let head = source.head(HEAD_BYTES)?;
    if is_npz(&head) {
        return Ok(Format::Pecos);
    }
    let bad_file = |problem: String| Error::BadFile {
        path: source.path().to_path_buf(),
        problem,
    };
    if let Some(problem) = foreign_format(&head) {
        return Err(bad_file(problem));
    }
    // Invalid UTF-8 is reported by the reader, which knows the offset.
    let text = String::from_utf8_lossy(without_byte_order_mark(&head));
    recognise_text(&text, columns)
        .or_else(|| by_ending(source.path()))
        .ok_or_else(|| bad_file(unknown_format(&text)))
}

/// The first line of a file that is not blank.
pub(in crate::data) fn first_line(source: &Source<'_>) -> Result<String> {
    let head = source.head(HEAD_BYTES)?;
    let text = String::from_utf8_lossy(without_byte_order_mark(&head));
    Ok(lines(&text).next().unwrap_or_default().to_owned())
}

fn without_byte_order_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_ascii().is_empty())
}

/// The format of a file named `.csv` or `.tsv`, compressed or not.
pub(in crate::data) fn by_ending(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let gunzipped = name.strip_suffix(".gz").unwrap_or(&name);
    let plain = gunzipped.strip_suffix(".zst").unwrap_or(gunzipped);
    [Format::Csv, Format::Tsv]
        .into_iter()
        .find(|format| plain.ends_with(&format!(".{format}")))
}

fn recognise_text(text: &str, columns: &Columns<'_>) -> Option<Format> {
    let first = lines(text).next()?;
    if first.trim_ascii_start().starts_with('{') {
        return Some(if first.contains("\"target_ind\"") {
            Format::XcJson
        } else {
            Format::Jsonl
        });
    }
    if let Some(format) = table::recognise(first, columns) {
        return Some(format);
    }
    if columns.are_given() {
        // Named columns mean a table; its reader reports what the header lacks.
        let is_tsv = first.contains('\t');
        return Some(if is_tsv { Format::Tsv } else { Format::Csv });
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
        let has_labels = lines(text).any(|line| line.starts_with("__label__"));
        return has_labels.then_some(Format::FastText);
    }
    recognise_tabs(text)
}

/// The format of lines with tabs; lines without one are left to the reader, which knows their number.
fn recognise_tabs(text: &str) -> Option<Format> {
    let tabbed = || lines(text).filter(|line| line.contains('\t'));
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
        let found = recognise_text(text, &Columns::default());
        assert_eq!(found, expected, "{text}");
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
        check("text,labels\na,b\n", Some(Format::Csv));
        check("id\tlabels\ttext\n1\ta\tb\n", Some(Format::Tsv));
        check("a text\n", None);
        check("two\tcolumns\n", None);
        check("", None);
    }

    #[test]
    fn the_ending_counts_where_the_content_shows_nothing() {
        let check = |name: &str, content: &str, expected: Format| {
            let source = Source::bytes(name, content.as_bytes());
            let found = recognise(&source, &Columns::default()).unwrap();
            assert_eq!(found, expected, "{name}");
        };
        check("some.csv", "body,topic\n", Format::Csv);
        check("some.CSV.gz", "body,topic\n", Format::Csv);
        check("some.tsv", "body\ttopic\n", Format::Tsv);
        check("some.tsv", "body\t<http://a>\n", Format::Annif);
        check("some.csv", "{\"text\": \"a\"}\n", Format::Jsonl);
    }

    #[test]
    fn a_file_whose_columns_are_named_is_a_table() {
        let text = ["body".to_owned()];
        let columns = Columns {
            text: &text,
            ..Columns::default()
        };
        let found = recognise_text("1\tbody\ttopic\n", &columns);
        assert_eq!(found, Some(Format::Tsv));
        assert_eq!(recognise_text("other\n", &columns), Some(Format::Csv));
    }
}
