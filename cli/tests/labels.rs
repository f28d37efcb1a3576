//! `elias labels`.

use serde_json::Value;

use crate::careful::trained;
use crate::command::{run, write};

#[test]
fn labels_are_listed_and_renamed() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let list = |model: &str, more: &[&str]| {
        let ran = run([&["labels", "list", model][..], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(list(model, &[]), "fruit\nred\nvehicle\ngreen\nblue\n");
    assert!(list(model, &["--counts"]).starts_with("fruit\t24\nred\t16\n"));

    let renamed = dir.path().join("renamed");
    let renamed = renamed.to_str().unwrap();
    let file = write(
        dir.path(),
        "names.tsv",
        "fruit\tfruits\\nand nuts\nred\tgreen\ngreen\tred\n",
    );
    let ran = run(["labels", "rename", model, "--file", &file, "--out", renamed]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("renamed 3 labels"), "{}", ran.stderr);
    assert_eq!(
        list(renamed, &[]),
        "fruits\\nand nuts\ngreen\nvehicle\nred\nblue\n"
    );
    // What is listed can be asked for.
    let names = write(dir.path(), "names.txt", &list(renamed, &[]));
    let texts = write(dir.path(), "texts.txt", "ripe red apple\n");
    let ran = run(["predict", renamed, &texts, "--labels-only", &names]);
    assert_eq!(
        ran.stdout.matches("\"label\":").count(),
        5,
        "{}",
        ran.stdout
    );

    let out = dir.path().join("other");
    let out = out.to_str().unwrap();
    for (arguments, code, words) in [
        (
            &["pear", "plum", "--out", out][..],
            1,
            "\"pear\" is not among the labels",
        ),
        (
            &["red", "blue", "--out", out][..],
            1,
            "two labels with the name \"blue\"",
        ),
        (&["red", "--out", out][..], 2, "<NEW>"),
        (&["--out", out][..], 2, "required"),
        (&["red", "pink", "--out", renamed][..], 1, "already"),
        (
            &["red", "pink", "--out", model, "--overwrite"][..],
            2,
            "an input and an output",
        ),
    ] {
        let ran = run([&["labels", "rename", model][..], arguments].concat());
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!std::path::Path::new(out).exists());
}

#[test]
fn labels_are_removed_and_merged_and_corrections_learned() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let changed = dir.path().join("changed");
    let changed = changed.to_str().unwrap();
    let ok = |arguments: &[&str], words: &str| {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        ran.stdout
    };
    ok(
        &["labels", "remove", model, "blue", "--out", changed],
        "removed 1 label",
    );
    ok(
        &["labels", "merge", changed, "green", "red"],
        "merged 1 label",
    );
    let listed = ok(&["labels", "list", changed], "");
    assert_eq!(listed, "fruit\nred\nvehicle\n");
    let text = "ripe red apple";
    let line = format!("{{\"text\": \"{text}\", \"labels\": [\"vehicle\"], \"not\": [\"red\"]}}\n");
    let corrections = write(dir.path(), "corrections.jsonl", &line);
    let texts = write(dir.path(), "texts.txt", &format!("{text}\n"));
    let score_of_red = || {
        let answers = ok(&["predict", changed, &texts, "--top-k", "3"], "");
        let answers: Value = serde_json::from_str(&answers).unwrap();
        let answers = answers["labels"].as_array().unwrap();
        let red = answers.iter().find(|answer| answer["label"] == "red");
        red.map_or(0.0, |red| red["score"].as_f64().unwrap())
    };
    let before = score_of_red();
    ok(&["learn", changed, &corrections], "learned 1 correction");
    let after = score_of_red();
    assert!(after < before / 10.0, "{before} {after}");

    let more = write(dir.path(), "more.jsonl", "{\"label\": \"pear\"}\n");
    let unknown = write(
        dir.path(),
        "unknown.jsonl",
        "{\"text\": \"x\", \"not\": [\"pear\"]}\n",
    );
    let neither = write(dir.path(), "neither.jsonl", "{\"text\": \"x\"}\n");
    for (arguments, words) in [
        (
            &["labels", "add", model, "--labels", &more][..],
            "cannot score labels by their texts",
        ),
        (&["labels", "remove", model, "pear"], "\"pear\""),
        (&["labels", "merge", changed, "blue", "red"], "\"blue\""),
        (&["learn", changed, &unknown], "\"pear\""),
        (
            &["learn", changed, &neither],
            "neither.jsonl:1: found neither",
        ),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}
