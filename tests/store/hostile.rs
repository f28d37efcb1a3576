//! Damaged and forged models: each is refused with its own words, none panics.

use super::*;
use elias::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The paper's calibration.
const TREE: &str = "final_score.kind=tree";

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The manifest as JSON, without its checksum.
fn manifest(directory: &Path) -> Value {
    let text = fs::read_to_string(directory.join("manifest.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    manifest.as_object_mut().unwrap().remove("checksum");
    manifest
}

/// Writes a manifest with a checksum that is right, as a forger can.
fn forge(directory: &Path, manifest: &Value) {
    let text = serde_json::to_string_pretty(manifest).unwrap();
    let body = text.strip_suffix("\n}").unwrap();
    let checksum = sha256(body.as_bytes());
    let text = format!("{body},\n  \"checksum\": \"{checksum}\"\n}}\n");
    fs::write(directory.join("manifest.json"), text).unwrap();
}

/// The name of the file that begins with `stem`.
fn file(directory: &Path, stem: &str) -> String {
    let names = contents(directory);
    let found = names.keys().find(|name| name.starts_with(stem));
    found.unwrap().clone()
}

/// Replaces the content of a file and lists its new size and hash.
fn replace_file(directory: &Path, stem: &str, bytes: &[u8]) {
    let name = file(directory, stem);
    fs::write(directory.join(&name), bytes).unwrap();
    let mut manifest = manifest(directory);
    manifest["files"][&name] = json!({"bytes": bytes.len(), "sha256": sha256(bytes)});
    forge(directory, &manifest);
}

#[track_caller]
fn check(result: Result<Predictor>, expected: &str) {
    let error = result.err().expect("it must be refused").to_string();
    assert!(error.contains(expected), "{error:?} without {expected:?}");
}

#[track_caller]
fn check_forged(change: impl FnOnce(&mut Value), expected: &str) {
    check_forged_with(&[], change, expected);
}

#[track_caller]
fn check_forged_with(settings: &[&str], change: impl FnOnce(&mut Value), expected: &str) {
    let directory = saved_model_with(settings);
    let mut manifest = manifest(directory.path());
    change(&mut manifest);
    forge(directory.path(), &manifest);
    check(Predictor::load(directory.path()), expected);
}

#[track_caller]
fn check_replaced(stem: &str, change: impl FnOnce(&mut Vec<u8>), expected: &str) {
    let settings: &[&str] = match stem {
        "tree-0" => &[TREE],
        _ => &[],
    };
    check_replaced_with(settings, stem, change, expected);
}

fn check_replaced_with(
    settings: &[&str],
    stem: &str,
    change: impl FnOnce(&mut Vec<u8>),
    expected: &str,
) {
    let directory = saved_model_with(settings);
    let name = file(directory.path(), stem);
    let mut bytes = fs::read(directory.path().join(name)).unwrap();
    change(&mut bytes);
    replace_file(directory.path(), stem, &bytes);
    check(Predictor::load(directory.path()), expected);
}

/// The offset of a tensor's values in a file.
fn tensor_start(bytes: &[u8], name: &str) -> usize {
    let header_len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + header_len]).unwrap();
    8 + header_len + header[name]["data_offsets"][0].as_u64().unwrap() as usize
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let directory = saved_model();
    for (name, bytes) in contents(directory.path()) {
        let path = directory.path().join(&name);
        for position in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << (position % 8);
            fs::write(&path, &damaged).unwrap();
            assert!(
                Predictor::load(directory.path()).is_err(),
                "{name}: byte {position}"
            );
        }
        fs::write(&path, &bytes).unwrap();
    }
    Predictor::load(directory.path()).unwrap();
}

