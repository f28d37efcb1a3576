//! Blocks of documents: what they show of the command is run and compared, and options that they name exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::run;

/// Blocks of text that are no output, or that cannot be run here: document, how they begin, and why.
const NOT_RUN: [(&str, &str, &str); 7] = [
    ("README.md", "{\"text\"", "a line of data"),
    ("README.md", "text ──►", "a drawing"),
    (
        "docs/annif.md",
        "<http://",
        "run by python/tests_annif/test_docs.py",
    ),
    ("docs/formats.md", "{\"id\"", "a line of data"),
    ("docs/formats.md", "Flughafen", "a list of words"),
    (
        "docs/serving.md",
        "{\"model\"",
        "an answer of the service, whose tests compare it with the library's",
    ),
    (
        "docs/serving.md",
        "labels.example.org",
        "a configuration of Caddy",
    ),
];

/// A fenced block of a document.
struct Block {
    document: String,
    language: String,
    lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The blocks of README and `docs/`.
fn blocks() -> Vec<Block> {
    let in_docs = fs::read_dir(root().join("docs")).unwrap();
    let names = in_docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut documents: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    documents.extend(["README.md", "server/README.md", "python/README.md"].map(String::from));
    documents.sort();
    let mut blocks = Vec::new();
    for document in documents {
        let content = fs::read_to_string(root().join(&document)).unwrap();
        // Between two fences is a block, or what is between two blocks.
        for fenced in content.split("\n```").skip(1).step_by(2) {
            let (language, content) = fenced.split_once('\n').unwrap();
            blocks.push(Block {
                document: document.clone(),
                language: language.into(),
                lines: content.lines().map(String::from).collect(),
            });
        }
    }
    blocks
}

/// The score and the probability of the first label of an answer.
fn first_label(answer: &str) -> Option<(Value, Value)> {
    let mut answer: Value = serde_json::from_str(answer).ok()?;
    let mut label = answer.get_mut("labels")?.get_mut(0)?.take();
    Some((label["score"].take(), label["probability"].take()))
}

/// Without line breaks that are there for the reader.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_documents_show_of_the_command_is_what_it_prints() {
    let place = tempfile::tempdir().unwrap();
    let blocks = blocks();
    let shown: Vec<&Block> = blocks
        .iter()
        .filter(|of| of.language == "console")
        .collect();
    assert_eq!(shown.len(), 2, "blocks that show output");
    // The model of the README.
    let model = place.path().join("my-model");
    let ran = run(["demo", "--quiet", "--out", model.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let program = Path::new(env!("CARGO_BIN_EXE_elias")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        fs::canonicalize(root()).unwrap().join("data"),
        place.path().join("data"),
    )
    .unwrap();
    let mut answer = None;
    for block in shown {
        let command = block.lines[0]
            .strip_prefix("$ ")
            .expect("a command comes first");
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PATH", &path);
        let output = shell.current_dir(place.path()).output().unwrap();
        let printed = words(&String::from_utf8(output.stdout).unwrap());
        let expected = words(&block.lines[1..].join("\n"));
        let is_same = match expected.strip_suffix('…') {
            Some(beginning) => printed.starts_with(beginning.trim_end()),
            None => printed == expected,
        };
        let document = &block.document;
        assert!(
            is_same,
            "{document}: {command}\nshown:   {expected}\nprinted: {printed}"
        );
        answer = answer.or_else(|| first_label(&printed));
    }
    // The service answers the same text.
    let of_service = blocks
        .iter()
        .find(|block| block.lines[0].starts_with("{\"model\""));
    assert_eq!(first_label(&of_service.unwrap().lines[0]), answer);
}

#[test]
fn blocks_that_are_not_run_are_known() {
    let blocks = blocks();
    let is_text = |block: &&Block| matches!(&block.language[..], "text" | "json" | "");
    for block in blocks.iter().filter(is_text) {
        let (document, first) = (&block.document, &block.lines[0]);
        let is_listed = |of: &(&str, &str, &str)| document == of.0 && first.starts_with(of.1);
        assert!(
            NOT_RUN.iter().any(is_listed),
            "{document}: {first:?} begins a block that is not run: make it a `console` block, or list it with the reason"
        );
    }
    for (document, first, _) in NOT_RUN {
        let is_it = |block: &Block| block.document == document && block.lines[0].starts_with(first);
        assert!(
            blocks.iter().any(is_it),
            "{document} has no block {first:?}"
        );
    }
}

#[test]
fn options_that_documents_name_exist() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for block in blocks() {
        if !matches!(&block.language[..], "sh" | "console") {
            continue;
        }
        for line in block.lines.join("\n").replace("\\\n", " ").lines() {
            let tokens: Vec<&str> = line.split_whitespace().collect();
            let Some(at) = tokens.iter().position(|token| *token == "elias") else {
                continue;
            };
            let is_verb = |token: &&&str| token.bytes().all(|byte| byte.is_ascii_lowercase());
            let has_verbs = matches!(tokens.get(at + 1), Some(&"labels" | &"bench"));
            let n_words = if has_verbs { 2 } else { 1 };
            let verb = tokens[at + 1..].iter().take(n_words).take_while(is_verb);
            let verb: Vec<String> = verb.map(ToString::to_string).collect();
            let help = helps.entry(verb.clone()).or_insert_with(|| {
                let ran = run(verb.iter().map(String::as_str).chain(["--help"]));
                assert_eq!(ran.code, Some(0), "{}: {line}", block.document);
                ran.stdout
            });
            let own = tokens[at..]
                .iter()
                .take_while(|token| !matches!(**token, "|" | ">" | "#" | "&&"));
            for option in own.map(|token| token.trim_matches(['[', ']', ',', '`'])) {
                let name = option.split('=').next().unwrap_or_default();
                let is_known = !name.starts_with("--") || name == "--" || help.contains(name);
                assert!(
                    is_known,
                    "{}: `elias {}` has no {name}",
                    block.document,
                    verb.join(" ")
                );
            }
        }
    }
    assert!(helps.len() > 5, "{:?}", helps.keys());
}
