//! The programs in `examples/` run on a small data set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs an example and returns its output.
#[track_caller]
fn run(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(program(name))
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The example as `cargo test` has built it; built here if only this test binary was.
fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().unwrap().parent().unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = profile.join("examples").join(file);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--example", name]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "{name} does not build");
    }
    path
}

/// A directory with a train and a test part: texts of two topics.
fn write_data(directory: &Path) {
    fs::create_dir(directory).unwrap();
    for (file, n_points) in [("train.jsonl", 60), ("test.jsonl", 12)] {
        let line = |point: usize| match point % 2 {
            0 => format!("{{\"text\": \"ripe apple {point}\", \"labels\": [\"fruit\"]}}\n"),
            _ => format!("{{\"text\": \"fast car {point}\", \"labels\": [\"vehicle\"]}}\n"),
        };
        let lines: String = (0..n_points).map(line).collect();
        fs::write(directory.join(file), lines).unwrap();
    }
}

#[test]
fn the_examples_train_predict_evaluate_and_resume() {
    let place = tempfile::tempdir().unwrap();
    let (data, model) = (place.path().join("data"), place.path().join("model"));
    write_data(&data);
    let epochs = Path::new("stage1.epochs=10");
    let printed = run("train_and_save", &[&data, &model, epochs]);
    assert_eq!(printed, "trained on 60 texts with 2 labels\n");

    let printed = run("predict", &[&model, Path::new("a ripe apple")]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 3, "{printed}");
    assert_eq!(lines[0], "a ripe apple");
    assert!(lines[1].ends_with("fruit"), "{printed}");

    let printed = run("evaluate", &[&model, &data]);
    assert!(printed.starts_with("p@1 100.00 %\n"), "{printed}");
    assert_eq!(printed.lines().count(), 4);

    let watched = place.path().join("watched");
    let printed = run("watch_and_cancel", &[&data, &watched, Path::new("0")]);
    assert!(printed.contains("epoch 1: loss "), "{printed}");
    elias::tools::verify(&watched).unwrap();
    assert!(!elias::tools::is_unfinished(&watched));
}
