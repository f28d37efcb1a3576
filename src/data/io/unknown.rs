//! Errors for files in an unsupported format: what the file is, and how to convert it.
//!
//! Files of other programs are recognised by their first bytes. For any other file the error shows its first line
//! and an example of the nearest format, which is the one with the same separator: CSV for commas, TSV for tabs,
//! fastText for `__label__`, sparse text for `index:value`, JSON Lines for everything else.

use crate::data::Format;
use crate::data::formats::number::{parse_finite, parse_integer};
use crate::data::io::source::excerpt;

/// First bytes of files of other programs, their names, and how to convert them to a supported format.
const FOREIGN: [(&[u8], &str, &str); 10] = [
    (
        b"PAR1",
        "a Parquet file",
        "write it as JSON Lines, in Python: pandas.read_parquet(\"in.parquet\").to_json(\"out.jsonl\", orient=\"records\", lines=True)",
    ),
    (
        b"ARROW1",
        "an Arrow file",
        "write it as JSON Lines, in Python: pandas.read_feather(\"in.arrow\").to_json(\"out.jsonl\", orient=\"records\", lines=True)",
    ),
    (
        b"\xff\xfe",
        "UTF-16 text",
        "save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 in > out",
    ),
    (
        b"\xfe\xff",
        "UTF-16 text",
        "save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 in > out",
    ),
    (
        b"%PDF",
        "a PDF document",
        "extract the text, for example with pdftotext, and write one JSON object per document",
    ),
    (
        b"\xd0\xcf\x11\xe0",
        "an Office document of the old kind",
        "save the table as CSV in UTF-8",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "export the table as CSV, for example: sqlite3 -csv -header in.db 'select text, labels from data' > out.csv",
    ),
    (b"BZh", "a bzip2 archive", "unpack it with bunzip2"),
    (b"\xfd7zXZ\0", "an xz archive", "unpack it with unxz"),
    (b"\x89HDF", "an HDF5 file", "write it as JSON Lines or CSV"),
];

/// Whether a file starts like a SciPy matrix: a zip archive of NumPy arrays.
pub(in crate::data) fn is_npz(head: &[u8]) -> bool {
    first_zip_entry(head).is_some_and(|name| name.ends_with(b".npy"))
}

/// The error for a file of another program, with the remedy; `None` if it is not such a file.
pub(in crate::data) fn foreign_format(head: &[u8]) -> Option<String> {
    let problem =
        |what: &str, remedy: &str| Some(format!("is {what}, which is not read: {remedy}"));
    let known = FOREIGN.iter().find(|(magic, ..)| head.starts_with(magic));
    if let Some((_, what, remedy)) = known {
        return problem(what, remedy);
    }
    if let Some(name) = first_zip_entry(head) {
        let is_office = name.starts_with(b"[Content_Types].xml")
            || [&b"_rels/"[..], b"docProps/", b"xl/", b"word/", b"mimetype"]
                .iter()
                .any(|start| name.starts_with(start));
        return if is_office {
            problem(
                "a spreadsheet or another Office document",
                "save the table as CSV in UTF-8, with a header text,labels",
            )
        } else {
            problem(
                "a zip archive",
                "unpack it and name a file or directory in it",
            )
        };
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let array = text.trim_ascii_start().strip_prefix(b"[")?;
    let first_element = array.trim_ascii_start();
    if first_element.is_empty() || first_element.starts_with(b"{") {
        return problem(
            "a JSON array",
            "write one object per line, for example: jq -c '.[]' in.json > out.jsonl",
        );
    }
    None
}

/// The name of the first file of a zip archive.
fn first_zip_entry(head: &[u8]) -> Option<&[u8]> {
    let header = head.strip_prefix(b"PK\x03\x04")?;
    // The length of the name is at offset 26, the name at 30.
    let n_bytes = header.get(22..24).map_or(0, |length| {
        usize::from(u16::from_le_bytes([length[0], length[1]]))
    });
    let name = header.get(26..).unwrap_or_default();
    Some(&name[..n_bytes.min(name.len())])
}

/// The error for a text in no known format, with an example of the nearest one.
pub(in crate::data) fn unknown_format(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim_ascii().is_empty());
    let Some(first) = lines.next() else {
        return "has only blank lines, expected at least one point".into();
    };
    let nearest = nearest_format(first);
    let is_plain = nearest == Format::Jsonl && !first.contains('\0');
    let what = if is_plain {
        ", which is plain text without labels"
    } else {
        ""
    };
    format!(
        "is in none of the known formats: the first line is {}{what}; the nearest format is {nearest}, for example {}; if you know the format, name it with --format ({})",
        excerpt(first),
        example(nearest),
        Format::ALL.map(Format::name).join(", ")
    )
}

