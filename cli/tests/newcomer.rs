//! The first minutes of a newcomer: texts as arguments, tables to read, messy labels, small files.

use std::path::Path;
use std::process::Command;

use crate::careful::{arguments, train, trained};
use crate::command::{run, write};

#[test]
fn a_text_can_be_an_argument() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let as_option = run(["predict", model, "--text", "ripe apple", "--text", "car"]);
    assert_eq!(as_option.code, Some(0), "{}", as_option.stderr);
    assert_eq!(as_option.stdout.lines().count(), 2);
    let in_place_of_a_file = run(["predict", model, "ripe apple"]);
    assert_eq!(in_place_of_a_file.code, Some(0));
    assert!(
        in_place_of_a_file.stderr.contains("answered as a text"),
        "{}",
        in_place_of_a_file.stderr
    );
    assert_eq!(
        in_place_of_a_file.stdout.lines().next(),
        as_option.stdout.lines().next()
    );
    // Neither is a spreadsheet.
    let name = "[Content_Types].xml";
    let zipped = ["PK\u{3}\u{4}", &"\0".repeat(22), "\u{13}\0\0\0", name].concat();
    let sheet = write(dir.path(), "texts.xlsx", &zipped);
    let ran = run(["predict", model, &sheet]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("save the table as CSV"),
        "{}",
        ran.stderr
    );
    // A path with a typing error is no text.
    for path in ["my texts.txt", "./my texts", "texts"] {
        let ran = run(["predict", model, path]);
        assert_eq!(ran.code, Some(1), "{path}: {}", ran.stdout);
    }
}

