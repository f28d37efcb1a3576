//! Models of earlier formats keep loading and keep giving the same answers.
//!
//! `benchmarks/src/bin/model_fixture.rs` made the stored ones.

use super::*;
use elias::tools::{describe, verify};
use serde_json::Value;

fn fixture(name: &str) -> std::path::PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(name)
}

#[track_caller]
fn check_answers(directory: &Path) {
    let predictor = verify(&directory.join("model")).unwrap();
    let answers = fs::read_to_string(directory.join("answers.jsonl")).unwrap();
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
fn a_model_of_version_1_keeps_loading_and_answers_as_it_did() {
    let trees = ["ranker-1", "tree-1", "calibration", "vocabulary"];
    let boosted = ["judge-1", "neighbours", "names", "pairs"];
    for (name, stems) in [
        // Without coarse rows and powers of p and q.
        ("model-v1", trees),
        ("model-v1-coarse", trees),
        ("model-v1-judge", boosted),
    ] {
        let directory = fixture(name);
        check_answers(&directory);
        let description = describe(&directory.join("model")).unwrap();
        assert_eq!((description.version, description.n_members), (1, 2));
        let has = |stem: &&str| description.files.keys().any(|name| name.starts_with(*stem));
        assert!(stems.iter().all(has), "{:?}", description.files.keys());
    }
}

/// The manifest but for the configuration, which gets new keys, and what follows from its text.
fn lasting(manifest: &[u8]) -> Value {
    let mut manifest: Value = serde_json::from_slice(manifest).unwrap();
    let members = manifest.as_object_mut().unwrap();
    for changing in ["config", "checksum", "written_by"] {
        members.remove(changing).unwrap();
    }
    manifest
}

#[test]
fn the_stored_model_is_what_this_version_writes() {
    for name in ["model-v1-coarse", "model-v1-judge"] {
        let directory = fixture(name).join("model");
        let written = temporary();
        verify(&directory).unwrap().save(written.path()).unwrap();
        let (mut stored, mut written) = (contents(&directory), contents(written.path()));
        let manifest = |files: &mut BTreeMap<_, _>| files.remove("manifest.json").unwrap();
        let manifests = [&mut stored, &mut written].map(manifest);
        assert_eq!(lasting(&manifests[0]), lasting(&manifests[1]));
        assert_eq!(stored, written);
    }
}
