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
