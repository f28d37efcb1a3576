//! Everything that a shell relies on: help, exit codes, streams, pipes.

use crate::command::{elias, run, write};

#[test]
fn short_help_fits_a_screen() {
    for arguments in [
        &["-h"][..],
        &["evaluate", "-h"],
        &["demo", "-h"],
        &["train", "-h"],
        &["predict", "-h"],
        &["config", "-h"],
        &["bench", "train", "-h"],
        &["convert", "-h"],
        &["serve", "-h"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}");
        assert_eq!(ran.stderr, "");
        let n_lines = ran.stdout.lines().count();
        assert!(n_lines <= 24, "{arguments:?}: {n_lines} lines");
    }
}

#[test]
fn long_help_explains_more_than_short_help() {
    let (short, long) = (run(["evaluate", "-h"]), run(["evaluate", "--help"]));
    assert!(short.stdout.len() < long.stdout.len());
}

#[test]
fn misuse_exits_with_two_and_says_why_on_stderr() {
    for (arguments, part_of_message) in [
        (&[][..], "Usage"),
        (&["frobnicate"], "frobnicate"),
        (&["evaluate", "data"], "--predictions"),
        (
            &["evaluate", "--predictions", "p", "d", "--propensity", "1"],
            "0.55,1.5",
        ),
        (&["demo", "--threads", "0"], "--threads"),
        (&["demo", "--quiet", "--verbose"], "--verbose"),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(ran.stderr.contains(part_of_message), "{}", ran.stderr);
    }
}

#[test]
fn a_wrong_path_exits_with_one_and_is_named_once_with_its_cause() {
    let dir = tempfile::tempdir().unwrap();
    let predictions = write(dir.path(), "predictions.jsonl", "{\"labels\": []}\n");
    let ran = run([
        "evaluate",
        "--quiet",
        "--predictions",
        &predictions,
        "no-such-data.jsonl",
    ]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    let n_mentions = ran.stderr.matches("no-such-data.jsonl").count();
    assert_eq!(n_mentions, 1, "{}", ran.stderr);
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for arguments in [&["completions", "zsh"][..], &["config"]] {
        let output = elias(arguments)
            .stdout(writer.try_clone().unwrap())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{arguments:?}");
    }
}

#[test]
fn completions_name_the_verbs() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = run(["completions", shell]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("evaluate"), "{shell}");
    }
}

#[test]
fn the_demo_needs_nothing_and_fits_80_columns() {
    let ran = run(["demo", "--quiet", "--epochs", "1"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.contains("10689"), "{}", ran.stdout);
    for line in ran.stdout.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn nothing_is_coloured_away_from_a_terminal() {
    let ran = run(["predict", "--verbose", "no-such-model"]);
    assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'));
    assert_ne!(ran.stderr, "");
}
