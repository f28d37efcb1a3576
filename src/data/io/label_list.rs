//! The names behind numbered labels: one per line, in the order of their numbers.
//!
//! Lists of some labels have one name per line, too, and thresholds stand behind a tab.
//!
//! A line feed, a carriage return and a backslash in a name are written as `\n`, `\r` and `\\`.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::data::io::sink::Sink;
use crate::data::io::source::{ReadProgress, Source};
use crate::data::{LabelSet, PredictionFormat};
use crate::error::{Error, Result};

/// Part of a file's name between that of the numbered predictions and the ending of the file of probabilities.
const PROBABILITIES: &str = ".probabilities";

fn label_list_of(predictions: &Path) -> PathBuf {
    let name = predictions
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    match name.split_once(PROBABILITIES) {
        Some((scores, _)) => with_ending(&predictions.with_file_name(scores), ".labels.txt"),
        None => with_ending(predictions, ".labels.txt"),
    }
}

fn probabilities_of(predictions: &Path) -> PathBuf {
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

impl LabelSet {
    /// Writes the names, one per line, in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        write_label_list(path.as_ref(), self)
    }

    /// Reads names, one per line.
    ///
    /// # Errors
    /// [`Error::Malformed`] if a name occurs twice, and [`Error::Io`].
    pub fn read(path: impl AsRef<Path>) -> Result<LabelSet> {
        read_label_list(path.as_ref())
    }
}

impl PredictionFormat {
    /// The list that belongs to a file of numbered predictions, or to its probabilities: the file's name with
    /// `.labels.txt` after it.
    pub fn label_list_of(predictions: &Path) -> PathBuf {
        label_list_of(predictions)
    }

    /// The file of probabilities that belongs to a file of numbered predictions: `scores.npz.probabilities.npz`.
    pub fn probabilities_of(predictions: &Path) -> PathBuf {
        probabilities_of(predictions)
    }
}

fn write_label_list(path: &Path, labels: &LabelSet) -> Result<()> {
    let mut sink = Sink::create(path)?;
    for name in labels.names().iter() {
        writeln!(sink, "{}", escape_label(name))
            .map_err(|error| Error::io(path, "write", error))?;
    }
    sink.finish()
}

fn read_label_list(path: &Path) -> Result<LabelSet> {
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

/// Reads the names of some labels, one per line; empty lines are passed over.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Io`].
pub fn read_label_names(path: impl AsRef<Path>) -> Result<Vec<String>> {
    let source = Source::open(path.as_ref())?;
    let silent = ReadProgress::default();
    let mut lines = source.lines(&silent)?;
    let mut names = Vec::new();
    while let Some(line) = lines.next()? {
        if !line.text.is_empty() {
            names.push(unescape(line.text));
        }
    }
    Ok(names)
}

/// Reads thresholds of some labels, a name, a tab and a number per line; empty lines are passed over.
///
/// # Errors
/// [`Error::Malformed`], [`Error::NotFound`], [`Error::Io`].
pub fn read_label_thresholds(path: impl AsRef<Path>) -> Result<Vec<(String, f32)>> {
    read_pairs(path.as_ref(), "LABEL<TAB>a number from 0 to 1", |value| {
        let threshold = value.trim().parse().ok()?;
        (0.0..=1.0).contains(&threshold).then_some(threshold)
    })
}

/// Reads new names of some labels, the old name, a tab and the new one per line; empty lines are passed over.
///
/// # Errors
/// [`Error::Malformed`], [`Error::NotFound`], [`Error::Io`].
pub fn read_label_renames(path: impl AsRef<Path>) -> Result<Vec<(String, String)>> {
    read_pairs(path.as_ref(), "OLD NAME<TAB>NEW NAME", |name| {
        Some(unescape(name)).filter(|name| !name.is_empty())
    })
}

/// Reads a label and a value per line, which the last tab divides.
fn read_pairs<T>(
    path: &Path,
    expected: &'static str,
    value_of: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(String, T)>> {
    let source = Source::open(path)?;
    let silent = ReadProgress::default();
    let mut lines = source.lines(&silent)?;
    let mut pairs = Vec::new();
    while let Some(line) = lines.next()? {
        if line.text.is_empty() {
            continue;
        }
        let parts = line.text.rsplit_once('\t');
        match parts.and_then(|(name, value)| Some((name, value_of(value)?))) {
            Some((name, value)) => pairs.push((unescape(name), value)),
            None => return Err(line.malformed(line.text, expected)),
        }
    }
    Ok(pairs)
}

/// A label's name as a line of a list.
pub fn escape_label(name: &str) -> String {
    name.replace('\\', r"\\")
        .replace('\n', r"\n")
        .replace('\r', r"\r")
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

        assert_eq!(
            read_label_names(&path).unwrap(),
            names
                .into_iter()
                .filter(|name| !name.is_empty())
                .collect::<Vec<_>>()
        );

        std::fs::write(&path, "a\nb\na\n").unwrap();
        let message = read_label_list(&path).unwrap_err().to_string();
        assert!(message.contains(":3:"), "{message}");
        assert_eq!(read_label_names(&path).unwrap(), ["a", "b", "a"]);
    }

    #[test]
    fn thresholds_and_new_names_stand_behind_the_last_tab() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("thresholds.tsv");
        std::fs::write(&path, "plain\t0.5\n\ntwo\\nlines\t1\na\tb\t0\n").unwrap();
        let read = read_label_thresholds(&path).unwrap();
        let expected = [("plain", 0.5), ("two\nlines", 1.0), ("a\tb", 0.0)];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value)));
        let renames = "plain\tsimple\n\nb\ta\\nb\n";
        std::fs::write(&path, renames).unwrap();
        let read = read_label_renames(&path).unwrap();
        let expected = [("plain", "simple"), ("b", "a\nb")];
        assert_eq!(
            read,
            expected.map(|(old, new)| (old.to_owned(), new.to_owned()))
        );
        std::fs::write(&path, "plain\tsimple\nplain\t\n").unwrap();
        let message = read_label_renames(&path).unwrap_err().to_string();
        assert!(message.contains(":2:"), "{message}");
        for line in [
            "plain",
            "plain\t",
            "plain\t1.5",
            "plain\t-1",
            "plain\tNaN",
            "0.5",
        ] {
            std::fs::write(&path, format!("a\t0.5\n{line}\n")).unwrap();
            let message = read_label_thresholds(&path).unwrap_err().to_string();
            assert!(message.contains(":2:"), "{line}: {message}");
        }
    }
}
