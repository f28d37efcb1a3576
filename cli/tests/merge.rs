//! `elias merge`: outputs, probabilities and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::careful::{lines, train};
use crate::command::{run, write};

/// Two models of the same data with scores that are calibrated.
fn two_models() -> (tempfile::TempDir, [PathBuf; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(96));
    let models = [1, 2].map(|seed| {
        let model = dir.path().join(format!("model-{seed}"));
        let seed = seed.to_string();
        // The texts of this data are mostly the same.
        let more = [
            "--seed",
            &seed,
            "--set",
            "stage1.epochs=8",
            "--set",
            "hold_out.min_points=5",
            "--set",
            "hold_out.near_duplicates=2",
        ];
        let ran = train(&data, &model, &more);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        model
    });
    (dir, models)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_merged_model_answers_and_has_the_probabilities_it_was_given_data_for() {
    let (dir, [first, second]) = two_models();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n");
    let predict = |model: &Path| {
        let ran = run(["predict", text(model), &texts, "--top-k", "2"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        (answer["labels"].clone(), ran.stderr)
    };
    assert!(predict(&first).0[0]["probability"].is_number());

    let merged = dir.path().join("merged");
    let ran = run(["merge", text(&first), text(&second), "--out", text(&merged)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("2 members"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--calibrate"), "{}", ran.stderr);
    let (labels, words) = predict(&merged);
    assert_eq!(labels[0]["label"], "fruit");
    assert!(labels[0].get("probability").is_none(), "{labels}");
    assert!(words.contains("the model was merged"), "{words}");
    let score = |model: &Path| predict(model).0[0]["score"].as_f64().unwrap();
    let mean = (score(&first) + score(&second)) / 2.0;
    assert!((score(&merged) - mean).abs() < 1e-6);

    let held_out = lines(60)
        .replace("ripe", "ripe big")
        .replace("fast", "fast big");
    let held_out = write(dir.path(), "held-out.jsonl", &held_out);
    let merge = [
        "merge",
        text(&first),
        text(&second),
        "--out",
        text(&merged),
        "--overwrite",
        "--calibrate",
        &held_out,
    ];
    let ran = run(merge);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("60 of 60 points"), "{}", ran.stderr);
    let (labels, words) = predict(&merged);
    assert!(labels[0]["probability"].as_f64().unwrap() > 0.5, "{labels}");
    assert!(!words.contains("merged"), "{words}");
    let ran = run(["inspect", text(&merged), "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["n_members"], 2, "{}", ran.stderr);
}

#[test]
fn nothing_is_replaced_unasked_and_refusals_leave_everything_as_it_was() {
    let (dir, [first, second]) = two_models();
    let [one, two] = [text(&first), text(&second)];
    let precious = dir.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "precious").unwrap();
    let (inside, new) = (first.join("inside"), dir.path().join("new"));
    let train = text(&dir.path().join("train.jsonl")).to_owned();
    let texts = write(dir.path(), "texts.txt", "no labels here\n");
    let missing = text(&dir.path().join("missing")).to_owned();
    let before = fs::read(first.join("manifest.json")).unwrap();
    let new = text(&new);
    for (arguments, code, expected) in [
        (
            vec![one, two, "--out", one, "--overwrite"],
            2,
            "an input and an output",
        ),
        (
            vec![one, two, "--out", text(&inside)],
            2,
            "an input and an output",
        ),
        (vec![one, two, "--out", text(&precious)], 2, "--overwrite"),
        (vec![one, "--out", new], 2, "two or more models"),
        (vec![one, one, "--out", new], 1, "the same member"),
        (vec![one, &missing, "--out", new], 1, "missing"),
        (vec![one, &train, "--out", new], 1, "is not a model"),
        (
            vec![one, text(&precious), "--out", new],
            1,
            "no manifest.json",
        ),
        (
            vec![one, two, "--out", new, "--calibrate", &train],
            1,
            "what the model was trained on",
        ),
        (
            vec![one, two, "--out", new, "--calibrate", &texts],
            1,
            "while reading",
        ),
        (
            vec![
                one,
                two,
                "--out",
                &train,
                "--overwrite",
                "--calibrate",
                &train,
            ],
            2,
            "an input and an output",
        ),
    ] {
        let ran = run(["merge"].iter().chain(&arguments));
        assert_eq!(ran.code, Some(code), "{arguments:?} {}", ran.stderr);
        assert!(
            ran.stderr.contains(expected),
            "{arguments:?} {}",
            ran.stderr
        );
        assert!(!Path::new(new).exists(), "{arguments:?}");
    }
    assert_eq!(fs::read(first.join("manifest.json")).unwrap(), before);
    assert_eq!(fs::read_dir(&precious).unwrap().count(), 1);
    assert!(!inside.exists());
}
