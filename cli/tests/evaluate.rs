//! `elias evaluate` on predictions: the same figures however they are given.

use std::path::Path;

use serde_json::Value;

use crate::command::{Ran, run, write};

const TRAIN: &str = r#"{"text": "a", "labels": ["red", "blue"]}
{"text": "b", "labels": ["red", "green"]}
{"text": "c", "labels": ["red"]}
{"text": "d", "labels": ["blue"]}
"#;

const TEST: &str = r#"{"text": "a", "labels": ["red", "blue"]}
{"text": "b", "labels": ["green"]}
{"text": "c", "labels": []}
"#;

const PREDICTIONS: &str = r#"{"labels": [{"label": "red", "score": 0.9}, {"label": "green", "score": 0.5}, {"label": "blue", "score": 0.1}]}
{"labels": [{"label": "blue", "score": 0.9}, {"label": "green", "score": 0.5}]}
{"labels": [{"label": "blue", "score": 0.9}]}
"#;

fn data(dir: &Path) -> (String, String) {
    write(dir, "data/train.jsonl", TRAIN);
    let test = write(dir, "data/test.jsonl", TEST);
    let predictions = write(dir, "predictions.jsonl", PREDICTIONS);
    (test, predictions)
}

fn evaluate(predictions: &str, more: &[&str]) -> Ran {
    run(["evaluate", "--predictions", predictions]
        .iter()
        .chain(more))
}

fn parse(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn json_has_the_keys_of_the_contract_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let (test, predictions) = data(dir.path());
    let ran = evaluate(&predictions, &[&test, "--json"]);
    let keys: Vec<&str> = ran
        .stdout
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .collect();
    assert_eq!(
        keys.join(" "),
        "p@1 p@3 p@5 ndcg@1 ndcg@3 ndcg@5 psp@1 psp@3 psp@5 r@1 r@3 r@5 r@10 r@20 r@100 \
         f1@1 f1@3 f1@5 point_f1@1 point_f1@3 point_f1@5 r_precision average_recall \
         at_best_threshold threshold precision recall micro_f1 macro_f1 \
         n_points n_skipped n_labels n_seen ms_per_point ms_per_query_p50 ms_per_query_p99"
    );
    let json = parse(&ran);
    assert_eq!(json["p@1"], 50.0);
    assert_eq!(json["r@3"], 100.0);
    assert_eq!(json["n_points"], 2);
    assert_eq!(json["n_skipped"], 1);
    assert_eq!(json["n_labels"], 3);
}

