//! Files with a line per word: the word, and the values of its vector, with blanks between them.

use std::collections::HashSet;
use std::path::Path;

use super::{MAX_DIM, MAX_VALUES, Place, WordVectors, is_of_words};
use crate::data::Texts;
use crate::data::io::source::{Line, ReadProgress, Source, excerpt};
use crate::error::Result;

/// Reads a file; of a word that comes twice, the first counts.
pub(super) fn read(path: &Path) -> Result<WordVectors> {
    let source = Source::open(path)?;
    let silent = ReadProgress::default();
    let mut lines = source.lines(&silent)?;
    let mut table = Table::default();
    let mut header = None;
    let mut n_lines = 0u64;
    while table.values.len() + table.dim <= MAX_VALUES
        && let Some(line) = lines.next()?
    {
        if line.number == 1 {
            header = header_of(line.text);
        }
        let is_header = line.number == 1 && header.is_some();
        if !is_header && !line.text.trim_ascii().is_empty() {
            table.push(&line)?;
            n_lines += 1;
        }
        if let Some([_, dim]) = header.filter(|_| n_lines == 1)
            && dim != table.dim as u64
        {
            let found = format!("{} values", table.dim);
            return Err(line.malformed(found, format!("{dim}, as the first line says")));
        }
    }
    let is_cut = MAX_VALUES < table.values.len() + table.dim;
    if let Some([expected, _]) = header.filter(|[n, _]| n_lines < *n && !is_cut) {
        let problem = format!(
            "has {n_lines} words, its first line says {expected}: the file is truncated, copy it again"
        );
        return Err(lines.bad_file(problem));
    }
    let Table {
        entries,
        values,
        dim,
        ..
    } = table;
    WordVectors::new(path, entries, values, dim)
}

/// The number of words and that of dimensions, if this is a first line as word2vec and fastText write it.
fn header_of(line: &str) -> Option<[u64; 2]> {
    let mut fields = line.split_ascii_whitespace();
    let mut count = || fields.next()?.parse().ok();
    let header = [count()?, count()?];
    fields.next().is_none().then_some(header)
}

#[derive(Default)]
struct Table {
    entries: Texts,
    known: HashSet<Box<str>>,
    values: Vec<f32>,
    dim: usize,
}

impl Table {
    fn push(&mut self, line: &Line<'_>) -> Result<()> {
        // Words of some files have blanks in them; values have none.
        let text = line.text.trim_ascii_end();
        if self.dim == 0 {
            self.dim = text.split_ascii_whitespace().count().saturating_sub(1);
            if !(1..=MAX_DIM).contains(&self.dim) {
                let found = format!("a word and {} values", self.dim);
                let expected = format!("a word and 1 to {MAX_DIM} values");
                return Err(line.malformed(found, expected));
            }
        }
        let expected = || format!("a word and {} numbers, as in the lines before", self.dim);
        let mut fields = text.rsplitn(self.dim + 1, [' ', '\t']);
        let start = self.values.len();
        for _ in 0..self.dim {
            let field = fields.next().unwrap_or_default();
            match field.parse::<f32>() {
                Ok(value) if value.is_finite() => self.values.push(value),
                _ => return Err(line.malformed(excerpt(field), expected())),
            }
        }
        self.values[start..].reverse();
        let Some(word) = fields.next().filter(|word| !word.is_empty()) else {
            return Err(line.malformed("no word before the values", expected()));
        };
        // Words have no number with a point in them, so that this is a vector of another length.
        let before = word.rsplit([' ', '\t']).next().unwrap_or_default();
        if before != word && before.contains('.') && before.parse::<f32>().is_ok() {
            return Err(line.malformed("more values", expected()));
        }
        if is_of_words(word) && self.known.insert(word.into()) {
            self.entries.push(&format!("{}{word}", Place::Word.sign()));
        } else {
            self.values.truncate(start);
        }
        Ok(())
    }
}