#[test]
fn a_file_that_was_cut_off_or_is_gone_is_named() {
    let directory = saved_model();
    for (name, bytes) in contents(directory.path()) {
        let path = directory.path().join(&name);
        for length in [0, 1, 8, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..length]).unwrap();
            check(Predictor::load(directory.path()), &name);
        }
        fs::remove_file(&path).unwrap();
        check(Predictor::load(directory.path()), &name);
        fs::create_dir(&path).unwrap();
        check(Predictor::load(directory.path()), "not a regular file");
        fs::remove_dir(&path).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            check(Predictor::load(directory.path()), "not a regular file");
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn a_manifest_of_another_kind_or_version_is_refused() {
    let directory = temporary();
    check(
        Predictor::load(directory.path()),
        "is not a model: it has no manifest.json",
    );
    for text in ["", "{", "[]", "null", "{}", "\"\u{0}\""] {
        fs::write(directory.path().join("manifest.json"), text).unwrap();
        check(Predictor::load(directory.path()), "it is not a manifest");
    }
    let nested = "[".repeat(1 << 20);
    fs::write(directory.path().join("manifest.json"), nested).unwrap();
    check(Predictor::load(directory.path()), "it is not a manifest");
    check_forged(|m| m["version"] = json!(2), "its format version is 2");
    check_forged(|m| m["format"] = json!("other"), "its format is \"other\"");
    check_forged(|m| m["unknown"] = json!(1), "the key \"unknown\"");
    check_forged(|m| m["config"]["index"]["unknown"] = json!(1), "the key ");
    check_forged(|m| m["members"] = json!([]), "it has 0 members");
    check_forged(
        |m| m["members"] = json!(vec![m["members"][0].clone(); 3000]),
        "is used twice",
    );
    check_forged(
        |m| m["labels"]["counts"] = m["calibration"].clone(),
        "is used twice",
    );
    check_forged(
        |m| m["members"][0]["ranker"]["loss"] = json!("guess"),
        "instead of",
    );
    check_forged(
        |m| m["members"][0]["ranker"]["uses_embedding"] = json!(false),
        "it holds 10 tensors, expected 9",
    );
    check_forged(
        |m| m["members"][0]["ranker"]["weights"] = json!("absent"),
        "used but not listed",
    );
    check_forged_with(
        &[TREE],
        |m| m["members"][0]["calibrator"]["tree_weight"] = json!(-1.0),
        "calibration weight is -1",
    );
    check_forged(
        |m| m["calibration"] = json!("absent"),
        "used but not listed",
    );
}

#[test]
fn a_manifest_edited_by_hand_is_noticed() {
    let directory = saved_model();
    let path = directory.path().join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let edited = text.replace("\"beam_size\": 2", "\"beam_size\": 3");
    assert_ne!(edited, text);
    fs::write(&path, edited).unwrap();
    check(
        Predictor::load(directory.path()),
        "changed after it was written",
    );
}

#[test]
fn a_stretched_file_or_a_model_beyond_the_bound_is_refused_before_it_is_read() {
    let directory = saved_model();
    let n_bytes: u64 = contents(directory.path())
        .iter()
        .filter(|(name, _)| *name != "manifest.json")
        .map(|(_, bytes)| bytes.len() as u64)
        .sum();
    Predictor::load_into_memory(directory.path(), n_bytes).unwrap();
    let words = format!("its files have {n_bytes} bytes, at most");
    check(
        Predictor::load_into_memory(directory.path(), n_bytes - 1),
        &words,
    );
    let labels = directory.path().join(file(directory.path(), "labels"));
    let stretched = fs::OpenOptions::new().write(true).open(labels).unwrap();
    // A terabyte, of which nothing is on disk.
    stretched.set_len(1 << 40).unwrap();
    for result in [
        Predictor::load_into_memory(directory.path(), u64::MAX),
        Predictor::load(directory.path()),
    ] {
        check(result, "it has 1099511627776 bytes, the manifest says");
    }
}

#[test]
fn sizes_beyond_all_bounds_are_refused_before_anything_is_allocated() {
    let huge = json!(1u64 << 60);
    for (pointer, expected) in [
        (
            "/data/n_labels",
            "names, the manifest says 1152921504606846976",
        ),
        (
            "/n_features",
            "words, the manifest says 1152921504606846976",
        ),
        ("/plan/n_clusters", "expected 1 to 24"),
        ("/plan/beam_size", "expected 1 to 4"),
        ("/plan/shortlist_size", "expected 1 to 24"),
        ("/config/encoder/dim", "encoder.dim: found"),
        ("/config/features/ngrams", "features.ngrams: found"),
        ("/config/encoder/max_len", "encoder.max_len: found"),
    ] {
        let change = |m: &mut Value| *m.pointer_mut(pointer).unwrap() = huge.clone();
        check_forged(change, expected);
    }
    let wide = |m: &mut Value| m["config"]["encoder"]["dim"] = json!(1u64 << 30);
    check_forged(wide, "expected F32");
    let terabytes = |m: &mut Value| {
        for file in m["files"].as_object_mut().unwrap().values_mut() {
            file["bytes"] = huge.clone();
        }
    };
    check_forged(terabytes, "the manifest says 1152921504606846976");
}

