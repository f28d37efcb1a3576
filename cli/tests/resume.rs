//! `elias train --resume` after kill -9, Ctrl-C and a full disk: the same bytes as without.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::command::{elias, run, write};

/// A directory that is removed in the end; in memory where there is such a place, since every step is synced here.
fn temporary() -> tempfile::TempDir {
    let in_memory = Path::new("/dev/shm");
    match in_memory.is_dir() {
        true => tempfile::tempdir_in(in_memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

fn data(dir: &Path) -> String {
    let mut lines = String::new();
    for point in 0..80 {
        let (first, second) = (point % 10, (point * 7) % 10);
        lines.push_str(&format!(
            "{{\"text\": \"word{first} word{second}\", \"labels\": [\"l{first}\", \"l{second}\"]}}\n"
        ));
    }
    write(dir, "train.jsonl", &lines)
}

/// A training with a checkpoint at every step.
fn arguments<'a>(data: &'a str, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["train", data, "--out", out.to_str().unwrap()];
    arguments.extend(["--checkpoint-every", "0"]);
    for setting in [
        "encoder.dim=8",
        "index.n_clusters=3",
        "index.beam_size=2",
        "stage1.epochs=20",
        "stage2.epochs=20",
        "train.batch_size=10",
    ] {
        arguments.extend(["--set", setting]);
    }
    arguments.extend(more);
    arguments
}

/// Every file of a directory, and no folder; the times of the training differ and are no part of the model.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap();
    let entries = entries.map(|entry| {
        let entry = entry.unwrap();
        assert!(entry.path().is_file(), "{:?} is left", entry.path());
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    });
    entries.collect()
}

fn uninterrupted(dir: &Path, data: &str) -> BTreeMap<String, Vec<u8>> {
    let model = dir.join("uninterrupted");
    let ran = run(arguments(data, &model, &["--threads", "2"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    contents(&model)
}

/// Numbers for kill points, the same with every run.
fn next_number(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    *state >> 33
}

/// Kills and resumes trainings until there were `n_wanted` kills over both stages; each must end in the same bytes.
#[track_caller]
fn check_kills(settings: &[&str], n_wanted: usize) {
    let dir = temporary();
    let data = data(dir.path());
    let settings: Vec<&str> = settings
        .iter()
        .flat_map(|setting| ["--set", setting])
        .collect();
    let model = dir.path().join("uninterrupted");
    let ran = run(arguments(&data, &model, &settings));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected = contents(&model);
    let mut state = 1;
    let mut kills: Vec<String> = Vec::new();
    let was_in = |kills: &[String], stage: &str| kills.iter().any(|line| line.starts_with(stage));
    for round in 0.. {
        // A machine that is slow to kill lets a training get far; the next one makes up for it.
        let is_enough =
            n_wanted <= kills.len() && was_in(&kills, "stage 1") && was_in(&kills, "stage 2");
        if is_enough {
            break;
        }
        assert!(round < 40, "only {} kills: {kills:?}", kills.len());
        let model = dir.path().join(format!("model-{round}"));
        loop {
            let threads = ["1", "2", "7"][kills.len() % 3];
            let more = [&["--resume", "--threads", threads][..], &settings].concat();
            let mut child = elias(arguments(&data, &model, &more))
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let mut epochs = lines
                .map_while(Result::ok)
                .filter(|line| line.contains(" epoch "));
            // At least two, so that it gets ahead even if killed while the first is told.
            let last = epochs.nth(1 + next_number(&mut state) as usize % 3);
            let Some(last) = last else {
                assert_eq!(child.wait().unwrap().code(), Some(0));
                break;
            };
            // SIGKILL, wherever it is by now.
            child.kill().unwrap();
            if child.wait().unwrap().success() {
                break;
            }
            kills.push(last);
            assert!(kills.len() <= 200, "it does not get ahead");
        }
        assert_eq!(contents(&model), expected, "after {} kills", kills.len());
    }
}

#[test]
fn trainings_killed_at_twenty_points_end_in_the_same_bytes() {
    check_kills(&[], 20);
}

#[test]
fn ensembles_with_a_warm_up_and_rare_updates_survive_kills_as_well() {
    let settings = [
        "ensemble.members=2",
        "hold_out.n_points=12",
        "hold_out.min_points=5",
        "ablation.warmup_epochs=2",
        "ablation.update_every=3",
        "stage1.epochs=6",
        "stage2.epochs=6",
    ];
    check_kills(&settings, 6);
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_told_and_the_training_goes_on_once_there_is_space() {
    let dir = temporary();
    let data = data(dir.path());
    let expected = uninterrupted(dir.path(), &data);
    let model = dir.path().join("model");
    // No file may grow above two blocks; the system would end a process that writes more.
    let script = "ulimit -f 2; exec \"$@\"";
    let binary = env!("CARGO_BIN_EXE_elias");
    let output = std::process::Command::new("sh")
        .args(["-c", script, "sh", binary])
        .args(arguments(&data, &model, &[]))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write"), "{stderr}");
    assert!(!model.join("manifest.json").exists());
    let ran = run(arguments(&data, &model, &["--resume"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(contents(&model), expected);
}

#[test]
fn changed_settings_are_named_when_resuming() {
    let dir = temporary();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let mut child = elias(arguments(&data, &model, &[]))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let second = lines
        .map(Result::unwrap)
        .find(|line| line.contains("epoch 2/"));
    assert!(second.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = run(arguments(&data, &model, &["--resume", "--seed", "77"]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("train.seed was"), "{}", ran.stderr);
    let ran = run(arguments(&data, &model, &[]));
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("--resume continues it"),
        "{}",
        ran.stderr
    );
}
