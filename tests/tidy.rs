//! The repository keeps its own rules: layering, module docs, file length, and documents that stay true.

use std::fs;
use std::path::{Path, PathBuf};

mod words;

/// The modules of the library in reading order, one layer per line. A module may use only those before it.
const LAYERS: [&[&str]; 13] = [
    &["error", "ids", "events", "pool", "random"],
    &["kernels", "matrix", "config", "communicator"],
    &["data", "features", "metrics"],
    &["encoder", "clustering", "classifiers", "index"],
    &["model", "loss", "optim", "reference"],
    &["train", "ranker", "calibration", "neighbours"],
    &["candidates"],
    &["predict"],
    &["evaluation"],
    &["store"],
    &["training"],
    &["insight"],
    &["internals"],
];

/// The modules that users of the library see.
const PUBLIC: [&str; 6] = [
    "config",
    "data",
    "metrics",
    "reference",
    "insight",
    "internals",
];

/// The position of a module in reading order.
fn place(module: &str) -> Option<usize> {
    LAYERS
        .iter()
        .copied()
        .flatten()
        .position(|known| *known == module)
}

/// The layer of a module.
fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

const MAX_LINES: usize = 500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files under a folder of the repository with this ending, by their path with forward slashes.
fn files(under: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(under)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_ours = !name.starts_with('.') && name != "target" && name != "fixtures";
            if path.is_dir() && is_ours {
                folders.push(path);
            } else if name.ends_with(ending) {
                let path = path.strip_prefix(root()).unwrap();
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    assert!(!found.is_empty(), "no {ending} file under {under}");
    found.sort();
    found
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The library's files with their module and their code: no tests, no comments.
fn library() -> Vec<(String, String, String)> {
    files("src", ".rs")
        .into_iter()
        .filter(|path| path != "src/lib.rs" && !is_test(path))
        .map(|path| {
            let inside = path.strip_prefix("src/").unwrap();
            let module = inside.split(['/', '.']).next().unwrap().to_string();
            let text = read(&path);
            let untested = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let code: Vec<&str> = untested
                .lines()
                .map(|line| line.split("//").next().unwrap())
                .collect();
            (path, module, code.join("\n"))
        })
        .collect()
}

/// The module or item named after each `crate::`; all of them for a group in braces.
fn named_after_crate(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for after in code.split("crate::").skip(1) {
        let Some(group) = after.strip_prefix('{') else {
            names.push(first_word(after));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(first_word(&std::mem::take(&mut item))),
                _ if depth == 0 => item.push(c),
                _ => {}
            }
        }
        names.push(first_word(&item));
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first_word(text: &str) -> String {
    text.trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// The text between single backticks outside of code blocks.
fn backticked(document: &str) -> Vec<String> {
    let mut is_block = false;
    let mut found = Vec::new();
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_string));
        }
    }
    found
}

#[track_caller]
fn check(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_source_file_opens_with_its_purpose_and_is_short() {
    let mut problems = Vec::new();
    for path in files(".", ".rs") {
        let text = read(&path);
        if !text.starts_with("//! ") {
            problems.push(format!("{path} does not open with a module doc"));
        }
        let n_lines = text.lines().count();
        if n_lines > MAX_LINES {
            problems.push(format!("{path} has {n_lines} lines, above {MAX_LINES}"));
        }
    }
    check(&problems);
}

#[test]
fn the_front_door_stays_small() {
    let code = read("src/lib.rs");
    let problems: Vec<String> = code
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub mod "))
        .map(|line| line.trim_end_matches(';'))
        .filter(|module| !PUBLIC.contains(module))
        .map(|module| format!("src/lib.rs makes {module} public: users need only {PUBLIC:?}"))
        .collect();
    check(&problems);
}

#[test]
fn modules_are_declared_in_reading_order() {
    let text = read("src/lib.rs");
    let declared: Vec<String> = text
        .split("#[cfg(test)]")
        .next()
        .unwrap()
        .lines()
        .filter_map(|line| {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_string())
        })
        .collect();
    let layers: Vec<Option<usize>> = declared.iter().map(|module| layer(module)).collect();
    let is_known = layers.iter().all(Option::is_some);
    // Within a layer, rustfmt sorts by name.
    let is_sorted = layers.is_sorted();
    assert!(
        is_known && is_sorted,
        "src/lib.rs has {declared:?}, against LAYERS"
    );
}

#[test]
fn a_module_uses_only_those_above_it() {
    let mut problems = Vec::new();
    for (path, module, code) in library() {
        let Some(own_place) = place(&module) else {
            problems.push(format!("{path}: module {module} has no place in LAYERS"));
            continue;
        };
        for name in named_after_crate(&code) {
            match place(&name) {
                Some(place) if place <= own_place => {}
                Some(_) => problems.push(format!("{path} uses {name}, which is below it")),
                None if ["Error", "Result"].contains(&name.as_str()) => {}
                None => problems.push(format!("{path} uses crate::{name}: name its module")),
            }
        }
    }
    check(&problems);
}

#[test]
fn the_library_keeps_away_from_the_world() {
    let everywhere = [
        "println!",
        "print!",
        "std::env",
        "process::exit",
        "ThreadPoolBuilder",
        "build_global",
    ];
    let mut problems = Vec::new();
    for (path, module, code) in library() {
        let mut forbid = |what: &str| {
            if code.contains(what) {
                problems.push(format!("{path} must not use {what}"));
            }
        };
        everywhere.iter().for_each(|what| forbid(what));
        let is_report = path.starts_with("src/insight/report/");
        if !["data", "store"].contains(&module.as_str()) && !is_report {
            ["std::fs", "File::"].iter().for_each(|what| forbid(what));
        }
        // These name paths, but open nothing.
        if !["data", "store", "error", "training", "insight", "internals"]
            .contains(&module.as_str())
        {
            forbid("std::path");
        }
        if !["config", "ids", "metrics", "evaluation", "store", "insight"]
            .contains(&module.as_str())
        {
            ["(Serialize", ", Serialize"]
                .iter()
                .for_each(|what| forbid(what));
        }
        // Vector instructions and opening a memory map need it.
        let may_be_unsafe = path.starts_with("src/kernels/") || path == "src/store/format/map.rs";
        if !may_be_unsafe {
            forbid("allow(unsafe_code)");
        }
    }
    check(&problems);
}

