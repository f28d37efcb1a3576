//! Lists of words that mean the same: a word or phrase, and the words that are added to a text that has it.
//!
//! A line has two columns, `phrase<TAB>words`, or `phrase,words` with CSV's quoting; a pair that holds in both directions
//! has two lines. Several lines about a phrase add up. Blank lines and lines that begin with `#` are skipped.
//! The list as it was written; the features decide how a phrase matches a text.

use std::collections::HashMap;
use std::path::Path;

use crate::data::Texts;
use crate::data::io::source::{Line, ReadProgress, Source};
use crate::error::{Error, Result};

/// Most bytes of a list: it is part of every model trained with it.
const MAX_BYTES: usize = 64 << 20;
/// Most bytes that one phrase may add to a text.
const MAX_ADDED_BYTES: usize = 1000;

const EXPECTED: &str = "a word or phrase, a tab, and the words to add";

/// Words to add to texts, by the phrase that a text must have.
///
/// Invariants: as many phrases as entries of words; nothing is empty; all lines about a phrase together have at most
/// 1,000 bytes of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synonyms {
    phrases: Texts,
    words: Texts,
}

impl Synonyms {
    /// Reads a list.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a line without two columns, [`Error::BadFile`] for a list that is empty or too long.
    pub fn read(path: impl AsRef<Path>) -> Result<Synonyms> {
        let path = path.as_ref();
        let source = Source::open(path)?;
        let silent = ReadProgress::default();
        let mut lines = source.lines(&silent)?;
        let mut builder = Builder::default();
        while let Some(line) = lines.next()? {
            let is_skipped = line.text.trim_ascii().is_empty() || line.text.starts_with('#');
            if !is_skipped {
                let [phrase, words] = columns(&line)?;
                builder
                    .push(&phrase, &words)
                    .map_err(|(found, expected)| line.malformed(found, expected))?;
            }
        }
        builder.finish().map_err(|problem| lines.bad_file(problem))
    }

    /// A list of pairs of a phrase and the words that it adds.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] naming the pair, for the same problems as [`Synonyms::read`].
    pub fn from_pairs<T: AsRef<str>>(pairs: impl IntoIterator<Item = (T, T)>) -> Result<Synonyms> {
        let mut builder = Builder::default();
        for (pair_idx, (phrase, words)) in pairs.into_iter().enumerate() {
            builder
                .push(phrase.as_ref(), words.as_ref())
                .map_err(|(found, expected)| {
                    Error::InvalidDataset(format!(
                        "pair {pair_idx} of the synonyms: found {found}, expected {expected}"
                    ))
                })?;
        }
        let finished = builder.finish();
        finished.map_err(|problem| Error::InvalidDataset(format!("the list of synonyms {problem}")))
    }

    /// The list as lines of a phrase, a tab and words.
    pub(crate) fn to_lines(&self) -> Texts {
        let lines = self.iter();
        lines
            .map(|(phrase, words)| format!("{phrase}\t{words}"))
            .collect()
    }

    /// The list of [`Synonyms::to_lines`].
    ///
    /// # Errors
    /// A phrase about the first line that is none.
    pub(crate) fn from_lines(lines: &Texts) -> Result<Synonyms, String> {
        let mut builder = Builder::default();
        for (line_idx, line) in lines.iter().enumerate() {
            let at = |found: &str, expected: &str| {
                format!("line {}: found {found}, expected {expected}", line_idx + 1)
            };
            let (phrase, words) = line
                .split_once('\t')
                .ok_or_else(|| at("no tab", EXPECTED))?;
            builder
                .push(phrase, words)
                .map_err(|(found, expected)| at(&found, &expected))?;
        }
        builder.finish()
    }

    /// The phrase of a line and the words that it adds.
    ///
    /// # Panics
    /// If the line is out of range.
    pub(crate) fn line(&self, line: usize) -> (&str, &str) {
        (self.phrases.get(line), self.words.get(line))
    }

