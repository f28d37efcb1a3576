//! Length of functions, openings of doc comments, and names in the words of the field.

use super::{check, files, first_word, is_test, read};

const MAX_FUNCTION_LINES: usize = 80;

/// The Rust files of the workspace with their text up to the unit tests.
fn untested_code() -> Vec<(String, String)> {
    files(".", ".rs")
        .into_iter()
        .filter(|path| !is_test(path) && !path.starts_with("tests/"))
        .map(|path| {
            let text = read(&path);
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
            (path, code)
        })
        .collect()
}

/// The name of the function that a line starts to define.
fn defined_function(line: &str) -> Option<String> {
    let (before, after) = line.split_once("fn ")?;
    let is_modifier = |word: &str| {
        word.starts_with("pub")
            || word.starts_with("extern")
            || word.starts_with('"')
            || word.ends_with(')')
            || ["const", "async", "unsafe", "default"].contains(&word)
    };
    let name = first_word(after);
    (before.split_whitespace().all(is_modifier) && !name.is_empty()).then_some(name)
}

/// Each function with its number of lines, as rustfmt indents them: it ends where a brace closes in its column.
fn function_lengths(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = defined_function(line) else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| {
            let inside = line.strip_prefix(indent).unwrap_or_default();
            inside == "}" || inside.starts_with(')') && inside.ends_with(';')
        };
        let is_one_line = line.ends_with([';', '}']);
        let n_lines = if is_one_line {
            1
        } else {
            1 + lines[start..].iter().position(is_end).unwrap_or_default()
        };
        found.push((name, n_lines));
    }
    found
}

#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    for (path, code) in untested_code() {
        for (name, n_lines) in function_lengths(&code) {
            if n_lines > MAX_FUNCTION_LINES {
                problems.push(format!(
                    "{path}: {name} has {n_lines} lines, above {MAX_FUNCTION_LINES}"
                ));
            }
        }
    }
    check(&problems);
}

#[test]
fn lengths_of_functions_are_counted() {
    let code = "trait A {\n    fn zero(\n        x: u32,\n    );\n}\npub(in crate::data) fn one(\n    x: u32,\n) -> u32 {\n    x\n}\n\nimpl A {\n    const fn two() {}\n\n    fn three() {\n        f();\n    }\n}\n// of fn four\n";
    let expected = [("zero", 3), ("one", 5), ("two", 1), ("three", 3)]
        .map(|(name, n_lines)| (name.to_owned(), n_lines));
    assert_eq!(function_lengths(code), expected);
}

/// The text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
}

/// Whether a doc comment begins in words other than those of a noun phrase or of a verb in the third person.
fn is_quaint(doc: &str) -> bool {
    let doc = doc.trim_start();
    let is_bound = doc.starts_with("No ") && doc.ends_with("er.");
    is_bound
        || ["What ", "That ", "So many ", "So much "]
            .iter()
            .any(|opening| doc.starts_with(opening))
}

#[test]
fn doc_comments_begin_with_a_noun_phrase_or_a_verb() {
    let mut problems = Vec::new();
    for path in files(".", ".rs") {
        let text = read(&path);
        let mut is_inside = false;
        for (line_idx, line) in text.lines().enumerate() {
            let doc = doc_text(line);
            if let Some(doc) = doc.filter(|doc| !is_inside && is_quaint(doc)) {
                problems.push(format!("{path}:{}: begins with:{doc}", line_idx + 1));
            }
            is_inside = doc.is_some();
        }
    }
    check(&problems);
}

/// The words of an identifier in lower case: `LabelSet` and `label_set` are `label`, `set`.
fn words_of(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in identifier.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
    }
    words
}

/// The identifiers of a line of code: no comments, no strings.
fn identifiers(line: &str) -> Vec<String> {
    let is_other = |c: char| !c.is_alphanumeric() && c != '_';
    line.replace("\\\"", "")
        .split("//")
        .next()
        .unwrap()
        .split('"')
        .step_by(2)
        .flat_map(|code| code.split(is_other))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn names_are_the_words_of_the_field() {
    // Candidates, sources, features, stacking, final score.
    let metaphors = [
        "judge",
        "judges",
        "judged",
        "judging",
        "verdict",
        "verdicts",
        "witness",
        "witnesses",
        "testimony",
        "testimonies",
        "clue",
        "clues",
        "hearing",
        "hearings",
    ];
    let is_metaphor = |word: &String| metaphors.contains(&word.as_str());
    let mut problems = Vec::new();
    for path in files(".", ".rs") {
        for (line_idx, line) in read(&path).lines().enumerate() {
            let mut names = identifiers(line);
            names.retain(|name| words_of(name).iter().any(is_metaphor));
            for name in names {
                problems.push(format!("{path}:{}: {name}", line_idx + 1));
            }
        }
    }
    check(&problems);
}

#[test]
fn identifiers_are_cut_into_words() {
    assert_eq!(words_of("LabelSet"), ["", "label", "set"]);
    assert_eq!(words_of("n_label_sets"), ["n", "label", "sets"]);
    let line = r#"let a_b = f("in a \"string\"", C); // in a comment"#;
    assert_eq!(identifiers(line), ["let", "a_b", "f", "C"]);
}