#[test]
fn a_table_is_for_reading_and_says_what_the_model_does_not_know() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let ran = run(["predict", model, "ripe apple", "--output-format", "table"]);
    assert!(
        ran.stdout.starts_with("ripe apple\n  fruit"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stderr.contains("knows"), "{}", ran.stderr);

    let texts = write(dir.path(), "texts.txt", "ripe apple\nqwertz\n");
    let ran = run(["predict", model, &texts]);
    let lines: Vec<serde_json::Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0].get("no_known_word"), None);
    assert_eq!(lines[1]["no_known_word"], true);
    assert!(
        ran.stderr.contains("1 text without a word"),
        "{}",
        ran.stderr
    );

    let out = dir.path().join("answers");
    let table = ["predict", model, &texts, "--output-format", "table", "-o"];
    let ran = run(table.iter().copied().chain([out.to_str().unwrap()]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

/// The output of a command line on a terminal of 80 columns; None on machines without `script`.
#[cfg(target_os = "linux")]
fn on_terminal<T: AsRef<str>>(arguments: impl IntoIterator<Item = T>) -> Option<String> {
    let words = arguments
        .into_iter()
        .map(|word| format!("'{}'", word.as_ref()));
    let words = words.collect::<Vec<_>>().join(" ");
    let line = format!("stty cols 80; '{}' {words}", env!("CARGO_BIN_EXE_elias"));
    let ran = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminal_gets_a_table_and_no_matrix() {
    let (_dir, _, model) = trained();
    let asked = ["predict", model.to_str().unwrap(), "--text", "ripe apple"];
    let Some(table) = on_terminal(asked) else {
        return;
    };
    assert!(table.contains("  fruit"), "{table}");
    let refused = on_terminal(asked.iter().chain(&["--output-format", "npz"])).unwrap();
    assert!(refused.contains("--out"), "{refused}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_progress_line_is_not_cut_within_a_number() {
    let (dir, data, _) = trained();
    let Some(shown) = on_terminal(arguments(&data, &dir.path().join("other"), &[])) else {
        return;
    };
    let drawn = shown.split(['\r', '\n']);
    let bars: Vec<&str> = drawn.filter(|line| line.contains(" left, ")).collect();
    assert!(bars.iter().any(|bar| bar.contains("loss")), "{shown}");
    for bar in bars {
        // A rate after the loss would be cut.
        let after_loss = bar.rsplit("loss ").next().unwrap_or_default();
        assert!(!bar.contains("loss") || !after_loss.contains(','), "{bar}");
    }
}

#[test]
fn answers_in_csv_can_begin_with_the_columns_of_the_input() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let table = "n,text,price\n7,ripe apple,=1+1\n8,\"fast, car\",2\n";
    let texts = write(dir.path(), "texts.csv", table);
    let with_input = ["--output-format", "csv", "--with-input", "-k", "1"];
    let answer = |input: &str| {
        let ran = run(["predict", model, input].iter().chain(&with_input));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let ran = answer(&texts);
    let lines: Vec<&str> = ran.lines().collect();
    assert_eq!(lines[0], "n,text,price,rank,label,score,probability");
    // A spreadsheet must not run what was in the input.
    assert!(
        lines[1].starts_with("7,ripe apple,'=1+1,1,"),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with("8,\"fast, car\",2,1,"), "{}", lines[2]);
    let plain = write(dir.path(), "texts.txt", "ripe apple\n");
    assert!(answer(&plain).starts_with("text,rank,label,score,probability\nripe apple,1,"));
    let json = write(
        dir.path(),
        "texts.jsonl",
        "{\"id\": 3, \"text\": \"car\"}\n",
    );
    assert!(answer(&json).starts_with("id,text,rank,label,score,probability\n3,car,1,"));
    let ran = run(["predict", model, &texts, "--with-input"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

/// Rows of a table, with the labels of row `n`.
fn table(n_rows: usize, labels: impl Fn(usize) -> String) -> String {
    let row = |n: usize| format!("\"ripe apple {n}\",\"{}\"\n", labels(n));
    let rows: String = (0..n_rows).map(row).collect();
    format!("text,labels\n{rows}")
}

fn dry_run(dir: &Path, table: &str, more: &[&str]) -> String {
    let data = write(dir, "data.csv", table);
    let ran = train(
        &data,
        &dir.join("no-model"),
        &[&["--dry-run"], more].concat(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn how_labels_were_read_is_shown_and_suspected() {
    let dir = tempfile::tempdir().unwrap();
    let split = table(12, |n| format!("Hoses; Fittings {}", n % 3));
    let shown = dry_run(dir.path(), &split, &[]);
    let expected = "labels: 12 of 12 fields split, for example \"Hoses\" and \"Fittings 0\"; \"Hoses\" and \"Fittings 1\"";
    assert!(shown.contains(expected), "{shown}");
    assert!(!shown.contains("warning"), "{shown}");
    let whole = dry_run(dir.path(), &split, &["--label-separator", "none"]);
    assert!(whole.contains("3 labels"), "{whole}");
    assert!(whole.contains("labels: 0 of 12 fields split"), "{whole}");

    let commas = table(12, |n| format!("red, n{n}, round"));
    let suspected = dry_run(dir.path(), &commas, &[]);
    assert!(suspected.contains("add --label-separator ,"), "{suspected}");
    let given = dry_run(dir.path(), &commas, &["--label-separator", ","]);
    assert!(given.contains("14 labels"), "{given}");
    assert!(!given.contains("warning"), "{given}");
}

#[test]
fn json_lines_are_as_lenient_as_tables() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"title": "ripe", "abstract": "apple", "subjects": "fruit; red "}"#,
        r#"{"title": "fast car", "abstract": null, "tags": [" vehicle ", null]}"#,
        r#"{"text": null, "labels": null, "id": null}"#,
        r#"{"text": "green pear", "labels": "['fruit', 'green']"}"#,
    ];
    let data = write(dir.path(), "data.jsonl", &lines.join("\n"));
    let out = dir.path().join("out.jsonl");
    let out = out.to_str().unwrap();
    let ran = run(["convert", &data, "--to", "jsonl", "--out", out]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written = std::fs::read_to_string(out).unwrap();
    let expected = [
        r#"{"text": "ripe apple", "labels": ["fruit", "red"]}"#,
        r#"{"text": "fast car", "labels": ["vehicle"]}"#,
        r#"{"text": "", "labels": []}"#,
        r#"{"text": "green pear", "labels": ["fruit", "green"]}"#,
    ];
    assert_eq!(written.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn text_in_another_encoding_says_how_to_convert_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("latin.csv");
    std::fs::write(&path, b"text,labels\nr\xe9sum\xe9,fran\xe7ais\n").unwrap();
    let ran = train(path.to_str().unwrap(), &dir.path().join("model"), &[]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("iconv -f WINDOWS-1252"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_part_is_kept_aside_and_texts_that_were_trained_on_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let line = |n: usize| {
        let label = ["fruit", "vehicle"][n % 2];
        format!("{{\"text\": \"{label} word{n}\", \"labels\": [\"{label}\"]}}\n")
    };
    let data = write(
        dir.path(),
        "data.jsonl",
        &(0..40).map(line).collect::<String>(),
    );
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--hold-out", "10%"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("4 points kept aside"), "{}", ran.stderr);
    assert!(ran.stdout.contains("4 points, 0 skipped"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("was trained on"), "{}", ran.stdout);

    let model = model.to_str().unwrap();
    let ran = run(["evaluate", model, &data]);
    let expected = "the model was trained on 36 of these texts";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    let ran = run(["evaluate", model, &data, "--json"]);
    let measured: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(measured["n_seen"], 36);

    for part in ["0%", "100%", "0", "many"] {
        let ran = train(&data, Path::new("no-model"), &["--hold-out", part]);
        assert_eq!(ran.code, Some(2), "{part}: {}", ran.stderr);
    }
}

#[test]
fn a_finished_training_is_not_said_to_have_run() {
    let (_dir, data, model) = trained();
    let ran = train(&data, &model, &["--set", "stage1.epochs=8", "--resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("nothing was left to train"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("trained in"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("model written"), "{}", ran.stderr);
}

#[test]
fn small_data_has_probabilities_and_no_data_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let line = |n: usize| {
        let label = ["fruit", "vehicle"][n % 2];
        let (own, other) = (n * 7 % 30, n * 11 % 30);
        format!("{{\"text\": \"{label} word{own} term{other}\", \"labels\": [\"{label}\"]}}\n")
    };
    let lines = |n_points| (0..n_points).map(line).collect::<String>();
    let small = write(dir.path(), "small.jsonl", &lines(60));
    let model = dir.path().join("model");
    let ran = train(&small, &model, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("5 folds of 60 points"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("calibrated on 60"), "{}", ran.stderr);
    let answer = run(["predict", model.to_str().unwrap(), "--text", "fruit word3"]);
    assert!(answer.stdout.contains("probability"), "{}", answer.stdout);

    let tiny = write(dir.path(), "tiny.jsonl", &lines(40));
    let ran = train(&tiny, &dir.path().join("tiny"), &[]);
    assert!(
        ran.stderr.contains("warning: no probabilities"),
        "{}",
        ran.stderr
    );
}

#[test]
fn manual_pages_and_completions_know_the_settings() {
    let page = run(["man"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.stdout.contains(".TH elias 1"), "{}", page.stdout);
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    let to_pages = ["man", "--out", pages.to_str().unwrap()];
    assert_eq!(run(to_pages).code, Some(0));
    let of_train = std::fs::read_to_string(pages.join("elias-train.1")).unwrap();
    assert!(of_train.contains("hold\\-out"), "{of_train}");
    assert!(!pages.join("elias-bench.1").exists());
    assert_eq!(run(to_pages).code, Some(2));
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).stdout;
        assert!(script.contains("amazon-670k"), "{shell}");
    }
}

#[test]
fn the_demo_ends_with_a_prediction_and_the_next_command() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("demo");
    let model = model.to_str().unwrap();
    let ran = run(["demo", "--epochs", "1", "--out", model]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("next: elias predict "), "{last}");
    assert!(
        ran.stdout.contains("library to read PNG images\n  "),
        "{}",
        ran.stdout
    );
    assert_eq!(run(["predict", model, "a game of chess"]).code, Some(0));
}
