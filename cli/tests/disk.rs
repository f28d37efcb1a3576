//! Disks that are read-only or full, each a small file system of its own.
//!
//! They bind the superuser too. Where the system lets nobody mount within a namespace, which is said, what remains are
//! the tests with a limit on the size of files and with paths below a file.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

use crate::command::{run, write};

/// Runs a shell script in namespaces of its own, in which it may mount; nothing where that is forbidden.
fn with_mounts(script: &str, arguments: &[&str]) -> Option<Output> {
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
        ]);
        command
    };
    let place = tempfile::tempdir().unwrap();
    let probe = in_namespace("mount -t tmpfs tmpfs \"$1\"")
        .arg(place.path())
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: file systems cannot be mounted here");
        return None;
    }
    let output = in_namespace(script).args(arguments).output().unwrap();
    Some(output)
}

fn data(dir: &Path) -> String {
    let line = |point: usize| {
        let label = point % 10;
        format!("{{\"text\": \"word{label} more{point}\", \"labels\": [\"l{label}\"]}}\n")
    };
    write(dir, "train.jsonl", &(0..80).map(line).collect::<String>())
}

const TRAIN: &str = r#"
    elias=$1 data=$2 place=$3
    train() {
        "$elias" train "$data" --checkpoint-every 0 --set encoder.dim=8 --set index.n_clusters=3 \
            --set index.beam_size=2 --set stage1.epochs=2 --set stage2.epochs=2 --out "$place/model" "$@" 2>&1 \
            && echo "exit 0" || echo "exit $?"
    }
    bytes() { (cd "$place/model" && find . -type f | sort | xargs sha256sum); }
"#;

/// The output of a script that mounts at `$place`, line by line.
fn said(script: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let place = dir.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let script = format!("{TRAIN}\n{script}");
    let arguments = [env!("CARGO_BIN_EXE_elias"), &data, place.to_str().unwrap()];
    let output = with_mounts(&script, &arguments)?;
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    Some(stdout)
}

#[test]
fn a_read_only_disk_is_told_and_its_model_still_answers() {
    let script = r#"
        set -e
        mount -t tmpfs tmpfs "$place"
        train -q
        before=$(bytes)
        mount -o remount,ro "$place"
        train --overwrite
        [ "$before" = "$(bytes)" ] && echo "the model is the same"
        echo word3 | "$elias" -q predict "$place/model" --top-k 1
    "#;
    let Some(said) = said(script) else {
        return;
    };
    assert!(said.starts_with("exit 0\n"), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(said.contains("exit 1\nthe model is the same\n"), "{said}");
    assert!(!said.contains("epoch"), "it trains for nothing: {said}");
    assert!(said.contains("\"labels\": [{"), "{said}");
}

#[test]
fn a_disk_that_runs_full_is_told_and_the_training_goes_on_once_it_has_grown() {
    let script = r#"
        set -e
        mount -t tmpfs -o size=64m tmpfs "$place"
        train -q
        expected=$(bytes)
        rm -r "$place/model"
        mount -o remount,size=20k "$place"
        train
        [ -e "$place/model/manifest.json" ] && echo "half a model"
        mount -o remount,size=64m "$place"
        train -q --resume
        [ "$expected" = "$(bytes)" ] && echo "the same bytes"
    "#;
    let Some(said) = said(script) else {
        return;
    };
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("exit 1\nexit 0\nthe same bytes\n"), "{said}");
}

#[test]
fn a_place_that_cannot_be_is_told_before_the_data_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "file", "mine");
    let below = format!("{file}/model");
    let ran = run(["train", &data(dir.path()), "--out", &below]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(&file), "{}", ran.stderr);
    assert!(!ran.stderr.contains("read "), "{}", ran.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_words() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    // Blocks of 512 bytes: the matrices do not fit.
    let script = "ulimit -f 4; exec \"$0\" \"$@\"";
    let ran = Command::new("sh")
        .args(["-c", script])
        .arg(env!("CARGO_BIN_EXE_elias"))
        .args(["train", &data, "--set", "encoder.dim=64", "--out"])
        .arg(&model)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    // A signal has no code.
    assert_eq!(ran.status.code(), Some(1), "{stderr}");
    assert!(stderr.to_lowercase().contains("too large"), "{stderr}");
}