    /// Phrases with the words that they add.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.phrases.iter().zip(self.words.iter())
    }

    /// Lines of the list.
    pub fn len(&self) -> usize {
        self.phrases.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The two columns of a line.
fn columns(line: &Line<'_>) -> Result<[String; 2]> {
    if let Some((phrase, words)) = line.text.split_once('\t') {
        return Ok([phrase.to_owned(), words.to_owned()]);
    }
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(line.text.as_bytes());
    let fields = match reader.into_records().next() {
        Some(Ok(record)) => record,
        _ => csv::StringRecord::new(),
    };
    match (fields.get(0), fields.get(1), fields.len()) {
        (Some(phrase), Some(words), 2) => Ok([phrase.to_owned(), words.to_owned()]),
        _ => Err(line.malformed(format!("{} columns", fields.len()), EXPECTED)),
    }
}

#[derive(Default)]
struct Builder {
    list: Synonyms,
    bytes_of: HashMap<String, usize>,
}

impl Builder {
    /// Adds a pair; an error is found and expected.
    fn push(&mut self, phrase: &str, words: &str) -> Result<(), (String, String)> {
        let (phrase, words) = (phrase.trim(), words.trim());
        if phrase.is_empty() || words.is_empty() || phrase.contains(['\t', '\n']) {
            return Err(("an empty column".into(), EXPECTED.into()));
        }
        let known = self.bytes_of.entry(phrase.to_lowercase()).or_default();
        *known += words.len();
        if *known > MAX_ADDED_BYTES {
            let found = format!("{known} bytes of words for {phrase:?}");
            return Err((crate::error::shortened(&found), "at most 1,000".into()));
        }
        self.list.phrases.push(phrase);
        self.list.words.push(words);
        Ok(())
    }

    fn finish(self) -> Result<Synonyms, String> {
        let list = self.list;
        let n_bytes = list.phrases.n_bytes() + list.words.n_bytes();
        if n_bytes > MAX_BYTES {
            return Err(format!(
                "has {n_bytes} bytes of words, expected at most {MAX_BYTES}: it is part of the model"
            ));
        }
        if list.is_empty() {
            return Err(format!("has no line, expected {EXPECTED} in each"));
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> Result<Synonyms> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("words.tsv");
        std::fs::write(&path, file).unwrap();
        Synonyms::read(&path)
    }

    #[test]
    fn tabs_or_csv_give_two_columns() {
        let expected = Synonyms::from_pairs([("Haus", "house"), ("rotes Haus", "red, house")]);
        let expected = expected.unwrap();
        for file in [
            "# German\tEnglish\nHaus\thouse\n\nrotes Haus\tred, house\n",
            "Haus,house\r\n\"rotes Haus\",\"red, house\"\r\n",
        ] {
            assert_eq!(read(file).unwrap(), expected);
        }
        assert_eq!(
            Synonyms::from_lines(&expected.to_lines()).unwrap(),
            expected
        );
    }

    #[test]
    fn lists_that_are_none_are_errors_that_name_the_line() {
        let long = format!("a\t{}\nA\t{}\n", "b".repeat(600), "c".repeat(600));
        for (file, expected) in [
            ("a\tb\nword\n", "words.tsv:2: found 1 columns"),
            ("a,b,c\n", "words.tsv:1: found 3 columns"),
            ("a\t \n", "words.tsv:1: found an empty column"),
            (&long, "words.tsv:2: found 1200 bytes of words for \"A\""),
            ("", "has no line"),
            ("# nothing\n", "has no line"),
        ] {
            let error = read(file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = Synonyms::from_pairs([("a", "")]).unwrap_err().to_string();
        assert!(error.contains("pair 0 of the synonyms"), "{error}");
        let error = Synonyms::from_lines(&["a b"].iter().collect()).unwrap_err();
        assert!(error.starts_with("line 1: found no tab"), "{error}");
    }
}
