//! Nothing is lost and nothing is wrong in silence: pipes, outputs, interrupted replacements, numbered labels.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::command::{Ran, elias, run, write};

pub(crate) fn lines(n_points: usize) -> String {
    let colours = ["red", "green", "blue"];
    let line = |at: usize| {
        let (words, label) = [("ripe apple pear", "fruit"), ("fast car bike", "vehicle")][at % 2];
        let colour = colours[at / 2 % 3];
        format!("{{\"text\": \"{words} {colour}\", \"labels\": [\"{label}\", \"{colour}\"]}}\n")
    };
    (0..n_points).map(line).collect()
}

pub(crate) fn train(data: &str, out: &Path, more: &[&str]) -> Ran {
    run(arguments(data, out, more))
}

pub(crate) fn arguments(data: &str, out: &Path, more: &[&str]) -> Vec<String> {
    let out = out.to_str().unwrap();
    let fixed = ["train", data, "--out", out, "--set", "encoder.dim=16"];
    let fast = ["--set", "train.batch_size=4", "--set", "stage2.epochs=8"];
    let all = fixed.iter().chain(&fast).chain(more);
    all.map(|argument| (*argument).to_owned()).collect()
}

/// A training that has just printed a line with these words, and what it prints after it.
pub(crate) fn training_at(words: &str, arguments: &[String]) -> (Child, BufReader<ChildStderr>) {
    let mut child = elias(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    (child, stderr)
}

/// A directory with data and a model.
pub(crate) fn trained() -> (tempfile::TempDir, String, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(48));
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--set", "stage1.epochs=8"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (dir, data, model)
}