#[test]
fn a_hostile_configuration_is_refused_as_a_user_would_be() {
    for (section, key) in [("features", "ngrams"), ("ranker", "n_candidates")] {
        let key_of_both = format!("{section}.{key}: found");
        check_forged(
            |m| m["config"][section][key] = json!(1u64 << 60),
            &key_of_both,
        );
        let set = Config::default().with_value(&format!("{section}.{key}={}", 1u64 << 60));
        let error = set.unwrap().validate().unwrap_err().to_string();
        assert!(error.contains(&key_of_both), "{error}");
    }
    check_forged(|m| m["config"]["features"]["ngrams"] = json!(0), "ngrams");
    check_forged(
        |m| m["config"]["train"]["seed"] = json!(u64::MAX),
        "train.seed: found",
    );
    check_forged(|m| m["plan"]["beta"] = json!(-1.0), "plan.beta");
    check_forged(|m| m["plan"]["kappa"] = json!(0), "plan.kappa");
    check_forged(|m| m["members"][0]["alpha"] = json!(0.0), "alpha and beta");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        "../labels.txt",
        "/etc/passwd",
        "sub/labels.txt",
        "..",
        ".hidden",
        "",
        "manifest.json",
        "a\u{0}b",
        "c:\\labels",
    ] {
        let change = |m: &mut Value| {
            let old = m["labels"]["names"].as_str().unwrap().to_string();
            let record = m["files"][&old].clone();
            m["files"][name] = record;
            m["labels"]["names"] = json!(name);
        };
        check_forged(change, "is not the name of a model file");
    }
    check_forged(
        |m| m["labels"]["names"] = json!("../x"),
        "used but not listed",
    );
}

