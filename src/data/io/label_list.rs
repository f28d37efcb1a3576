//! The names behind numbered labels: one per line, in the order of their numbers.
//!
//! A line feed, a carriage return and a backslash in a name are written as `\n`, `\r` and `\\`.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::data::LabelSet;
use crate::data::io::sink::Sink;
use crate::data::io::source::{ReadProgress, Source};
use crate::error::{Error, Result};

/// Part of a file's name between that of the numbered predictions and the ending of the file of probabilities.
const PROBABILITIES: &str = ".probabilities";

/// The list that belongs to a file of numbered predictions, or to its probabilities: the file's name with
/// `.labels.txt` after it.
pub fn label_list_of(predictions: &Path) -> PathBuf {
    let name = predictions
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    match name.split_once(PROBABILITIES) {
        Some((scores, _)) => with_ending(&predictions.with_file_name(scores), ".labels.txt"),
        None => with_ending(predictions, ".labels.txt"),
    }
}

/// The file of probabilities that belongs to a file of numbered predictions: `scores.npz.probabilities.npz`.
pub fn probabilities_of(predictions: &Path) -> PathBuf {
    let ending = predictions
        .extension()
        .unwrap_or_default()
        .to_string_lossy();
    let dot = if ending.is_empty() { "" } else { "." };
    with_ending(predictions, &format!("{PROBABILITIES}{dot}{ending}"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    name.into()
}

/// Writes a list of labels.
///
/// # Errors
/// [`Error::Io`].
pub fn write_label_list(path: &Path, labels: &LabelSet) -> Result<()> {
    let mut sink = Sink::create(path)?;
    for name in labels.names().iter() {
        let line = name
            .replace('\\', r"\\")
            .replace('\n', r"\n")
            .replace('\r', r"\r");
        writeln!(sink, "{line}").map_err(|error| Error::io(path, "write", error))?;
    }
    sink.finish()
}

/// Reads a list of labels.
///
/// # Errors
/// [`Error::BadFile`] if a name occurs twice; [`Error::Malformed`] and [`Error::Io`].
pub fn read_label_list(path: &Path) -> Result<LabelSet> {
    let source = Source::open(path)?;
    let silent = ReadProgress::default();
    let mut lines = source.lines(&silent)?;
    let (mut labels, mut n_lines) = (LabelSet::default(), 0);
    while let Some(line) = lines.next()? {
        labels.intern(&unescape(line.text));
        n_lines += 1;
        if labels.len() != n_lines {
            return Err(line.malformed(line.text, "a label that is not listed above"));
        }
    }
    Ok(labels)
}

fn unescape(line: &str) -> String {
    let mut name = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some(escaped @ ('n' | 'r' | '\\'))) => {
                characters.next();
                name.push(match escaped {
                    'n' => '\n',
                    'r' => '\r',
                    _ => '\\',
                });
            }
            _ => name.push(character),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_and_repeated_ones_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.npz.labels.txt");
        let names = ["plain", "two\nlines", r"back\slash\n", "", "ends\r"];
        let labels: LabelSet = names.iter().collect();
        write_label_list(&path, &labels).unwrap();
        assert_eq!(read_label_list(&path).unwrap(), labels);
        let scores = directory.path().join("x.npz");
        assert_eq!(label_list_of(&scores), path);
        assert_eq!(label_list_of(&probabilities_of(&scores)), path);

        std::fs::write(&path, "a\nb\na\n").unwrap();
        let message = read_label_list(&path).unwrap_err().to_string();
        assert!(message.contains(":3:"), "{message}");
    }
}
