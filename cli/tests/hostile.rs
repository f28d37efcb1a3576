//! Endless, damaged and changing files, and what a command that fails leaves behind: nothing.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::careful::{arguments, lines, train, trained, training_at};
use crate::command::{elias, run, write};

/// The shell's output of a script; `$1` is the binary, then the arguments.
fn shell(script: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_elias")])
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn an_endless_line_in_a_small_archive_is_refused_in_little_memory() {
    let (dir, data, model) = trained();
    let bomb = dir.path().join("bomb.jsonl.gz");
    // Streams one after the other are one archive: a good line, then 1 GiB without a line end.
    let make = "
        head -n 1 $2 | gzip >$3
        head -c 16777216 /dev/zero | tr '\\0' a | gzip >$3.part
        for i in $(seq 64); do cat $3.part; done >>$3; rm $3.part";
    let bomb = bomb.to_str().unwrap();
    assert_eq!(shell(make, &[&data, bomb]), (Some(0), String::new()));
    let (out, model) = (dir.path().join("out"), model.to_str().unwrap());
    for verb in [
        &["predict", model, bomb][..],
        &["evaluate", model, bomb],
        &["train", bomb, "--dry-run"],
        &[
            "convert",
            bomb,
            "--to",
            "jsonl",
            "--out",
            out.to_str().unwrap(),
        ],
    ] {
        let limited = "ulimit -v 1000000; \"$@\"";
        let (code, said) = shell(limited, verb);
        let expected = "bomb.jsonl.gz:2: found more than 67108864 bytes without a line end";
        assert_eq!(code, Some(1), "{verb:?}: {said}");
        assert!(said.contains(expected), "{verb:?}: {said}");
    }
    // Long lines are answered a few at a time.
    let long = dir.path().join("long.txt.gz");
    let make = "
        for i in $(seq 4); do head -c 4194304 /dev/zero | tr '\\0' 'a'; echo; done | gzip >$2.part
        for i in $(seq 32); do cat $2.part; done >$2; rm $2.part";
    let long = long.to_str().unwrap();
    assert_eq!(shell(make, &[long]), (Some(0), String::new()));
    let limited = "ulimit -v 1000000; \"$1\" predict $2 $3 2>&1 | wc -l";
    let (_, said) = shell(limited, &[model, long]);
    assert_eq!(said.trim(), "130", "128 answers, and two lines on stderr");
}

/// The largest file of a model.
fn largest_file(model: &Path) -> PathBuf {
    let files = fs::read_dir(model).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    files.max_by_key(size).unwrap()
}

/// A model with a file of more than 16 MiB, and that file.
fn large_model() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(24));
    let model = dir.path().join("model");
    let wide = [
        "--set",
        "encoder.dim=500000",
        "--set",
        "stage1.epochs=1",
        "--set",
        "train.precision=full",
    ];
    let ran = train(&data, &model, &wide);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let largest = largest_file(&model);
    assert!(fs::metadata(&largest).unwrap().len() > (16 << 20) + 4096);
    (dir, model, largest)
}

