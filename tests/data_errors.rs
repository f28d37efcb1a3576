//! Bad data: one hostile input per error.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use elias::data::{self, Format, Part, PredictionShape, ReadOptions};
use tempfile::TempDir;

fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    (directory, path)
}

fn error_of(path: &Path, format: Option<Format>) -> String {
    let options = ReadOptions {
        format,
        ..ReadOptions::default()
    };
    options.read(path).unwrap_err().to_string()
}

/// Checks that the error for a file of this content ends with the expected words, after the path.
fn check(content: impl AsRef<[u8]>, expected: &str) {
    let (_directory, path) = file("some.txt", content);
    let error = error_of(&path, None);
    assert_eq!(error, format!("{}{expected}", path.display()));
}

/// Checks that the error for a directory of these files contains the expected words.
fn check_directory(files: &[(&str, &str)], expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let error = error_of(directory.path(), None);
    assert!(error.contains(expected), "{error}");
}

#[test]
fn headers_that_do_not_fit_are_reported() {
    check(
        "2 3 4\n1 0:1\n",
        ": ends after 1 rows (line 2), expected 2 as the header declares",
    );
    check(
        "1 3 4\n1 0:1\n\n2 1:1\n",
        ":4: found row 2, expected the end of the file: the header declares 1 rows",
    );
    check(
        "1 3 4\n4 0:1\n",
        ":2: label 4 is out of range, the header declares 4 labels (ids start at 0)",
    );
    check(
        "1 3 4\n1 3:1\n",
        ":2: found column 3, expected one below 3, which the header declares (columns start at 0)",
    );
    check(
        "1 3 99999999999\n1 0:1\n",
        ": the header declares 99999999999 labels, expected at most 4294967295",
    );
    check(
        "1 3 4000000000\n1 0:1\n",
        ": declares 4000000000 labels for 2 points and label entries, expected a plausible number: correct the header or give the label names",
    );
    // A row count cannot be believed either; nothing is allocated for it.
    check(
        "1000000000000000 3 4\n1 0:1\n",
        ": ends after 1 rows (line 2), expected 1000000000000000 as the header declares",
    );
}

#[test]
fn numbers_that_are_none_are_reported() {
    check(
        "1 3 4\n1 0:nan\n",
        ":2: found value \"nan\", expected a finite number",
    );
    check(
        "1 3 4\n1 0:1e99\n",
        ":2: found value \"1e99\", expected a finite number",
    );
    check(
        "1 3 4\n1 0:1 2\n",
        ":2: found \"2\", expected index:value, the index counted from 0",
    );
    check(
        "1 3 4\na,b 0:1\n",
        ":2: found \"a\" as a label, expected label numbers separated by commas, then a space, then index:value",
    );
    check(
        "0::inf\ttext\n",
        ":1: found \"0::inf\" as a label, expected a label number, or number::relevance with a finite relevance of at least 0",
    );
    let shape = r#"{"text": "...", "labels": ["name", ...]}"#;
    check(
        r#"{"text": "a", "labels": {"b": -1}}"#,
        &format!(
            ":1: found relevance -1, which is not a finite number of at least 0, expected {shape}"
        ),
    );
    check(
        r#"{"text": "a", "labels": {"b": 1e39}}"#,
        &format!(
            ":1: found \"{{\\\"text\\\": \\\"a\\\", \\\"labels\\\": {{\\\"b\\\": 1e39}}}}\" which is not valid JSON: \
             number out of range at column 34, expected {shape}"
        ),
    );
}

#[test]
fn json_that_is_not_ours_is_reported() {
    let shape = r#"expected {"text": "...", "labels": ["name", ...]}"#;
    check(
        "{\"labels\": []}\n",
        &format!(":1: found no key \"text\", {shape}"),
    );
    check(
        "{\"text\": \"a\"}\nb\n",
        &format!(":2: found \"b\" which is not valid JSON: expected value at column 1, {shape}"),
    );
    check(
        "{\"text\": 1}",
        &format!(":1: found the number 1 instead of a string, {shape}"),
    );
    check(
        "{\"text\": \"a\", \"text\": \"b\"}",
        &format!(":1: found key \"text\" twice, {shape}"),
    );
    check(
        "{\"text\": \"a\", \"labels\": 7}",
        &format!(
            ":1: found the number 7 instead of a list of label names, an object of label names and relevances, or a string, {shape}"
        ),
    );
}

#[test]
fn bytes_that_are_no_text_are_reported_with_their_offset() {
    check(
        b"{\"text\": \"a\"}\r\n{\"text\": \"\xff\"}\n",
        ":2: found byte 0xff at byte offset 25 of the file, expected UTF-8 text; if it was saved as Latin-1 or by Excel, convert it: iconv -f WINDOWS-1252 -t UTF-8 in > out",
    );
    check(
        b"\xef\xbb\xbf__label__a \xc3\n",
        ":1: found byte 0xc3 at byte offset 14 of the file, expected UTF-8 text; if it was saved as Latin-1 or by Excel, convert it: iconv -f WINDOWS-1252 -t UTF-8 in > out",
    );
}

