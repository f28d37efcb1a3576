//! Data sets in zip archives, and archives that are hostile.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use elias::LabelId;
use elias::data::{Part, ReadOptions};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

const TRAIN: &str = r#"{"uid": "a", "title": "red apple", "content": "sweet", "target_ind": [0], "target_rel": [1.0]}
{"uid": "b", "title": "green pear", "content": "soft", "target_ind": [1], "target_rel": [1.0]}
"#;
const LABELS: &str =
    "{\"uid\": \"x\", \"title\": \"apples\"}\n{\"uid\": \"y\", \"title\": \"pears\"}\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

/// An archive of these entries.
fn archive(directory: &Path, entries: &[(&str, Vec<u8>)], method: CompressionMethod) -> PathBuf {
    let path = directory.join("set.zip");
    let mut zip = ZipWriter::new(fs::File::create(&path).unwrap());
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    path
}

fn xc(folder: &str) -> Vec<(String, Vec<u8>)> {
    let file = |name: &str, bytes| (format!("{folder}{name}"), bytes);
    vec![
        file("trn.json.gz", gzip(TRAIN)),
        file("tst.json.gz", gzip(TRAIN)),
        file("lbl.json.gz", gzip(LABELS)),
        file("filter_labels_test.txt", b"0 1\n1 1\n".to_vec()),
    ]
}

fn borrowed(entries: &[(String, Vec<u8>)]) -> Vec<(&str, Vec<u8>)> {
    entries
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect()
}

#[track_caller]
fn problem(path: &Path) -> String {
    let error = ReadOptions::default().read(path).unwrap_err();
    assert!(error.to_string().contains("set.zip"), "{error}");
    error.to_string()
}

#[test]
fn an_archive_is_read_like_the_directory_in_it() {
    for folder in ["", "LF-Set/", "a/b/"] {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let directory = temporary();
            let mut entries = xc(folder);
            entries.push(("__MACOSX/._x".into(), b"x".to_vec()));
            let path = archive(directory.path(), &borrowed(&entries), method);
            assert_eq!(Part::find(&path).unwrap(), Part::ALL);
            let title = ["title".to_owned()];
            let options = ReadOptions {
                text_fields: &title,
                ..ReadOptions::default()
            };
            let (train, _) = options.read(&path).unwrap();
            let texts: Vec<&str> = train.texts().unwrap().iter().collect();
            assert_eq!(texts, ["red apple", "green pear"]);
            assert_eq!(
                train.label_set().names().iter().collect::<Vec<_>>(),
                ["apples", "pears"]
            );
            // The filter belongs to the test part.
            assert!(train.filter().is_empty());
            let (test, _) = ReadOptions {
                part: Part::Test,
                ..options
            }
            .read(&path)
            .unwrap();
            assert_eq!(test.filter(), [(0, LabelId(1)), (1, LabelId(1))]);
            assert_eq!(test.select(&[1]).filter(), [(0, LabelId(1))]);
        }
    }
}

#[test]
fn matrices_in_an_archive_are_read() {
    let directory = temporary();
    let data = elias::Dataset::from_texts([("red apple", ["a"]), ("green pear", ["b"])]);
    let matrix = directory.path().join("Y.trn.npz");
    data.labels().write_npz(&matrix).unwrap();
    let entries = [
        ("X/Y.trn.npz", fs::read(&matrix).unwrap()),
        ("X/X.trn.txt", b"red apple\ngreen pear\n".to_vec()),
        ("X/output-items.txt", b"a\nb\n".to_vec()),
    ];
    let path = archive(directory.path(), &entries, CompressionMethod::Deflated);
    let (read, _) = ReadOptions::default().read(&path).unwrap();
    assert_eq!(read.labels(), data.labels());
}

#[test]
fn names_that_lead_out_of_the_archive_are_no_files() {
    let directory = temporary();
    let entries = [
        ("../trn.json", TRAIN.into()),
        ("/tmp/trn.json", TRAIN.into()),
        ("a/../../train.jsonl", b"{}".to_vec()),
        ("readme", b"nothing".to_vec()),
    ];
    let path = archive(directory.path(), &entries, CompressionMethod::Stored);
    let found = problem(&path);
    assert!(found.contains("has no train part"), "{found}");
}

#[test]
fn an_archive_in_an_archive_is_not_followed() {
    let directory = temporary();
    let inner = archive(
        directory.path(),
        &borrowed(&xc("")),
        CompressionMethod::Stored,
    );
    let bytes = fs::read(inner).unwrap();
    let path = archive(
        directory.path(),
        &[("set.zip", bytes)],
        CompressionMethod::Stored,
    );
    assert!(
        problem(&path).contains("found set.zip"),
        "{}",
        problem(&path)
    );
}

#[test]
fn a_bomb_ends_in_an_error_and_not_in_memory() {
    let directory = temporary();
    // A kilobyte per megabyte: one endless line of 300 MB.
    let path = directory.path().join("set.zip");
    let mut zip = ZipWriter::new(fs::File::create(&path).unwrap());
    zip.start_file("train.jsonl", SimpleFileOptions::default())
        .unwrap();
    zip.write_all(b"{\"text\": \"a\", \"labels\": [\"b\"]}\n")
        .unwrap();
    let zeros = vec![b' '; 1 << 20];
    (0..300).for_each(|_| zip.write_all(&zeros).unwrap());
    zip.finish().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let found = problem(&path);
    assert!(found.contains("line 2") || found.contains(":2:"), "{found}");
}

#[test]
fn a_damaged_archive_says_so() {
    let directory = temporary();
    let jsonl = r#"{"text": "a b", "labels": ["x"]}"#;
    let entries = [("train.jsonl", jsonl.as_bytes().to_vec())];
    let path = archive(directory.path(), &entries, CompressionMethod::Stored);
    let whole = fs::read(&path).unwrap();
    // A letter of the text is another one: only the sum can tell.
    let at = whole.windows(3).position(|bytes| bytes == b"a b").unwrap();
    let mut other = whole.clone();
    other[at] = b'z';
    fs::write(&path, other).unwrap();
    assert!(problem(&path).contains("damaged"), "{}", problem(&path));
    // Cut off anywhere, it is an error and no panic.
    for length in [0, 10, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        problem(&path);
    }
}
