//! The memory that a training takes is the memory that was predicted, so that `--memory-limit` means something.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::fs;

use crate::command::{run, write};

/// The number of MiB after these words.
fn mebibytes(said: &str, before: &str) -> f64 {
    let (_, after) = said.split_once(before).unwrap();
    let (number, rest) = after.split_once(' ').unwrap();
    assert!(rest.starts_with("MiB"), "{said}");
    number.parse().unwrap()
}

#[test]
fn the_peak_is_predicted_with_the_second_training() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../data/debian-small/train.jsonl.gz"
    );
    let all = path("all.jsonl");
    let ran = run(["convert", source, "--to", "jsonl", "--out", &all]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = fs::read_to_string(all).unwrap();
    let some: String = all
        .lines()
        .take(3000)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let data = write(dir.path(), "train.jsonl", &some);
    let model = path("model");
    let train = |more: &[&str]| {
        let fixed = ["train", &data, "--out", &model, "--threads", "2"];
        let short = ["--set", "stage1.epochs=1", "--set", "stage2.epochs=1"];
        run(fixed.iter().chain(&short).chain(more))
    };
    let ran = train(&[]);
    assert!(ran.stderr.contains("training 2 of 2"), "{}", ran.stderr);
    let measured = mebibytes(&ran.stderr, "peak memory ");
    let predicted = mebibytes(&ran.stderr, "(predicted ");
    let error = predicted / measured - 1.0;
    assert!(
        error.abs() < 0.1,
        "predicted {predicted} MiB, measured {measured} MiB"
    );

    let limit = (0.99 * predicted / 1024.0).to_string();
    let ran = train(&["--memory-limit", &limit, "--overwrite"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("more than the limit"), "{}", ran.stderr);
}
