//! Answers in every format: numeric ids, probabilities, and back into `elias evaluate`.

use std::fs;
use std::path::Path;

use crate::careful::{lines, train, trained};
use crate::command::{run, write};

#[test]
fn ids_that_are_numbers_come_back_as_numbers() {
    let (dir, _, model) = trained();
    let input =
        "{\"id\": 17, \"text\": \"ripe apple\"}\n{\"id\": \"17\", \"text\": \"fast car\"}\n";
    let texts = write(dir.path(), "texts.jsonl", input);
    let ran = run(["predict", model.to_str().unwrap(), &texts]);
    let starts: Vec<&str> = ran.stdout.lines().map(|line| &line[..10]).collect();
    assert_eq!(starts, ["{\"id\": 17,", "{\"id\": \"17"]);
}

#[test]
fn answers_without_probabilities_say_why() {
    let (dir, data, model) = trained();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n");
    let model = model.to_str().unwrap();
    for (arguments, expected) in [
        (
            vec!["predict", model, &texts],
            "no probabilities: the training data is too small",
        ),
        (
            vec!["predict", model, &texts, "--threshold", "0.1"],
            "--threshold compares scores",
        ),
        (
            vec!["explain", model, "--text", "apple"],
            "no probabilities",
        ),
        (vec!["evaluate", model, &data], "no probabilities"),
    ] {
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.matches("no probabilities").count(),
            1,
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains(expected),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

#[test]
fn probabilities_are_in_every_format_and_evaluate_reads_them_all() {
    let dir = tempfile::tempdir().unwrap();
    // Every point has words of its own: copies of others cannot be held out.
    let own_words = |(at, line): (usize, &str)| {
        let words: String = (0..6)
            .map(|n| format!("{}x ", (7 * at + 31 * n * n) % 977))
            .collect();
        line.replacen("\"text\": \"", &format!("\"text\": \"{words}"), 1) + "\n"
    };
    let content: String = lines(1200).lines().enumerate().map(own_words).collect();
    let data = write(dir.path(), "train.jsonl", &content);
    let model = dir.path().join("model");
    let ran = train(
        &data,
        &model,
        &["--set", "stage1.epochs=1", "--set", "stage2.epochs=1"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in [
        "training 1 of 2: on part of the points, to calibrate",
        "training 2 of 2: again, on all points",
    ] {
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
    }
    let test = write(dir.path(), "test.jsonl", &lines(30));
    let mut precisions = Vec::new();
    for format in ["jsonl", "csv", "tsv", "npz", "sparse"] {
        let out = dir.path().join(format!("answers.{format}"));
        let out = out.to_str().unwrap();
        let ran = run([
            "predict",
            model.to_str().unwrap(),
            &test,
            "--output-format",
            format,
            "--out",
            out,
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains("no probabilities"), "{}", ran.stderr);
        let mut files = vec![out.to_owned()];
        match format {
            "npz" | "sparse" => files.push(format!("{out}.probabilities.{format}")),
            "tsv" => {
                let text = fs::read_to_string(out).unwrap();
                assert!(
                    text.lines().all(|line| line.split('\t').count() == 4),
                    "{text}"
                );
            }
            _ => assert!(fs::read_to_string(out).unwrap().contains("probability")),
        }
        for file in files {
            assert!(Path::new(&file).exists(), "{file}");
            let ran = run(["evaluate", "--predictions", &file, &test, "--json"]);
            assert_eq!(ran.code, Some(0), "{file}: {}", ran.stderr);
            let figures: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            precisions.push(figures["p@1"].as_f64().unwrap());
        }
    }
    // Probabilities may tie where scores differ.
    assert!(
        precisions.iter().all(|precision| *precision > 90.0),
        "{precisions:?}"
    );
}

#[test]
fn files_say_which_labels_may_be_answers_and_mistakes_in_them_are_named() {
    let (dir, _, model) = trained();
    let texts = write(dir.path(), "texts.txt", "ripe apple\nfast blue car\n");
    let model = model.to_str().unwrap();
    let file = |name: &str, content: &str| write(dir.path(), name, content);
    let labels = |more: &[&str]| -> Vec<Vec<String>> {
        let ran = run([&["predict", model, &texts][..], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let line = |line: &str| -> Vec<String> {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let labels = value["labels"].as_array().unwrap().iter();
            let name = |label: &serde_json::Value| label["label"].as_str().unwrap().to_owned();
            labels.map(name).collect()
        };
        ran.stdout.lines().map(line).collect()
    };
    let kinds = file("kinds.txt", "fruit\nvehicle\nfruit\n");
    let kinds_only = labels(&["--labels-only", &kinds]);
    assert_eq!(kinds_only, [["fruit", "vehicle"], ["vehicle", "fruit"]]);
    let denied = file("denied.txt", "fruit\n\nred\n");
    for answers in labels(&["--deny", &denied]) {
        assert!(!answers.is_empty());
        assert!(
            answers
                .iter()
                .all(|label| label != "fruit" && label != "red")
        );
    }
    assert_eq!(
        labels(&["--labels-only", &kinds, "--deny", &denied]),
        [["vehicle"]; 2]
    );
    let thresholds = file("thresholds.tsv", "fruit\t1\nvehicle\t0\n");
    let above = labels(&["--labels-only", &kinds, "--thresholds", &thresholds]);
    assert_eq!(above[1], ["vehicle"]);

    for (option, content, words) in [
        (
            "--labels-only",
            "fruit\npear\n",
            "allow: \"pear\" is not among",
        ),
        (
            "--deny",
            "pear\nplum\n",
            "deny: \"pear\" and another are not among",
        ),
        ("--labels-only", "\n", "allow: found no labels"),
        ("--thresholds", "pear\t0.5\n", "thresholds: \"pear\""),
        ("--thresholds", "fruit\t0.5\nfruit\t50\n", "wrong.txt:2:"),
        ("--thresholds", "fruit 0.5\n", "wrong.txt:1:"),
    ] {
        let path = file("wrong.txt", content);
        let ran = run(["predict", model, &texts, option, &path]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(ran.stderr.contains("wrong.txt"), "{}", ran.stderr);
    }
}
