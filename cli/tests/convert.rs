//! `elias convert` between formats and parts.

use std::fs;
use std::path::Path;

use elias::data::{Format, Part, ReadOptions};

use crate::command::{Ran, run, write};

const TRAIN: &str = "{\"id\": \"1\", \"text\": \"red apple tree\", \"labels\": [\"apple\", \"a tree\"]}\n{\"id\": \"2\", \"text\": \"red sky\", \"labels\": {\"sky\": 0.5}}\n";
const TEST: &str =
    "{\"id\": \"3\", \"text\": \"apple sky\", \"labels\": [\"new one\", \"apple\"]}\n";

fn convert(source: &str, to: &str, out: &Path) -> Ran {
    run([
        "convert",
        source,
        "--to",
        to,
        "--out",
        out.to_str().unwrap(),
    ])
}

fn label_names(path: &Path, part: Part) -> Vec<Vec<String>> {
    let options = ReadOptions {
        part,
        ..ReadOptions::default()
    };
    let (dataset, _) = options.read(path).unwrap();
    (0..dataset.n_points())
        .map(|point| dataset.label_names(point).map(str::to_owned).collect())
        .collect()
}

#[test]
fn both_parts_of_a_directory_are_converted_to_every_format() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "source/train.jsonl", TRAIN);
    write(dir.path(), "source/test.jsonl", TEST);
    let source = dir.path().join("source");
    for format in Format::ALL {
        let out = dir.path().join(format.name());
        let ran = convert(source.to_str().unwrap(), format.name(), &out);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), ""),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("wrote "), "{}", ran.stderr);
        assert_eq!(
            label_names(&out, Part::Train),
            [vec!["apple", "a tree"], vec!["sky"]],
            "{format}"
        );
        let test = label_names(&out, Part::Test);
        assert!(
            test[0].contains(&"new one".to_owned()) && test[0].len() == 2,
            "{format}: {test:?}"
        );
        let back = dir.path().join(format!("{format}-back"));
        let ran = convert(out.to_str().unwrap(), "jsonl", &back);
        if format.needs_features() {
            assert_eq!(ran.code, Some(1));
            assert!(
                ran.stderr
                    .contains("jsonl holds texts, the data set has sparse features only"),
                "{}",
                ran.stderr
            );
        } else {
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(label_names(&back, Part::Train)[1], ["sky"]);
        }
    }
}

#[test]
fn what_is_lost_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let source = write(dir.path(), "some.jsonl", TRAIN);
    let out = dir.path().join("some.ft.gz");
    let ran = convert(&source, "fasttext", &out);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("warning: train as fasttext: the ids of the points are left out"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("warning: train as fasttext: 1 relevances other than 1 become 1"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read(&out).unwrap()[..2], [0x1f, 0x8b]);
}

#[test]
fn an_existing_target_is_kept_unless_told_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let source = write(dir.path(), "some.jsonl", TRAIN);
    let out = write(dir.path(), "out.txt", "precious");
    let ran = convert(&source, "annif", Path::new(&out));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains("exists already: choose another path, or add --overwrite"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
    let ran = run([
        "convert",
        &source,
        "--to",
        "annif",
        "--out",
        &out,
        "--overwrite",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        fs::read_to_string(&out)
            .unwrap()
            .starts_with("red apple tree\t<")
    );
}

#[test]
fn an_unknown_format_is_misuse_and_a_failed_run_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let source = write(dir.path(), "bad.jsonl", "{\"text\": \"a\"}\nnot json\n");
    let ran = convert(&source, "parquet", &dir.path().join("x"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("fasttext"), "{}", ran.stderr);
    let ran = convert(&source, "annif", &dir.path().join("x"));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("bad.jsonl:2: found \"not json\""),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
