//! Golden values, computed by independent programs.
//!
//! They are read from the directory in the environment variable `ELIAS_GOLDENS`, if it is set and contains such
//! files; otherwise from the project's own copy.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Every golden file whose name starts with `prefix`, with its path for messages.
pub(crate) fn of_kind(prefix: &str) -> Vec<(PathBuf, Value)> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens");
    let given = std::env::var_os("ELIAS_GOLDENS").map(PathBuf::from);
    let mut paths: Vec<PathBuf> = given.iter().flat_map(|dir| list(dir, prefix)).collect();
    if paths.is_empty() {
        paths = list(&own, prefix);
    }
    assert!(!paths.is_empty(), "no golden file {prefix}*.json");
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let value = serde_json::from_str(&text).unwrap();
            (path, value)
        })
        .collect()
}

/// Every directory of golden values whose name starts with `prefix`.
#[allow(dead_code)] // the library's own tests read some
pub(crate) fn directories(prefix: &str) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens");
    let given = std::env::var_os("ELIAS_GOLDENS").map(PathBuf::from);
    let within = |dir: &Path| {
        let entries = std::fs::read_dir(dir).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            path.is_dir() && name.starts_with(prefix)
        };
        let mut paths: Vec<PathBuf> = paths.filter(is_ours).collect();
        paths.sort();
        paths
    };
    let mut paths = given.map_or(Vec::new(), |dir| within(&dir));
    if paths.is_empty() {
        paths = within(&own);
    }
    assert!(!paths.is_empty(), "no golden directory {prefix}*");
    paths
}

fn list(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(prefix) && name.ends_with(".json")
        })
        .collect();
    paths.sort();
    paths
}
