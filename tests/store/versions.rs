//! A stored model of the format's version keeps loading, keeps its bytes and keeps giving the same answers.
//!
//! `benchmarks/src/bin/model_fixture.rs` made it.

use super::*;
use elias::internals::describe;
use serde_json::Value;

/// A model with every part that one with boosted scores can have.
fn fixture() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/model-v1")
}

#[test]
fn the_stored_model_keeps_loading_and_answers_as_it_did() {
    let predictor = elias::Predictor::verify(fixture().join("model")).unwrap();
    let answers = fs::read_to_string(fixture().join("answers.jsonl")).unwrap();
    let mut n_answers = 0;
    for line in answers.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let text = expected["text"].as_str().unwrap();
        let expected = expected["labels"].as_array().unwrap();
        let found = predictor.predict(text, 5).unwrap();
        assert_eq!(found.len(), expected.len(), "{text}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(expected[0], found.label, "{text}");
            // Processors add in different orders.
            let difference = f64::from(found.score) - expected[1].as_f64().unwrap();
            assert!(difference.abs() < 1e-5, "{text}: {difference}");
            n_answers += 1;
        }
    }
    assert_eq!(n_answers, 26 * 5);
}

#[test]
fn the_stored_model_has_every_part() {
    let description = describe(&fixture().join("model")).unwrap();
    assert_eq!((description.version, description.n_members), (1, 2));
    let files = description.files;
    for stem in [
        "vocabulary",
        "pairs",
        "ranker-1",
        "boosted-1",
        "stage1-1-encoder",
        "neighbours",
        "names",
        "calibration",
    ] {
        let has = files.keys().any(|name| name.starts_with(stem));
        assert!(has, "no {stem} among {:?}", files.keys());
    }
}

#[test]
fn the_stored_model_is_what_this_version_writes() {
    let directory = fixture().join("model");
    let written = temporary();
    elias::Predictor::verify(&directory)
        .unwrap()
        .save(written.path())
        .unwrap();
    assert_eq!(contents(&directory), contents(written.path()));
}