#[test]
fn front_ends_are_unsafe_only_where_they_talk_to_the_system_or_to_arrow() {
    let allowed = [
        "cli/src/memory.rs",
        "cli/src/ui/bus_error.rs",
        "cli/src/ui/file_limit.rs",
        "python/src/arrow.rs",
    ];
    let problems: Vec<String> = ["cli/src", "python/src", "server/src"]
        .into_iter()
        .flat_map(|folder| files(folder, ".rs"))
        .filter(|path| !allowed.contains(&path.as_str()))
        .filter(|path| read(path).contains("allow(unsafe_code)"))
        .map(|path| format!("{path} must not use unsafe code"))
        .collect();
    check(&problems);
}

#[test]
fn documents_name_paths_that_exist() {
    let tops: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    // Folders that documents will name before they are made would slip through a check of today's top level.
    let planned = [
        "benchmarks",
        "benches",
        "configs",
        "docs",
        "python",
        "server",
    ];
    let mut problems = Vec::new();
    for document in files(".", ".md") {
        let text = read(&document);
        for name in backticked(&text) {
            let Some((top, _)) = name.split_once('/') else {
                if name.ends_with(".md") && !root().join(&name).exists() {
                    problems.push(format!("{document} names {name}, which does not exist"));
                }
                continue;
            };
            let is_path = tops.iter().any(|known| known == top) || planned.contains(&top);
            let is_literal = !name.contains([' ', '*', '<', '{']);
            if is_path && is_literal && !root().join(&name).exists() {
                problems.push(format!("{document} names {name}, which does not exist"));
            }
        }
        let file = root().join(&document);
        let folder = file.parent().unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap();
            if !link.is_empty() && !link.contains("://") && !folder.join(link).exists() {
                problems.push(format!("{document} links to {link}, which does not exist"));
            }
        }
    }
    check(&problems);
}

#[test]
fn the_code_map_lists_every_module() {
    let map = read("ARCHITECTURE.md");
    let mut problems = Vec::new();
    for (_, module, _) in library() {
        let names = [format!("`src/{module}/`"), format!("`src/{module}.rs`")];
        if !names.iter().any(|name| map.contains(name)) {
            problems.push(format!("ARCHITECTURE.md does not list {module}"));
        }
    }
    problems.dedup();
    check(&problems);
}

#[test]
fn the_paper_map_names_what_exists() {
    let map = read("docs/paper-map.md");
    let mut lines = map.lines();
    lines.find(|line| *line == "## Symbols").unwrap();
    let rows: Vec<&str> = lines
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .collect();
    assert!(rows.len() > 5, "the table of symbols was not found");
    let mut problems = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, _, identifiers, file, keys] = cells[..] else {
            problems.push(format!("{row}: expected five cells"));
            continue;
        };
        let [file] = &backticked(file)[..] else {
            problems.push(format!("{row}: expected one file in backticks"));
            continue;
        };
        let text = read(file);
        for identifier in backticked(identifiers) {
            for part in identifier.split("::") {
                if !text.contains(part) {
                    problems.push(format!("{file} has no {part}, which the paper map names"));
                }
            }
        }
        for key in backticked(keys) {
            if !elias::Config::keys().contains(&key) {
                problems.push(format!(
                    "the config has no {key}, which the paper map names"
                ));
            }
        }
    }
    check(&problems);
}

#[test]
fn readme_and_ci_run_the_same_test_command() {
    let command = "cargo test --release";
    for (path, line) in [
        ("README.md", command.to_string()),
        (".ci/run", format!("step {command}")),
        (".github/workflows/ci.yml", format!("run: {command}")),
    ] {
        let text = read(path);
        let is_there = text.lines().any(|found| {
            let found = found.split('#').next().unwrap();
            found.trim() == line
        });
        assert!(is_there, "{path} has no line `{line}`");
    }
}

#[test]
fn the_changelog_begins_with_what_is_unreleased() {
    let changelog = read("CHANGELOG.md");
    let first = changelog.lines().find(|line| line.starts_with("## "));
    assert_eq!(first, Some("## Unreleased"));
}

/// The version is written once; the packages ask for each other in exactly that version.
#[test]
fn packages_ask_for_each_other_in_the_version_they_have() {
    let manifest = read("Cargo.toml");
    let after = manifest.split("[workspace.package]\nversion = \"").nth(1);
    let version = after.unwrap().split('"').next().unwrap();
    for package in ["elias", "elias-server"] {
        let line = format!("\n{package} = {{ version = \"={version}\", path = ");
        assert!(
            manifest.contains(&line),
            "{package} is not asked for as ={version}"
        );
    }
    for path in ["cli", "server", "python", "benchmarks"] {
        let manifest = read(format!("{path}/Cargo.toml"));
        assert!(manifest.contains("\nversion.workspace = true\n"), "{path}");
    }
    assert!(read("python/pyproject.toml").contains("dynamic = [\"version\"]"));
}

#[test]
fn names_in_grouped_imports_are_found() {
    let code = "use crate::{data::{Dataset, Texts}, Error};\nuse crate::ids::LabelId;";
    assert_eq!(named_after_crate(code), ["data", "Error", "ids"]);
}