#[test]
fn psp_needs_training_data_and_says_which_was_used() {
    let dir = tempfile::tempdir().unwrap();
    let (test, predictions) = data(dir.path());
    let without = evaluate(&predictions, &[&test, "--json"]);
    assert_eq!(parse(&without)["psp@1"], Value::Null);
    assert!(without.stderr.contains("--train"), "{}", without.stderr);

    let folder = dir.path().join("data");
    let folder = folder.to_str().unwrap();
    let with_folder = evaluate(&predictions, &[folder, "--json"]);
    assert!(
        with_folder.stderr.contains(folder),
        "{}",
        with_folder.stderr
    );
    let train = dir.path().join("data/train.jsonl");
    let train = train.to_str().unwrap();
    let with_train = evaluate(&predictions, &[&test, "--train", train, "--json"]);
    assert_eq!(parse(&with_folder), parse(&with_train));

    // By hand: red is hit, blue leads the second point; N is 4, counts are 3 for red and 1 for green.
    let weigh = |n: f64| 1.0 + (4f64.ln() - 1.0) * 2.5f64.powf(0.55) * (n + 1.5).powf(-0.55);
    let expected = 100.0 * weigh(3.0) / (weigh(2.0) + weigh(1.0));
    let found = parse(&with_train)["psp@1"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn filtered_pairs_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let (_, predictions) = data(dir.path());
    let folder = dir.path().join("data");
    // Row 1 without label 1 (blue): green becomes its first place.
    let filter = write(dir.path(), "filter.txt", "1 1\n");
    let more = [folder.to_str().unwrap(), "--json", "--filter", &filter];
    assert_eq!(parse(&evaluate(&predictions, &more))["p@1"], 100.0);
}

#[test]
fn recall_by_decile_adds_up_to_recall() {
    let dir = tempfile::tempdir().unwrap();
    let (test, predictions) = data(dir.path());
    let folder = dir.path().join("data");
    let more = [folder.to_str().unwrap(), "--json", "--by-decile"];
    let json = parse(&evaluate(&predictions, &more));
    let deciles = json["by_decile"].as_array().unwrap();
    assert_eq!(deciles.len(), 10);
    let parts = deciles.iter().map(|decile| decile["contribution"].as_f64());
    let sum: f64 = parts.map(Option::unwrap).sum();
    assert!((sum - json["r@100"].as_f64().unwrap()).abs() < 1e-9);

    let without = evaluate(&predictions, &[&test, "--by-decile"]);
    assert_eq!(without.code, Some(2));
    assert!(without.stderr.contains("--train"), "{}", without.stderr);
}

#[test]
fn the_table_shows_the_same_figures() {
    let dir = tempfile::tempdir().unwrap();
    let (_, predictions) = data(dir.path());
    let folder = dir.path().join("data");
    let ran = evaluate(&predictions, &[folder.to_str().unwrap(), "--by-decile"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let line = ran.stdout.lines().find(|line| line.starts_with("P "));
    let figures: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(figures, ["P", "50.00", "50.00", "30.00"]);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn figures_beyond_the_answers_are_left_out_and_others_are_measured_where_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (test, _) = data(dir.path());
    // One answer per point, of three labels.
    let first = r#"{"labels": [{"label": "red", "score": 0.9}]}
{"labels": [{"label": "blue", "score": 0.2}]}
{"labels": []}
"#;
    let predictions = write(dir.path(), "first.jsonl", first);
    let at = |more: &[&str]| evaluate(&predictions, &[&[&test[..], "--at", "2,1"], more].concat());
    let json = parse(&at(&["--json", "--threshold", "0.5"]));
    assert_eq!((&json["p@1"], &json["p@2"]), (&50.0.into(), &Value::Null));
    // P is 1/2 and R 1/4 over both points, 2/3 and 0 are their own.
    assert_eq!(json["f1@1"].as_f64().unwrap().round(), 33.0);
    assert_eq!(json["point_f1@1"].as_f64().unwrap().round(), 33.0);
    assert_eq!(
        (&json["p@3"], &json["r_precision"]),
        (&Value::Null, &Value::Null)
    );
    // One of three pairs is found, with no wrong answer above 0.2.
    let (best, asked) = (&json["at_best_threshold"], &json["at_threshold"]);
    assert_eq!(
        (&best["micro_f1"], &asked["micro_f1"]),
        (&50.0.into(), &50.0.into())
    );
    assert!((best["threshold"].as_f64().unwrap() - 0.25).abs() < 1e-6);
    assert_eq!(asked["precision"], 100.0);

    let by_label = dir.path().join("labels.csv");
    let by_label = by_label.to_str().unwrap();
    let ran = at(&["--per-label", by_label]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("@2"), "{}", ran.stdout);
    let written = std::fs::read_to_string(by_label).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines[0], "label,support,p@5,r@5,precision,recall,f1");
    assert!(
        lines.contains(&"red,1,100.0,100.0,100.0,100.0,100.0"),
        "{written}"
    );
    assert!(lines.contains(&"green,1,,0.0,,0.0,0.0"), "{written}");
    let again = at(&["--per-label", by_label]);
    assert!(again.stderr.contains("--overwrite"), "{}", again.stderr);
    for bad in [["--at", "0"], ["--at", "x"], ["--threshold", "2"]] {
        let ran = evaluate(&predictions, &[&[&test[..]], &bad[..]].concat());
        assert_ne!(ran.code, Some(0), "{bad:?}");
    }
}

#[test]
fn too_few_predictions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (test, _) = data(dir.path());
    let few = write(dir.path(), "few.jsonl", PREDICTIONS.lines().next().unwrap());
    let ran = evaluate(&few, &[&test]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("few.jsonl") && ran.stderr.contains("expected 3"),
        "{}",
        ran.stderr
    );
}

#[test]
fn predictions_may_know_the_labels_of_training_only() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "data/train.jsonl", TRAIN);
    // The test data has a label that training has not.
    let more = "{\"text\": \"d\", \"labels\": [\"red\", \"new\"]}\n";
    write(dir.path(), "data/test.jsonl", &format!("{TEST}{more}"));
    let folder = dir.path().join("data");
    let folder = folder.to_str().unwrap();
    for n_columns in [3, 4] {
        let rows = format!("4 {n_columns}\n0:0.9 2:0.5\n1:0.9 2:0.5\n\n0:1\n");
        let predictions = write(dir.path(), "predictions.txt", &rows);
        let json = parse(&evaluate(&predictions, &[folder, "--json"]));
        assert_eq!(json["n_labels"], 4, "{n_columns}");
        assert_eq!(json["r@1"].as_f64().unwrap().round(), 33.0, "{n_columns}");
    }
    let predictions = write(dir.path(), "predictions.txt", "4 5\n\n\n\n\n");
    let ran = evaluate(&predictions, &[folder]);
    assert_eq!(ran.code, Some(1));
    let expected =
        "holds scores for 5 labels, expected 4 as in the data, or 3 as in the training data";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}