#[test]
fn a_header_that_declares_no_points_is_reported() {
    // Found by fuzzing: it was read as a data set that no other format can hold.
    for header in ["0 0 1\n", "0  0 \r\r1\r \n"] {
        let error = ReadOptions::default().read_bytes("data", header.as_bytes());
        let error = error.err().unwrap().to_string();
        assert_eq!(error, "data: has no points, expected at least one");
    }
}

#[test]
fn empty_and_unknown_files_are_reported() {
    check("", ": is empty, expected at least one line");
    check(
        "only words\n",
        ": is in none of the known formats: the first line is \"only words\", which is plain text without labels; the nearest format is jsonl, for example {\"text\": \"...\", \"labels\": [\"one label\", \"another\"]}",
    );
    let start =
        |words: &str| format!(": is in none of the known formats: the first line is {words}");
    for (content, expected) in [
        (
            "some text\ttopic\n",
            start(
                "\"some text\\ttopic\"; the nearest format is tsv, for example the header text<TAB>labels",
            ),
        ),
        (
            "some text,topic\n",
            start(
                "\"some text,topic\"; the nearest format is csv, for example the header text,labels",
            ),
        ),
        (
            "[\n{\"text\": \"a\"}\n]\n",
            ": is a JSON array, which is not read: write one object per line".into(),
        ),
        (
            "PAR1\u{15}",
            ": is a Parquet file, which is not read: write it as JSON Lines".into(),
        ),
        (
            "%PDF-1.7\n",
            ": is a PDF document, which is not read: extract the text".into(),
        ),
        (
            "PK\u{3}\u{4}",
            ": is a zip archive, which is not read: unpack it".into(),
        ),
    ] {
        let (_directory, path) = file("some.dat", content);
        let error = error_of(&path, None);
        let expected = format!("{}{expected}", path.display());
        assert!(error.starts_with(&expected), "{error}");
    }
    let (_directory, path) = file("some.csv", b"\xff\xfet\0e\0");
    let error = error_of(&path, None);
    assert!(
        error.contains("is UTF-16 text, which is not read: save it as UTF-8"),
        "{error}"
    );
    let (_directory, path) = file("blank.jsonl", "\n\n");
    let error = error_of(&path, Some(Format::Jsonl));
    assert!(
        error.ends_with("has only blank lines, expected at least one point"),
        "{error}"
    );
    let (_directory, path) = file("words.txt", "only words\n");
    for (format, expected) in [
        (
            Format::Text2Text,
            "found \"only words\" without a tab, expected id1,id2<TAB>text",
        ),
        (
            Format::LibMultiLabel,
            "found \"only words\" without a tab, expected id<TAB>label label<TAB>text",
        ),
        (
            Format::Annif,
            "found \"only words\" without a tab, expected text<TAB><uri> <uri>",
        ),
        (
            Format::Xc,
            "found \"only words\", expected the header `N D L` of 3 counts",
        ),
        (
            Format::XcSplit,
            "the files that belong to it are not beside it; expected trn_X_Xf.txt and trn_X_Y.txt",
        ),
        (
            Format::Pecos,
            "the files that belong to it are not beside it; expected X.trn.npz",
        ),
    ] {
        let error = error_of(&path, Some(format));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn mixed_formats_are_reported() {
    check(
        "1\ta\ttext\n2\tb\ttext\n3 c text\n",
        ":3: found \"3 c text\" without a tab, expected id<TAB>label label<TAB>text",
    );
    check(
        "a text\t<x>\n__label__y a text\n",
        ":2: found \"__label__y a text\" without a tab, expected text<TAB><uri> <uri>",
    );
    check(
        "1 3 4\n{\"text\": \"a\"}\n",
        ":2: found \"{\\\"text\\\":\", expected index:value, the index counted from 0",
    );
    check_directory(
        &[
            ("train.jsonl", "{\"text\": \"a\"}\n"),
            ("train_texts.txt", "a\n"),
            ("train_labels.txt", "x\n"),
        ],
        "has its train part in several formats: raw, jsonl",
    );
}

#[test]
fn a_truncated_gzip_or_zstd_file_is_reported() {
    let text: String = (0..5000)
        .map(|i| format!("{{\"text\": \"{}\"}}\n", i * i))
        .collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, whole) in [("gzip", gzip), ("zstd", zstd)] {
        let (_directory, path) = file("train.jsonl", &whole);
        assert_eq!(ReadOptions::default().read(&path).unwrap().1.n_points, 5000);
        let (_directory, path) = file("train.jsonl", &whole[..whole.len() - 3]);
        let error = error_of(&path, None);
        assert!(
            error.contains(&format!(": the {name} data ends early, after ")),
            "{error}"
        );
        assert!(
            error.contains("the file is truncated, copy it again"),
            "{error}"
        );
        let mut damaged = whole.clone();
        for byte in &mut damaged[whole.len() / 2..][..64] {
            *byte ^= 0x55;
        }
        let (_directory, path) = file("train.jsonl", &damaged);
        let error = error_of(&path, None);
        assert!(error.contains(&format!(": the {name} data ")), "{error}");
    }
}

#[test]
fn files_that_contradict_each_other_are_reported() {
    check_directory(
        &[("train_texts.txt", "a\nb\n"), ("train_labels.txt", "x\n")],
        "train_labels.txt: found 2 texts for 1 label rows, expected parts that fit",
    );
    check_directory(
        &[
            ("train_texts.txt", "a\n"),
            ("train_labels.txt", "7\n"),
            ("labels.txt", "x\ny\n"),
        ],
        "train_labels.txt:1: label 7 is out of range, the header declares 2 labels",
    );
    check_directory(
        &[
            ("train_texts.txt", "a\n"),
            ("train_labels.txt", "z\n"),
            ("labels.txt", "x\ny\n"),
        ],
        "train_labels.txt:1: found label \"z\", expected names, or else numbers, of the 2 labels",
    );
    check_directory(
        &[("train.txt", "1 3 4\n1 0:1\n"), ("labels.txt", "x\ny\n")],
        "labels.txt: holds 2 label names, expected 4 as in ",
    );
    check_directory(
        &[
            ("trn_X_Xf.txt", "1 3\n0:1\n"),
            ("trn_X_Y.txt", "1 3\n0:-1\n"),
        ],
        "trn_X_Y.txt:2: found relevance -1 of label 0, expected relevances of at least 0",
    );
    check_directory(
        &[
            ("trn.json", "{\"title\": \"a\", \"target_ind\": [1]}\n"),
            ("lbl.json", "{\"title\": \"x\"}\n"),
        ],
        "trn.json:1: label 1 is out of range, the header declares 1 labels",
    );
    check_directory(
        &[
            (
                "trn.json",
                "{\"title\": \"a\", \"target_ind\": [0], \"target_rel\": []}\n",
            ),
            ("lbl.json", "{}\n{\n"),
        ],
        "lbl.json:2: found \"{\" which is not valid JSON",
    );
    check_directory(
        &[
            ("X.trn.txt", "a\n"),
            ("Y.trn.npz", "PK\u{3}\u{4} and no more"),
        ],
        "Y.trn.npz: is not a SciPy npz file",
    );
}

#[test]
fn a_directory_without_the_part_and_a_missing_file_are_reported() {
    check_directory(
        &[("test.jsonl", "{\"text\": \"a\"}\n"), ("notes.md", "")],
        "has no train part: found notes.md, test.jsonl, expected train.jsonl, train.csv, train.tsv, train.txt,",
    );
    let (directory, path) = file("reviews.jsonl", "{\"text\": \"a\"}\n");
    let error = error_of(&directory.path().join("review.jsonl"), None);
    assert!(
        error.contains(&format!("did you mean {}?", path.display())),
        "{error}"
    );
    let error = error_of(&directory.path().join("quite/else"), None);
    assert!(error.contains("there is no directory"), "{error}");
    assert_eq!(
        Part::find(directory.path())
            .unwrap_err()
            .to_string()
            .matches("has no train part")
            .count(),
        1
    );
}

#[test]
fn predictions_and_filters_that_do_not_fit_are_reported() {
    let labels: data::LabelSet = ["x", "y"].into_iter().collect();
    let shape = PredictionShape {
        n_points: 2,
        label_set: &labels,
        n_trained: labels.len(),
        ids: None,
    };
    let check = |content: &str, expected: &str| {
        let (_directory, path) = file("predictions", content);
        let error = shape.read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("", "is empty");
    check(
        "1 2\n0:1\n",
        "holds predictions for 1 points, expected 2 as in the data",
    );
    check(
        "2 3\n0:1\n1:1\n",
        "holds scores for 3 labels, expected 2 as in the data",
    );
    check(
        "2 2\n0:1\n1:inf\n",
        "predictions:3: found value \"inf\", expected a finite number",
    );
    check(
        "{\"labels\": [\"x\"]}\n",
        "predictions:1: found \"x\" instead of an object with \"label\" and \"score\"",
    );
    check("{\"labels\": {\"x\": 1e300}}\n", "number out of range");
    let (_directory, path) = file("filter.txt", "0 1\n2\n");
    let error = data::read_filter_pairs(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("filter.txt:2: found \"2\", expected `row label`, two numbers"),
        "{error}"
    );
}