/// Runs with this on standard input.
fn run_with_input(arguments: &[&str], input: &str) -> Ran {
    let mut child = elias(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
#[cfg(unix)]
fn pipes_and_standard_input_are_read_once_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    // More than any buffer of a pipe holds.
    let content = lines(20_000);
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, expected) = (
        write(dir.path(), "file.jsonl", &content),
        path("expected.jsonl"),
    );
    let ran = run(["convert", &file, "--to", "jsonl", "--out", &expected]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected = std::fs::read_to_string(expected).unwrap();
    assert_eq!(expected.lines().count(), 20_000);
    for (source, name) in [("/dev/stdin", "device"), ("-", "dash")] {
        let out = path(name) + ".jsonl";
        let ran = run_with_input(
            &["convert", source, "--to", "jsonl", "--out", &out],
            &content,
        );
        assert_eq!(ran.code, Some(0), "{source}: {}", ran.stderr);
        let written = std::fs::read_to_string(out).unwrap();
        assert!(written == expected, "{source}");
    }

    let fifo = path("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let (writer, written) = (fifo.clone(), content.clone());
    let writer = std::thread::spawn(move || std::fs::write(writer, written));
    let out = path("fifo.jsonl");
    let ran = run(["convert", &fifo, "--to", "jsonl", "--out", &out]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    writer.join().unwrap().unwrap();
    assert!(std::fs::read_to_string(out).unwrap() == expected);
}

#[test]
fn an_output_replaces_nothing_unless_asked_and_never_an_input() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n");
    let out = write(dir.path(), "answers.jsonl", "precious\n");
    let predict = |out: &str, more: &[&str]| {
        let fixed = ["predict", model, &texts, "--out", out];
        run(fixed.iter().chain(more))
    };
    let ran = predict(&out, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--overwrite"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious\n");
    assert_eq!(predict(&out, &["--overwrite"]).code, Some(0));
    assert!(std::fs::read_to_string(&out).unwrap().contains("labels"));

    let ran = predict(&texts, &["--overwrite"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("an input and an output"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_to_string(&texts).unwrap(), "ripe apple\n");
}

#[test]
#[cfg(unix)]
fn the_advice_after_ctrl_c_works_word_for_word_and_the_old_model_stays_until_then() {
    let (dir, data, model) = trained();
    let longer = ["--set", "stage1.epochs=1500"];
    let expected = dir.path().join("uninterrupted");
    assert_eq!(train(&data, &expected, &longer).code, Some(0));

    let before = std::fs::read(model.join("manifest.json")).unwrap();
    let more = ["--set", "stage1.epochs=1500", "--overwrite"];
    let mut child = elias(arguments(&data, &model, &more))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("epoch 2/") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended early");
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let after = std::fs::read(model.join("manifest.json")).unwrap();
    assert!(before == after, "the old model is gone");

    let (_, command) = rest.split_once("to continue: ").unwrap();
    let ran = Command::new("sh")
        .args(["-c", command.trim()])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command}\n{stderr}");
    let manifest = |of: &Path| std::fs::read(of.join("manifest.json")).unwrap();
    assert!(manifest(&model) == manifest(&expected));
    assert!(!model.join("checkpoint").exists());
}

#[test]
#[cfg(unix)]
fn nobody_writes_into_the_directory_of_a_running_training() {
    let (dir, data, model) = trained();
    let busy = dir.path().join("busy");
    let endless = ["--set", "stage1.epochs=1000000"];
    let (mut child, _stderr) = training_at("epoch 1/", &arguments(&data, &busy, &endless));
    let (model, busy) = (model.to_str().unwrap(), busy.to_str().unwrap());
    let ran = run(["prune", model, "--out", busy, "--top-k", "2"]);
    let second = train(&data, Path::new(busy), &[]);
    let replacing = train(&data, Path::new(busy), &["--overwrite"]);
    child.kill().unwrap();
    child.wait().unwrap();
    for ran in [ran, second, replacing] {
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("is writing"), "{}", ran.stderr);
    }
}

#[test]
fn numbered_predictions_need_the_names_of_their_labels() {
    let (dir, data, model) = trained();
    let model = model.to_str().unwrap();
    // The labels of this file come in another order than those of training.
    let reversed: Vec<String> = lines(48).lines().rev().map(str::to_owned).collect();
    let test = write(dir.path(), "test.jsonl", &(reversed.join("\n") + "\n"));
    for format in ["npz", "sparse"] {
        let out = dir.path().join(format!("scores.{format}"));
        let out = out.to_str().unwrap();
        let ran = run([
            "predict",
            model,
            &test,
            "--output-format",
            format,
            "--out",
            out,
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let evaluate = |more: &[&str]| {
            let fixed = ["evaluate", "--predictions", out, &test, "--json"];
            run(fixed.iter().chain(more))
        };
        let precision = |ran: &Ran| -> f64 {
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            json["p@1"].as_f64().unwrap()
        };
        let found = precision(&evaluate(&[]));
        assert!(found > 90.0, "{format}: {found}");
        let list = format!("{out}.labels.txt");
        assert_eq!(precision(&evaluate(&["--train", &data])), found);
        let moved = dir.path().join("names.txt");
        std::fs::rename(&list, &moved).unwrap();
        let ran = evaluate(&[]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("--labels"), "{}", ran.stderr);
        assert_eq!(
            precision(&evaluate(&["--labels", moved.to_str().unwrap()])),
            found
        );
    }
}

#[test]
fn predictions_that_share_no_label_with_the_data_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let test = write(
        dir.path(),
        "test.jsonl",
        "{\"text\": \"a\", \"labels\": [\"x\"]}\n",
    );
    let predicted = "{\"labels\": [{\"label\": \"y\", \"score\": 1.0}]}\n";
    let predictions = write(dir.path(), "p.jsonl", predicted);
    let ran = run(["evaluate", "--predictions", &predictions, &test]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("no label in common"), "{}", ran.stderr);
}

#[test]
fn a_coprocess_gets_an_answer_to_every_line() {
    let (_dir, _, model) = trained();
    let mut child = elias(["predict", model.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for text in ["ripe apple", "fast car", "ripe pear"] {
        writeln!(stdin, "{text}").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert!(answer.contains("labels"), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn absurd_numbers_of_threads_are_capped() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(8));
    let output = elias(["train", &data, "--dry-run"])
        .env("RAYON_NUM_THREADS", "1000000")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("instead of 1000000"), "{stderr}");
}

#[test]
fn nonsense_values_are_refused_by_name() {
    let (_dir, data, model) = trained();
    let model = model.to_str().unwrap();
    for arguments in [
        ["predict", model, "--threshold", "nan"],
        ["predict", model, "--top-k", "0"],
        ["train", &data, "--dry-run", "--set=train.lambda=-1"],
        [
            "train",
            &data,
            "--dry-run",
            "--set=ablation.weight_decay=-0.1",
        ],
        ["train", &data, "--dry-run", "--set=encoder.max_len=0"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        let key = arguments[3].trim_start_matches("--set=");
        let key = key.split('=').next().unwrap();
        let named = ran.stderr.contains(key) || ran.stderr.contains(arguments[2]);
        assert!(named && !ran.stderr.contains("-2"), "{}", ran.stderr);
    }
}

#[test]
fn a_command_never_replaces_what_it_reads() {
    let (dir, data, model) = trained();
    let model = model.to_str().unwrap();
    let manifest = format!("{model}/manifest.json");
    let commands: [&[&str]; 5] = [
        &["convert", &data, "--to", "csv", "--out", &data],
        &["predict", model, &data, "--out", &manifest],
        &[
            "predict",
            model,
            &data,
            "--out",
            &format!("{model}/new.jsonl"),
        ],
        &["report", model, &data, "--out", &manifest],
        &["prune", model, "--threshold", "0.1", "--out", model],
    ];
    let before = std::fs::read(&manifest).unwrap();
    for command in commands {
        let ran = run(command.iter().chain(&["--overwrite"]));
        assert_eq!(ran.code, Some(2), "{command:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("is an input and an output"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(std::fs::read(&manifest).unwrap(), before);
    assert_eq!(std::fs::read_to_string(&data).unwrap(), lines(48));
    drop(dir);
}

#[test]
fn resuming_a_finished_training_leaves_another_one_that_was_interrupted() {
    let (dir, data, model) = trained();
    let other = write(dir.path(), "other.jsonl", &lines(400));
    let more = [
        "--overwrite",
        "--checkpoint-every",
        "0",
        "--set",
        "stage1.epochs=200",
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_elias"))
        .args(arguments(&other, &model, &more))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let slot = model.join("checkpoint").join("slot-0");
    while !slot.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(model.join("checkpoint").exists());
    let ran = train(&data, &model, &["--set", "stage1.epochs=8", "--resume"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the data has changed"),
        "{}",
        ran.stderr
    );
    assert!(model.join("checkpoint").exists());
}

#[test]
fn a_training_larger_than_the_machine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(48));
    let model = dir.path().join("model");
    let ran = train(&data, &model, &["--set", "encoder.dim=1000000000"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("this machine's memory"),
        "{}",
        ran.stderr
    );
    assert!(!model.exists());
}

#[test]
fn a_file_beside_the_model_that_is_not_its_times_stays() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(48));
    let precious = write(dir.path(), "model-times.json", "precious");
    let ran = train(&data, &dir.path().join("model"), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(precious).unwrap(), "precious");
}

#[test]
fn a_label_that_tsv_cannot_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = lines(48).replace("\"fruit\"", "\"fruit\\tripe\"");
    let data = write(dir.path(), "train.jsonl", &text);
    let model = dir.path().join("model");
    train(&data, &model, &[]);
    let model = model.to_str().unwrap();
    let ran = run([
        "predict",
        model,
        &data,
        "--output-format",
        "tsv",
        "--top-k",
        "5",
    ]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("tsv cannot hold"), "{}", ran.stderr);
}