#[test]
fn tensors_of_the_wrong_shape_or_kind_are_refused() {
    check_replaced("classifiers-0", |b| b.clear(), "safetensors header");
    check_replaced("classifiers-0", |b| b.truncate(40), "safetensors header");
    let huge_header = |b: &mut Vec<u8>| b[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    check_replaced("classifiers-0", huge_header, "safetensors header");
    let edit = |from: &'static str, to: &'static str| {
        move |bytes: &mut Vec<u8>| {
            let at = bytes
                .windows(from.len())
                .position(|w| w == from.as_bytes())
                .unwrap();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    };
    check_replaced(
        "classifiers-0",
        edit("[24, 8]", "[8, 24]"),
        "expected F32 [24, 8]",
    );
    check_replaced("classifiers-0", edit("F32", "U32"), "expected F32 [24, 8]");
    check_replaced(
        "classifiers-0",
        edit("classifiers.bias", "classifiers.bios"),
        "is missing",
    );
    check_replaced(
        "classifiers-0",
        edit("[24, 8]", "[99, 8]"),
        "header is broken",
    );
    check_replaced("classifiers-0", |b| b.extend([0; 4]), "header is broken");
}

#[test]
fn ids_out_of_range_and_broken_lists_are_refused() {
    let set = |name: &'static str, value: u32| {
        move |bytes: &mut Vec<u8>| {
            let at = tensor_start(bytes, name);
            let written = bytes[at..].iter_mut().zip(value.to_le_bytes());
            written.for_each(|(byte, new)| *byte = new);
        }
    };
    check_replaced(
        "index-0",
        set("adjacency.labels", 1000),
        "edges of cluster 0",
    );
    check_replaced("index-0", set("adjacency.indptr", 1), "row offsets");
    check_replaced(
        "index-0",
        set("numbering", 24),
        "is numbered twice or not at all",
    );
    let clusters = "the ranker's clusters do not fit";
    check_replaced("ranker-0", set("ranker.cluster_of", 1000), clusters);
    check_replaced("tree-0", set("tree.right", u32::MAX), "decision tree");
    check_replaced("tree-0", set("tree.feature", 4), "splits feature 4 of 4");
    check_replaced("boosted-0", set("boosted.columns", 24), "columns below 24");
    for (stem, matrix) in [
        ("ranker-0", "ranker.words"),
        ("ranker-0", "ranker.clusters"),
        ("pairs", "pairs"),
        ("neighbours", "neighbours.words"),
        ("neighbours", "neighbours.labels"),
        ("names", "names"),
    ] {
        let named = |part: &str| -> &'static str { format!("{matrix}.{part}").leak() };
        let (large, endless) = (0x7f7f_7f7f, u32::MAX);
        // The neighbours may be any number, and the terms of clusters have no entries here.
        let [lengths, gaps] = ["lengths", "gaps"].map(named);
        check_replaced(stem, set(lengths, large), "do not fit the lengths");
        let is_any = matrix == "neighbours.labels";
        let expected = ["not those of its rows", "do not fit"][usize::from(is_any)];
        check_replaced(stem, set(lengths, endless), expected);
        if matrix != "ranker.clusters" {
            check_replaced(stem, set(gaps, endless), "do not fit the lengths");
        }
    }
    let far = set("neighbours.labels.gaps", 0x7f7f_7f7f);
    check_replaced("neighbours", far, "the matrix has 24 columns");
    check_replaced(
        "calibration",
        set("probabilities.score", 9.0f32.to_bits()),
        "calibration knots",
    );
    check_replaced("labels.", |b| b.extend(b"one more\n"), "it has 25 names");
    let twice = |b: &mut Vec<u8>| {
        let text = String::from_utf8(b.clone()).unwrap();
        *b = text.replace("label 4\n", "label 3\n").into_bytes();
    };
    check_replaced("labels.", twice, "it has 23 different names");
    check_replaced("labels.", |b| b[0] = 0xff, "it is not UTF-8");
    check_replaced("vocabulary", |b| b[0] = b'z', "not a valid vocabulary");
}

#[test]
fn weights_that_are_not_finite_are_refused() {
    for value in [f32::NAN, f32::INFINITY] {
        for (stem, name) in [
            ("classifiers-0", "classifiers.weight"),
            ("classifiers-0", "classifiers.bias"),
            ("encoder-0", "encoder.embeddings"),
            ("index-0", "clusters.weight"),
            ("index-0", "adjacency.weight"),
            ("features", "idf"),
            ("ranker-0", "ranker.words.weight"),
            ("ranker-0", "ranker.weight"),
            ("ranker-0", "ranker.intercept"),
            ("tree-0", "tree.probability"),
            ("boosted-0", "boosted.thresholds"),
            ("boosted-0", "boosted.leaves"),
            ("neighbours", "neighbours.words.weight"),
            ("names", "names.weight"),
            ("calibration", "probabilities.score"),
        ] {
            let set = |bytes: &mut Vec<u8>| {
                let at = tensor_start(bytes, name);
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            };
            check_replaced(stem, set, &format!("tensor {name}: value 0 is"));
        }
    }
}

#[test]
fn coarse_rows_that_are_not_those_of_the_weights_are_refused() {
    let set = |name: &'static str, value: &'static [u8]| {
        move |bytes: &mut Vec<u8>| {
            let at = tensor_start(bytes, name);
            bytes[at..at + value.len()].copy_from_slice(value);
        }
    };
    let other = "coarse rows are not those of its weights";
    check_replaced("classifiers-0", set("classifiers.coarse", &[0x80]), other);
    let negative = set("classifiers.coarse_scale", &[0, 0, 0x80, 0xbf]);
    check_replaced("classifiers-0", negative, "a scale of at least 0 each");
    let endless = set("classifiers.coarse_error", &[0, 0, 0x80, 0x7f]);
    check_replaced("classifiers-0", endless, "value 0 is inf");
}

#[test]
fn scales_of_eight_bits_that_are_none_are_refused() {
    for (stem, name) in [
        ("classifiers-0", "classifiers.weight_scale"),
        ("encoder-0", "encoder.embeddings_scale"),
    ] {
        for (scale, expected) in [
            (-1.0f32, "a scale of at least 0 each"),
            (f32::NAN, "value 0 is NaN"),
        ] {
            let set = |bytes: &mut Vec<u8>| {
                let at = tensor_start(bytes, name);
                bytes[at..at + 4].copy_from_slice(&scale.to_le_bytes());
            };
            check_replaced_with(&["train.precision=eight"], stem, set, expected);
        }
    }
}

#[test]
fn random_rubbish_after_a_valid_checksum_never_panics() {
    let directory = saved_model();
    let originals = contents(directory.path());
    let names: Vec<&String> = originals
        .keys()
        .filter(|name| *name != "manifest.json")
        .collect();
    for round in 0..400 {
        let mut random = Random::new(11, "rubbish", round);
        let name = names[random.u64() as usize % names.len()];
        let mut bytes = originals[name].clone();
        for _ in 0..1 + random.u64() % 4 {
            let position = random.u64() as usize % bytes.len();
            bytes[position] = random.u64() as u8;
        }
        replace_file(directory.path(), name, &bytes);
        if let Ok(predictor) = elias::Predictor::verify(directory.path()) {
            let _ = predictor.predict("word1 both1", 5);
        }
        fs::write(directory.path().join(name), &originals[name]).unwrap();
        fs::write(
            directory.path().join("manifest.json"),
            &originals["manifest.json"],
        )
        .unwrap();
    }
}
