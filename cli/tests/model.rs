//! `elias train`, `predict` and `evaluate MODEL` on data of a few lines.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{Ran, elias, run, write};

/// Texts about fruit and vehicles.
pub(crate) fn data(dir: &Path) -> String {
    let mut lines = String::new();
    for colour in ["red", "green", "blue", "brown"] {
        for (words, label) in [("ripe apple pear", "fruit"), ("fast car bike", "vehicle")] {
            for _ in 0..8 {
                lines.push_str(&format!(
                    "{{\"text\": \"{words} {colour}\", \"labels\": [\"{label}\", \"{colour}\"]}}\n"
                ));
            }
        }
    }
    write(dir, "train.jsonl", &lines)
}

const FAST: [&str; 8] = [
    "--set",
    "train.batch_size=4",
    "--set",
    "encoder.dim=16",
    "--set",
    "stage1.epochs=8",
    "--set",
    "stage2.epochs=8",
];

pub(crate) fn train(data: &str, out: &Path, more: &[&str]) -> Ran {
    let out = out.to_str().unwrap();
    let arguments = ["train", data, "--out", out];
    run(arguments.iter().chain(&FAST).chain(more))
}

/// A directory with data and a model.
fn trained() -> (tempfile::TempDir, String, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let ran = train(&data, &model, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    (dir, data, model)
}

pub(crate) fn first_label(line: &str) -> String {
    let json: Value = serde_json::from_str(line).unwrap();
    json["labels"][0]["label"].as_str().unwrap().to_string()
}

#[test]
fn a_trained_model_predicts_and_is_measured() {
    let (dir, data, model) = trained();
    let model = model.to_str().unwrap();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n\nfast bike\n");
    let ran = run(["predict", model, &texts, "--top-k", "2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    assert_eq!(first_label(lines[0]), "fruit");
    assert_eq!(first_label(lines[2]), "vehicle");

    let ran = run(["evaluate", model, &data, "--json", "--by-decile"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(90.0 < json["p@1"].as_f64().unwrap(), "{json}");
    for key in [
        "psp@5",
        "ms_per_point",
        "ms_per_query_p50",
        "ms_per_query_p99",
    ] {
        assert!(0.0 < json[key].as_f64().unwrap(), "{key}: {json}");
    }
    assert_eq!(json["n_points"], 64);
    assert_eq!(json["by_decile"].as_array().unwrap().len(), 10);
}

#[test]
fn a_calibrated_model_gives_probabilities_and_says_how_far_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    // The texts of this data are mostly the same.
    let more = [
        "--set",
        "hold_out.min_points=1",
        "--set",
        "hold_out.near_duplicates=2",
    ];
    let ran = train(&data, &model, &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let model = model.to_str().unwrap();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n");
    let ran = run(["predict", model, &texts, "--top-k", "2"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let probability = |at: usize| json["labels"][at]["probability"].as_f64().unwrap();
    assert!(
        0.5 < probability(0) && probability(1) <= probability(0),
        "{json}"
    );

    let ran = run(["evaluate", model, &data, "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(json["ece@5"].as_f64().unwrap() < 0.3, "{json}");
    let bins = json["reliability"].as_array().unwrap();
    let n_answers = bins.iter().map(|bin| bin["n_answers"].as_u64().unwrap());
    assert!(64 <= n_answers.sum::<u64>(), "{json}");
}

#[test]
fn answers_keep_the_order_and_ids_of_standard_input_in_every_format() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let lines: Vec<String> = (0..3000)
        .map(|at| {
            let text = ["ripe apple", "fast car"][at % 2];
            format!("{{\"id\": \"{at}\", \"text\": \"{text}\"}}\n")
        })
        .collect();
    let input = write(dir.path(), "texts.jsonl", &lines.concat());
    let output = elias(["predict", model, "-", "-k", "1"])
        .stdin(std::fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout.lines().count(), 3000);
    for (at, line) in stdout.lines().enumerate() {
        assert!(line.starts_with(&format!("{{\"id\": \"{at}\"")), "{line}");
        assert_eq!(first_label(line), ["fruit", "vehicle"][at % 2]);
    }

    for format in ["tsv", "npz", "sparse"] {
        let out = dir.path().join(format);
        let out = out.to_str().unwrap();
        let ran = run([
            "predict",
            model,
            &input,
            "--output-format",
            format,
            "--out",
            out,
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(Path::new(out).metadata().unwrap().len() > 0, "{format}");
    }
}

#[test]
fn a_threshold_leaves_answers_out() {
    let (dir, _, model) = trained();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n");
    let model = model.to_str().unwrap();
    let ran = run(["predict", model, &texts, "--threshold", "1"]);
    assert_eq!(ran.stdout, "{\"labels\": []}\n", "{}", ran.stderr);
    let ran = run(["predict", model, &texts, "--threshold", "50"]);
    assert_eq!(ran.code, Some(2));
    let expected = "--threshold: found 50, expected a number from 0 to 1";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn the_same_seed_gives_the_same_answers_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let answers = |name: &str, more: &[&str]| {
        let model = dir.path().join(name);
        let ran = train(&data, &model, more);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        run(["predict", model.to_str().unwrap(), &data]).stdout
    };
    let one = answers("one", &["--threads", "1", "--seed", "5"]);
    assert_eq!(one, answers("two", &["--threads", "2", "--seed", "5"]));
    assert_ne!(one, answers("other", &["--seed", "6"]));
}

#[test]
fn a_model_is_replaced_only_when_asked_to() {
    let (_dir, data, model) = trained();
    let ran = train(&data, &model, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--overwrite"), "{}", ran.stderr);
    let ran = train(&data, &model, &["--overwrite"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn test_data_is_watched_and_measured_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--test", &data]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("validation: P@1"), "{}", ran.stderr);
    assert!(ran.stdout.contains("nDCG"), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in ["C: clusters", "peak", "time: about", "64"] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    assert!(!model.exists());
}

#[test]
fn a_memory_limit_refuses_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--memory-limit", "0.001"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("lower "), "{}", ran.stderr);
    assert!(!model.exists());
}

#[test]
fn what_cannot_be_meant_exits_with_two_before_anything_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    for (more, part_of_message) in [
        (&["--set", "index.beem_size=3"][..], "beem_size"),
        (&["--set", "encoder.dim=many"], "many"),
        (&["--preset", "amazon"], "amazon-670k"),
        (&["--preset", "amazon-670k"], "--encoder DIR"),
        (&["--ranker", "maybe"], "maybe"),
        (&["--memory-limit", "0"], "GiB"),
        (&["--members", "0"], "ensemble.members"),
        (&["--seed", "18446744073709551615"], "9223372036854775807"),
        (&["--set", "encoder.dim=0"], "encoder.dim"),
    ] {
        let ran = train("no-such-data", &model, more);
        assert_eq!(ran.code, Some(2), "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part_of_message), "{}", ran.stderr);
    }
}

#[test]
fn a_wrong_path_or_a_wrong_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let ran = train("no-such-data", &model, &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no-such-data"), "{}", ran.stderr);

    let settings = write(dir.path(), "settings.toml", "[stage1]\nepoch = 3\n");
    let ran = train(&data, &model, &["--config", &settings]);
    assert_eq!(ran.code, Some(1));
    let names_both = ran.stderr.contains("settings.toml") && ran.stderr.contains("\"epoch\"");
    assert!(names_both, "{}", ran.stderr);

    let ran = run(["predict", &data, &data]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("train.jsonl"), "{}", ran.stderr);
}

#[test]
fn a_misspelt_path_is_told_with_the_one_that_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let settings = write(dir.path(), "settings.toml", "");
    write(dir.path(), "model/manifest.json", "{}");
    write(dir.path(), "answers.jsonl", "{}");
    write(dir.path(), "filter.txt", "0 0");
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let out = path("out");
    let (model, answers) = (path("model"), path("answers.jsonl"));
    let wrong = [
        "tran.jsonl",
        "settings.tml",
        "modle",
        "answer.jsonl",
        "filtr.txt",
    ];
    let [
        wrong_data,
        wrong_settings,
        wrong_model,
        wrong_answers,
        wrong_filter,
    ] = wrong.map(path);
    let train_data = ["train", &wrong_data, "--out", &out];
    let train_config = ["train", &data, "--out", &out, "--config", &wrong_settings];
    let filter = ["--filter", &wrong_filter];
    let evaluate_filter = ["evaluate", "--predictions", &answers, &data];
    let evaluate_filter = [&evaluate_filter[..], &filter].concat();
    for (arguments, meant) in [
        (&train_data[..], &data),
        (&train_config, &settings),
        (&["predict", &wrong_model], &model),
        (&["evaluate", &wrong_model, &data], &model),
        (
            &["evaluate", "--predictions", &wrong_answers, &data],
            &answers,
        ),
        (&evaluate_filter, &path("filter.txt")),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
        let hint = format!("did you mean {meant}?");
        assert!(ran.stderr.contains(&hint), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn the_printed_configuration_can_be_trained_with() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let printed = run(["config", "--set", "encoder.dim=8"]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(printed.stdout.contains("\ndim = 8\n"), "{}", printed.stdout);
    let settings = write(dir.path(), "settings.toml", &printed.stdout);
    let again = run(["config", "--config", &settings]);
    assert_eq!(again.stdout, printed.stdout, "{}", again.stderr);
    let ran = run(["train", &data, "--dry-run", "--config", &settings]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);

    let preset = run(["config", "--preset", "amazon-670k"]);
    assert!(
        preset.stdout.contains("n_clusters = 8192"),
        "{}",
        preset.stdout
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_training_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let mut child = elias(["train", &data, "--out", model.to_str().unwrap()])
        .args(["--set", "stage1.epochs=1000000"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("epoch 2/") {
        line.clear();
        assert_ne!(
            stderr.read_line(&mut line).unwrap(),
            0,
            "it ended too early"
        );
    }
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        rest.contains("to continue: ") && rest.contains("--resume"),
        "{rest}"
    );
    assert!(!model.join("manifest.json").exists());
}

#[test]
fn benchmarks_report_the_figures_of_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let arguments = ["bench", "train", &data, "--json"];
    let ran = run(arguments.iter().chain(&FAST));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    for stage in ["stage1", "stage2"] {
        for key in [
            "points_per_s",
            "ms_per_step",
            "gflops",
            "sgemm_gflops",
            "fraction_of_sgemm",
            "peak_rss_bytes",
        ] {
            assert!(!json[stage][key].is_null(), "{stage} {key}: {json}");
        }
    }

    let ran = run(["bench", "train", &data, "--steps", "5"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("at least 6"), "{}", ran.stderr);

    let (_dir, data, model) = trained();
    let ran = run(["bench", "predict", model.to_str().unwrap(), &data, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    for key in [
        "ms_per_query_p50",
        "ms_per_query_p99",
        "queries_per_s",
        "rows_scored_per_query",
        "bytes_read_per_query",
    ] {
        assert!(0.0 < json[key].as_f64().unwrap(), "{key}: {json}");
    }
}

#[test]
fn synonyms_are_kept_with_the_model_and_its_vectors_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let list = write(dir.path(), "words.tsv", "poire\tpear\nVoiture\tcar\n");
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--synonyms", &list]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 lines of synonyms"), "{}", ran.stderr);
    std::fs::remove_file(&list).unwrap();
    let model = model.to_str().unwrap();
    let texts = write(dir.path(), "texts.txt", "une poire\nvoiture\n");
    let ran = run(["predict", model, &texts]);
    let labels: Vec<String> = ran.stdout.lines().map(first_label).collect();
    assert_eq!(labels, ["fruit", "vehicle"]);

    let out = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (vectors, labels) = (out("texts.npy"), out("labels.npy"));
    let ran = run(["embed", model, &texts, "--out", &vectors]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let bytes = std::fs::read(&vectors).unwrap();
    assert_eq!(bytes.len(), 128 + 2 * 16 * 4);
    assert!(String::from_utf8_lossy(&bytes[..128]).contains("(2, 16)"));
    let ran = run(["embed", model, "--labels", "--out", &labels]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read(&labels).unwrap().len(), 128 + 6 * 16 * 4);
    let names = std::fs::read_to_string(format!("{labels}.labels.txt")).unwrap();
    assert_eq!(names.lines().count(), 6);

    let bad = write(dir.path(), "bad.tsv", "poire\n");
    let ran = train(&data, &dir.path().join("other"), &["--synonyms", &bad]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("bad.tsv:1"), "{}", ran.stderr);
}
