//! `elias update` and `elias learn`: what they say, kill -9 at any time, and two writers at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use elias::Predictor;

use crate::command::{Ran, elias, run, write};

/// Kills of each command.
const N_KILLS: u32 = 50;

fn lines(first: usize, n_points: usize) -> String {
    let line = |point: usize| {
        let kind = first + point % 5;
        let (word, other) = (kind % 5, point % 7);
        format!("{{\"text\": \"word{word} other{other}\", \"labels\": [\"kind{kind}\"]}}\n")
    };
    (0..n_points).map(line).collect()
}

/// A directory with a model and new data.
struct Model {
    directory: tempfile::TempDir,
    path: PathBuf,
    news: String,
}

fn model() -> Model {
    let directory = tempfile::tempdir().unwrap();
    let data = write(directory.path(), "train.jsonl", &lines(0, 100));
    let path = directory.path().join("model");
    let out = path.to_str().unwrap();
    let small = ["encoder.dim=8", "stage1.epochs=4", "stage2.epochs=2"];
    let settings = small.iter().flat_map(|setting| ["--set", setting]);
    succeed(run(["train", &data, "--out", out]
        .into_iter()
        .chain(settings)));
    let news = write(directory.path(), "news.jsonl", &lines(3, 40));
    Model {
        directory,
        path,
        news,
    }
}

#[track_caller]
fn succeed(ran: Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

/// A copy of a directory without folders.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap().path();
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

fn manifest(model: &Path) -> String {
    fs::read_to_string(model.join("manifest.json")).unwrap()
}

/// Kills a process after this part of a duration, wherever it is by then; whether it had ended well before.
fn kill_after(mut child: Child, part: f64, duration: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < part * duration.as_secs_f64() {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap().success()
}

#[test]
fn a_model_goes_on_with_new_texts_and_labels() {
    let Model {
        directory,
        path,
        news,
    } = &model();
    let (model, out) = (path.to_str().unwrap(), directory.path().join("out"));
    let out = out.to_str().unwrap();
    let before = manifest(path);
    let said = succeed(run(["update", model, news, "--out", out]));
    let expected =
        format!("learned 40 points, 0 corrections and 3 new labels, model written to {out}");
    assert!(said.contains(&expected), "{said}");
    assert_eq!(manifest(path), before);
    let listed = run(["labels", "list", out, "--counts"]).stdout;
    assert!(listed.contains("kind4\t28\nkind5\t8\n"), "{listed}");
    let answer = run(["predict", out, "--text", "word1 other1", "--top-k", "3"]).stdout;
    assert!(answer.contains("\"kind6\""), "{answer}");
    let ran = run(["update", model, news, "--out", out]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("already"), "{}", ran.stderr);
    let ran = run(["update", "nothing", news]);
    assert!(ran.stderr.contains("nothing"), "{}", ran.stderr);
}

#[test]
fn an_update_that_is_killed_leaves_the_old_model_or_the_new_one() {
    let Model {
        directory,
        path,
        news,
    } = &model();
    let correction = "{\"text\": \"word1\", \"labels\": [\"kind2\"], \"not\": [\"kind1\"]}\n";
    let corrections = write(directory.path(), "corrections.jsonl", correction);
    succeed(run(["learn", path.to_str().unwrap(), &corrections]));
    let killed = directory.path().join("killed");
    let arguments = ["update", killed.to_str().unwrap(), news];
    copy(path, &killed);
    let started = Instant::now();
    succeed(run(arguments));
    let duration = started.elapsed();
    let [old, new] = [path, &killed].map(|model| manifest(model));
    assert_ne!(old, new);
    let mut n_old = 0;
    for kill in 0..N_KILLS {
        copy(path, &killed);
        let child = elias(arguments).stderr(Stdio::null()).spawn().unwrap();
        let has_ended = kill_after(child, f64::from(kill) / f64::from(N_KILLS - 10), duration);
        let left = manifest(&killed);
        assert!(
            left == old || left == new,
            "neither the old model nor the new one"
        );
        let model = Predictor::verify(&killed).unwrap();
        assert_eq!(model.learned().len(), usize::from(left == old));
        if left == old {
            assert!(!has_ended);
            n_old += 1;
            // What is left of it is in nobody's way.
            if kill % 10 == 0 {
                succeed(run(arguments));
                assert_eq!(manifest(&killed), new);
                let is_folder = |file: fs::DirEntry| file.path().is_dir();
                assert!(
                    !fs::read_dir(&killed)
                        .unwrap()
                        .any(|file| is_folder(file.unwrap()))
                );
            }
        }
    }
    assert!(n_old > 0);
}

#[test]
fn no_correction_that_was_acknowledged_is_lost_by_a_kill() {
    let Model {
        directory, path, ..
    } = &model();
    let model = path.to_str().unwrap();
    let correction = |number: u32| {
        let line = format!("{{\"text\": \"word1 {number}\", \"labels\": [\"kind2\"]}}\n");
        write(directory.path(), "corrections.jsonl", &line)
    };
    let started = Instant::now();
    succeed(run(["learn", model, &correction(0)]));
    let duration = started.elapsed();
    let mut acknowledged = vec!["word1 0".to_owned()];
    for kill in 1..=N_KILLS {
        let child = elias(["learn", model, &correction(kill)])
            .stderr(Stdio::null())
            .spawn();
        let part = f64::from(kill) / f64::from(N_KILLS - 10);
        if kill_after(child.unwrap(), part, duration) {
            acknowledged.push(format!("word1 {kill}"));
        }
        let learned = Predictor::load(path).unwrap();
        let learned: Vec<&str> = learned.learned().iter().map(|of| &of.text[..]).collect();
        let mut found = learned.iter();
        let is_there = |text: &String| found.any(|found| found == text);
        assert!(
            acknowledged.iter().all(is_there),
            "{acknowledged:?} {learned:?}"
        );
    }
}

#[test]
fn a_second_writer_is_refused_by_name() {
    let Model {
        directory,
        path,
        news,
    } = &model();
    let model = path.to_str().unwrap();
    let corrections = write(
        directory.path(),
        "corrections.jsonl",
        "{\"text\": \"a\", \"labels\": [\"kind2\"]}\n",
    );
    let change = |model: Predictor| -> anyhow::Result<(Predictor, ())> {
        for arguments in [
            &["learn", model_path(path), &corrections][..],
            &["update", model_path(path), news],
            &["labels", "remove", model_path(path), "kind2"],
        ] {
            let ran = run(arguments);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            let expected = format!("process {} is writing", std::process::id());
            assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
        }
        // Readers do not mind.
        assert_eq!(run(["labels", "list", model_path(path)]).code, Some(0));
        Ok((model, ()))
    };
    Predictor::change_in(path, change).unwrap();
    succeed(run(["learn", model, &corrections]));
}

fn model_path(path: &Path) -> &str {
    path.to_str().unwrap()
}