#[test]
fn damage_deep_in_a_large_file_ends_with_an_error() {
    let (dir, model, file) = large_model();
    let texts = write(dir.path(), "texts.txt", "ripe apple\n");
    let model = model.to_str().unwrap();
    assert_eq!(run(["predict", model, &texts]).code, Some(0));
    let mut bytes = fs::read(&file).unwrap();
    bytes[(16 << 20) + 1000..][..64].fill(0);
    fs::write(&file, bytes).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let test = write(dir.path(), "test.jsonl", &lines(2));
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (page, pruned) = (path("report.html"), path("pruned"));
    for arguments in [
        &["predict", model, &test][..],
        &["evaluate", model, &test],
        &["explain", model, "--text", "ripe apple"],
        &["report", model, &test, "--out", &page],
        &["prune", model, "--out", &pruned, "--top-k", "1"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    }
    assert!(!Path::new(&page).exists() && !Path::new(&pruned).exists());
}

/// `elias predict` that waits for lines, and has answered one.
fn coprocess(model: &Path, more: &[&str]) -> Child {
    let fixed = ["predict", model.to_str().unwrap()];
    elias(fixed.iter().chain(more))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The stderr of a process until it ends.
fn last_words(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
#[cfg(target_os = "linux")]
fn a_model_that_is_cut_short_while_it_answers_is_an_error_that_names_the_file() {
    // Small files are checked before they are used, so nothing else finds the damage.
    let (dir, _, model) = trained();
    let files = names(&model).into_iter();
    let files = files.filter(|name| name.ends_with(".safetensors"));
    let whole: Vec<(String, Vec<u8>)> = files
        .map(|name| (name.clone(), fs::read(name).unwrap()))
        .collect();
    let out = dir.path().join("answers.jsonl");
    let out = ["--out", out.to_str().unwrap()];
    for more in [&[][..], &out] {
        let mut child = coprocess(&model, more);
        let mut stdin = child.stdin.take().unwrap();
        if more.is_empty() {
            writeln!(stdin, "ripe apple").unwrap();
            let mut answer = String::new();
            let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
            stdout.read_line(&mut answer).unwrap();
            assert!(answer.contains("labels"), "{answer}");
        } else {
            wait_for_partial(dir.path());
        }
        for (name, _) in &whole {
            let file = File::options().write(true).open(name).unwrap();
            file.set_len(0).unwrap();
        }
        writeln!(stdin, "fast car").unwrap();
        drop(stdin);
        let (code, said) = last_words(child);
        assert_eq!(code, Some(1), "{said}");
        let is_named = whole.iter().any(|(name, _)| said.contains(name));
        assert!(is_named && said.contains("became shorter"), "{said}");
        assert_eq!(partial_files(dir.path()), [""; 0]);
        for (name, bytes) in &whole {
            fs::write(name, bytes).unwrap();
        }
    }
}

/// Files and directories below a directory, by name.
fn names(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.to_str().unwrap().to_owned());
        if path.is_dir() {
            names.extend(self::names(&path));
        }
    }
    names.sort();
    names
}

fn partial_files(dir: &Path) -> Vec<String> {
    let mut names = names(dir);
    names.retain(|name| name.contains(".partial"));
    names
}

fn wait_for_partial(dir: &Path) {
    while partial_files(dir).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_command_that_fails_leaves_nothing_behind() {
    let (dir, data, model) = trained();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let good = lines(4000);
    let bad = write(dir.path(), "bad.jsonl", &(good + "{\"text\": 1}\n"));
    let unlabelled = write(dir.path(), "unlabelled.jsonl", "{\"text\": \"a\"}\n");
    // Names that would be read as others are not written.
    let comma = "{\"text\": \"a\", \"labels\": [\"a\\n\"]}\n";
    let names_with_breaks = write(dir.path(), "names/train.jsonl", comma);
    let (model, out) = (model.to_str().unwrap().to_owned(), path("new"));
    let before = names(dir.path());
    for arguments in [
        vec!["convert", &bad, "--to", "fasttext", "--out", &out],
        vec![
            "convert",
            &names_with_breaks,
            "--to",
            "pecos",
            "--out",
            &out,
            "--format",
            "csv",
        ],
        vec!["convert", &data, "--to", "jsonl", "--out", "/dev/null/x"],
        vec!["predict", &model, &bad, "--out", &out],
        vec![
            "predict",
            &model,
            &bad,
            "--out",
            &out,
            "--output-format",
            "npz",
        ],
        vec!["report", &model, &bad, "--out", &out],
        vec!["train", &bad, "--out", &out],
        vec!["train", &unlabelled, "--out", &out],
        vec!["train", &data, "--out", &out, "--memory-limit", "0.001"],
        vec!["prune", &model, "--out", &out, "--threshold", "7"],
        vec!["prune", &bad, "--out", &out, "--top-k", "1"],
    ] {
        let ran = run(&arguments);
        assert!(
            [Some(1), Some(2)].contains(&ran.code),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert_eq!(names(dir.path()), before, "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn an_interrupted_prediction_leaves_nothing_behind() {
    let (dir, _, model) = trained();
    let before = names(dir.path());
    let out = dir.path().join("answers.npz");
    let more = ["--output-format", "npz", "--out", out.to_str().unwrap()];
    let mut child = coprocess(&model, &more);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "ripe apple").unwrap();
    wait_for_partial(dir.path());
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(killed.success());
    let (code, said) = last_words(child);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(names(dir.path()), before);
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let (dir, data, model) = trained();
    let (fifo, model) = (dir.path().join("fifo"), model.to_str().unwrap());
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let name = fifo.to_str().unwrap().to_owned();
    let reader = std::thread::spawn(move || fs::read_to_string(name).unwrap());
    let ran = run(["predict", model, &data, "--out", fifo.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(reader.join().unwrap().lines().count(), 48);
    assert!(!fifo.metadata().unwrap().is_file());
}

#[test]
fn a_finished_training_whose_place_was_taken_is_saved_beside_it() {
    let (dir, data, model) = trained();
    let taken = dir.path().join("taken");
    let more = ["--set", "stage1.epochs=300"];
    let (mut child, mut stderr) = training_at("epoch 2/", &arguments(&data, &taken, &more));
    let mut files: Vec<PathBuf> = fs::read_dir(&model)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // What makes a directory a model comes last.
    files.sort_by_key(|path| path.ends_with("manifest.json"));
    for file in files.iter().filter(|path| path.is_file()) {
        fs::copy(file, taken.join(file.file_name().unwrap())).unwrap();
    }
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let beside = dir.path().join("taken-1");
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains(beside.to_str().unwrap()), "{rest}");
    let manifest = |of: &Path| fs::read(of.join("manifest.json")).unwrap();
    assert!(
        manifest(&taken) == manifest(&model),
        "the other model was changed"
    );
    for model in [&taken, &beside] {
        let ran = run(["inspect", model.to_str().unwrap()]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
}

#[test]
fn messages_have_no_words_of_the_programming_language() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "train.jsonl", &lines(4));
    let words = [
        "usize",
        "f32",
        "struct ",
        "enum ",
        "variant",
        "invalid type",
        "field `",
        "sequence",
        "map ",
    ];
    let check = |arguments: &[&str], expected: &str| {
        let ran = run(arguments);
        assert!(
            [Some(1), Some(2)].contains(&ran.code),
            "{arguments:?}: {}",
            ran.stderr
        );
        let error = ran
            .stderr
            .lines()
            .find(|line| line.starts_with("error"))
            .unwrap();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!words.iter().any(|word| error.contains(word)), "{error}");
    };
    for (content, expected) in [
        (
            "dim = \"a\"",
            "\"a\" instead of an integer of at least 0 in encoder.dim",
        ),
        ("kind = 3", "encoder.kind"),
        ("kind = \"x\"", "\"x\" instead of"),
        ("dimension = 3", "the key \"dimension\""),
    ] {
        let config = write(dir.path(), "c.toml", &format!("[encoder]\n{content}\n"));
        check(
            &["train", &data, "--dry-run", "--config", &config],
            expected,
        );
    }
    check(
        &["train", &data, "--dry-run", "--set", "encoder=1"],
        "the number 1",
    );
    for (line, expected) in [
        ("{\"text\": {}}", "an object instead of a string"),
        (
            "{\"text\": \"a\", \"labels\": {\"x\": []}}",
            "a list instead of a number",
        ),
        ("{\"text\": \"a\", \"id\": 0.5}", "the number 0.5"),
    ] {
        let bad = write(dir.path(), "bad.jsonl", &(lines(1) + line));
        check(&["train", &bad, "--dry-run"], expected);
    }
    for (line, expected) in [
        (
            "{\"labels\": [{\"label\": \"x\", \"score\": null}]}",
            "null instead of a number",
        ),
        ("{\"labels\": [3]}", "the number 3"),
        ("{\"labels\": [], \"labels\": []}", "twice the key"),
    ] {
        let bad = write(dir.path(), "bad.jsonl", line);
        check(&["evaluate", "--predictions", &bad, &data], expected);
    }
}
