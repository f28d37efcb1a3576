//! CSV and TSV: trained on, converted, predicted for, and answers in CSV.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::command::{Ran, elias, run, write};

/// Texts about fruit and vehicles, the columns in an order of their own.
fn rows(labels: &str, text: &str) -> String {
    let mut rows = format!("n,{labels},{text}\n");
    for colour in ["red", "green", "blue", "brown"] {
        for (words, label) in [("ripe apple, pear", "fruit"), ("fast car, bike", "vehicle")] {
            for n in 0..8 {
                rows.push_str(&format!("{n},{label};{colour},\"{words} {colour}\"\n"));
            }
        }
    }
    rows
}

fn train(data: &str, out: &Path, more: &[&str]) -> Ran {
    let fast = [
        "train",
        data,
        "--out",
        out.to_str().unwrap(),
        "--set",
        "train.batch_size=4",
        "--set",
        "encoder.dim=16",
        "--set",
        "stage1.epochs=8",
        "--set",
        "stage2.epochs=8",
    ];
    run(fast.iter().chain(more))
}

/// A directory with a model trained on a CSV file.
fn trained() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.csv", &rows("tags", "text"));
    let model = dir.path().join("model");
    let ran = train(&data, &model, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("64 points, 6 labels"), "{}", ran.stderr);
    let model = model.to_str().unwrap().to_owned();
    (dir, model)
}

#[test]
fn answers_in_csv_are_read_back_and_measured_like_the_model() {
    let (dir, model) = trained();
    let data = dir.path().join("train.csv");
    let data = data.to_str().unwrap();
    let expected = run(["evaluate", &model, data, "--json"]);
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    let p_at_1 = |ran: &Ran| {
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        json["p@1"].as_f64().unwrap()
    };
    for format in ["csv", "tsv"] {
        let out = dir.path().join(format!("answers.{format}"));
        let out = out.to_str().unwrap();
        let ran = run([
            "predict",
            &model,
            data,
            "--output-format",
            format,
            "--out",
            out,
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answers = std::fs::read_to_string(out).unwrap();
        if format == "csv" {
            assert!(
                answers.starts_with("row,rank,label,score,probability\n0,1,fruit,"),
                "{answers:.200}"
            );
        }
        let ran = run(["evaluate", "--predictions", out, data, "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(p_at_1(&ran), p_at_1(&expected), "{format}");
    }
}

#[test]
fn columns_can_be_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "data.csv", &rows("topic", "body"));
    let model = dir.path().join("model");
    let ran = train(&data, &model, &[]);
    assert_eq!(ran.code, Some(1));
    let expected = "data.csv:1: found a header that has: n, topic, body, expected a column text";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(ran.stderr.contains("--text-column"), "{}", ran.stderr);

    let columns = ["--text-column", "body", "--label-column", "topic"];
    let separated = [&columns[..], &["--label-separator", ";"]].concat();
    let ran = train(&data, &model, &[&separated[..], &["--dry-run"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("6 labels"), "{}", ran.stderr);
    let ran = train(
        &data,
        &model,
        &[&columns[..], &["--dry-run", "--label-separator", "|"]].concat(),
    );
    assert!(ran.stderr.contains("8 labels"), "{}", ran.stderr);

    let out = dir.path().join("out.jsonl");
    let convert = [
        "convert",
        &data,
        "--to",
        "jsonl",
        "--out",
        out.to_str().unwrap(),
    ];
    let ran = run(convert.iter().chain(&columns));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let first = "{\"text\": \"ripe apple, pear red\", \"labels\": [\"fruit\", \"red\"]}\n";
    assert!(std::fs::read_to_string(&out).unwrap().starts_with(first));

    let ran = run(convert.iter().chain(&["--label-separator", "ab"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("one character"), "{}", ran.stderr);
}

#[test]
fn bad_inputs_stop_by_default_and_can_be_skipped() {
    let (dir, model) = trained();
    let input = dir.path().join("texts.jsonl");
    let lines = b"{\"id\": \"a\", \"text\": \"ripe apple\"}\n{\"id\": \"b\", \"text\n{\"id\": \"c\", \"text\": \"\xff\"}\n{\"id\": \"d\", \"text\": \"fast car\"}\n";
    std::fs::write(&input, lines).unwrap();
    let input = input.to_str().unwrap();
    let ran = run(["predict", &model, input, "-k", "1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    // Texts are answered as they arrive, so the first one may have been.
    let is_first = |line: &str| line.starts_with("{\"id\": \"a\", ");
    assert!(ran.stdout.lines().all(is_first), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("texts.jsonl:2: found"),
        "{}",
        ran.stderr
    );

    let ran = run(["predict", &model, input, "-k", "1", "--on-error", "skip"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answers: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(answers.len(), 2, "{}", ran.stdout);
    assert!(answers[0].starts_with("{\"id\": \"a\", \"labels\": [{\"label\": \"fruit\""));
    assert!(answers[1].starts_with("{\"id\": \"d\", \"labels\": [{\"label\": \"vehicle\""));
    assert!(
        ran.stderr.contains("skipped 2 inputs; the first: ")
            && ran.stderr.contains("texts.jsonl:2: found"),
        "{}",
        ran.stderr
    );
}

#[test]
fn skipped_inputs_leave_the_row_numbers_of_the_others() {
    let (_dir, model) = trained();
    let arguments = ["predict", &model, "-", "-k", "1", "--on-error", "skip"];
    for (format, expected) in [
        (
            "csv",
            [
                "row,rank,label,score,probability",
                "1,1,fruit,",
                "3,1,vehicle,",
            ]
            .as_slice(),
        ),
        ("tsv", &["1\tfruit\t", "3\tvehicle\t"]),
        ("sparse", &["4 6", "", "0:", "", "2:"]),
    ] {
        let mut child = elias(arguments.iter().chain(&["--output-format", format]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(b"\xff\nripe apple\n\xfe\nfast car\n")
            .unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let stdout = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{stdout}");
        for (line, start) in lines.iter().zip(expected) {
            assert!(line.starts_with(start), "{format}: {stdout}");
        }
        let stderr = String::from_utf8(output.stderr).unwrap();
        let first = "skipped 2 inputs; the first: standard input:1: found byte 0xff";
        assert!(stderr.contains(first), "{stderr}");
    }
}

#[test]
fn a_damaged_file_is_never_skipped() {
    let (dir, model) = trained();
    let input = write(dir.path(), "texts.csv", "words,other\na,b\n");
    let ran = run(["predict", &model, &input, "--on-error", "skip"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--text-column"), "{}", ran.stderr);
    let ran = run([
        "predict",
        &model,
        &input,
        "--text-column",
        "words",
        "-k",
        "1",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 1);
}