fn nearest_format(line: &str) -> Format {
    if line.contains('\t') {
        Format::Tsv
    } else if line.contains("__label__") {
        Format::FastText
    } else if line.split_ascii_whitespace().any(is_pair) {
        Format::Xc
    } else if line.contains([',', ';']) {
        Format::Csv
    } else {
        Format::Jsonl
    }
}

fn is_pair(word: &str) -> bool {
    word.split_once(':').is_some_and(|(index, value)| {
        parse_integer(index.as_bytes()).is_some() && parse_finite(value).is_some()
    })
}

/// The first lines of a file in one of the formats that [`nearest_format`] names.
fn example(format: Format) -> &'static str {
    match format {
        Format::Tsv => "the header text<TAB>labels, then a text<TAB>one label;another",
        Format::Csv => "the header text,labels, then \"a text, quoted\",one label;another",
        Format::FastText => "__label__one __label__another a text",
        Format::Xc => "the header `N D L`, then 0,2 5:0.5 7:1",
        _ => r#"{"text": "...", "labels": ["one label", "another"]}"#,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_named_with_the_way_out() {
        let check = |head: &[u8], what: &str, remedy: &str| {
            let problem = foreign_format(head).unwrap();
            assert!(problem.contains(what), "{problem}");
            assert!(problem.contains(remedy), "{problem}");
        };
        check(b"PAR1\x15\x04", "a Parquet file", "read_parquet");
        check(b"\xff\xfet\0e\0", "UTF-16", "iconv");
        check(b"%PDF-1.7\n", "a PDF document", "pdftotext");
        check(b"\n [\n {\"text\": \"a\"}]", "a JSON array", "jq -c '.[]'");
        check(b"[", "a JSON array", "one object per line");
        let zip = |name: &str| {
            let mut head = b"PK\x03\x04".to_vec();
            head.extend([0; 22]);
            head.extend((name.len() as u16).to_le_bytes());
            head.extend([0; 2]);
            head.extend(name.as_bytes());
            head
        };
        check(&zip("[Content_Types].xml"), "a spreadsheet", "CSV");
        check(&zip("data.csv"), "a zip archive", "unpack");
        check(b"PK\x03\x04", "a zip archive", "unpack");
        assert!(is_npz(&zip("indices.npy")));
        assert!(!is_npz(&zip("indices.txt")));
        for ours in [
            "{\"text\": 1}",
            "[citation needed] text",
            "PK",
            "text,labels",
        ] {
            assert_eq!(foreign_format(ours.as_bytes()), None, "{ours}");
        }
    }

    #[test]
    fn the_nearest_format_has_the_same_separator() {
        let check = |line: &str, expected: Format| {
            assert_eq!(nearest_format(line), expected, "{line}");
            let problem = unknown_format(line);
            assert!(problem.contains(&excerpt(line)), "{problem}");
            assert!(problem.contains(example(expected)), "{problem}");
        };
        check("some text\ttopic", Format::Tsv);
        check("some text, topic", Format::Csv);
        check("some text __label__a", Format::FastText);
        check("1 3:0.5 7:1", Format::Xc);
        check("only words", Format::Jsonl);
        let problem = unknown_format("only words\n");
        assert!(problem.contains("plain text without labels"), "{problem}");
    }
}
