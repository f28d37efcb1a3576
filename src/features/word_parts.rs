//! Parts of words that the vocabulary does not have: pieces that outside vectors know, or the words of a compound.
//!
//! A word is cut from left to right by the longest pieces that fit; letters that no piece has are skipped, and a word of which
//! pieces have less than half is cut into nothing. A word is tried as it is, with a capital and in capitals, as the pieces may
//! have been learned from texts with capitals; the way with the fewest pieces is taken, the earlier one of equals.

use hashbrown::HashMap;

use crate::data::{Place, Texts};
use crate::error::{Error, Result};

/// Least number of letters of a word that counts as a part of a compound.
const MIN_PART: usize = 4;

/// Pieces of words, by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct WordParts {
    entries: Texts,
    /// Pieces that can begin a word, and those that can follow.
    starts: HashMap<Box<str>, u32>,
    insides: HashMap<Box<str>, u32>,
    /// Whole words, parts of others only if they are long.
    words: HashMap<Box<str>, u32>,
    /// Bytes of the longest piece.
    longest: usize,
}

impl WordParts {
    /// The parts of these entries, each behind the sign of its place.
    ///
    /// # Errors
    /// [`Error::InvalidVocabulary`] for an entry without a sign, or one that comes twice.
    pub(crate) fn new(entries: Texts) -> Result<Self> {
        let mut parts = WordParts {
            entries: Texts::default(),
            starts: HashMap::new(),
            insides: HashMap::new(),
            words: HashMap::new(),
            longest: 0,
        };
        for (number, entry) in (0u32..).zip(entries.iter()) {
            let invalid =
                |what| Error::InvalidVocabulary(format!("part {number}, {entry:?}, {what}"));
            let (place, text) =
                Place::of(entry).ok_or_else(|| invalid("has no sign of its place"))?;
            let known = match place {
                Place::Start => &mut parts.starts,
                Place::Inside => &mut parts.insides,
                Place::Word => &mut parts.words,
            };
            if known.insert(text.into(), number).is_some() {
                return Err(invalid("comes twice"));
            }
            parts.longest = parts.longest.max(text.len());
        }
        parts.entries = entries;
        Ok(parts)
    }

    /// The entries.
    pub(crate) fn entries(&self) -> &Texts {
        &self.entries
    }

    /// Number of parts.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Writes the parts of a word to `out`; none if it is not made of them.
    pub(crate) fn cut(&self, word: &str, out: &mut Vec<u32>) {
        self.cut_as(word, out);
        if out.len() == 1 {
            return;
        }
        let mut chars = word.chars();
        let capital: String = chars.next().iter().flat_map(|c| c.to_uppercase()).collect();
        let mut other = Vec::new();
        for form in [capital + chars.as_str(), word.to_uppercase()] {
            self.cut_as(&form, &mut other);
            if !other.is_empty() && (out.is_empty() || other.len() < out.len()) {
                std::mem::swap(out, &mut other);
            }
        }
    }

    fn cut_as(&self, word: &str, out: &mut Vec<u32>) {
        out.clear();
        let (mut at, mut n_cut) = (0, 0);
        while at < word.len() {
            match self.longest_at(word, at) {
                Some((part, end)) => {
                    out.push(part);
                    n_cut += end - at;
                    at = end;
                }
                None => at += word[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        if 2 * n_cut < word.len() {
            out.clear();
        }
    }

    /// The longest part that begins at a byte of a word, and its end.
    fn longest_at(&self, word: &str, at: usize) -> Option<(u32, usize)> {
        let most = word.len().min(at + self.longest);
        let ends = (at + 1..=most)
            .rev()
            .filter(|&end| word.is_char_boundary(end));
        // At the start of a word, what can be anywhere comes after what begins words.
        let ends: Vec<usize> = ends.collect();
        let find = |known: &HashMap<Box<str>, u32>| {
            let mut found = ends.iter().map(|&end| (known.get(&word[at..end]), end));
            found.find_map(|(part, end)| Some((*part?, end)))
        };
        let as_word = find(&self.words).filter(|&(_, end)| {
            end - at == word.len() || word[at..end].chars().count() >= MIN_PART
        });
        let begins = || (at == 0).then(|| find(&self.starts)).flatten();
        as_word.or_else(begins).or_else(|| find(&self.insides))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[&str], word: &str, expected: &[&str]) {
        let parts = WordParts::new(entries.iter().collect()).unwrap();
        let mut found = Vec::new();
        parts.cut(word, &mut found);
        let found: Vec<&str> = found
            .iter()
            .map(|&part| parts.entries().get(part as usize))
            .collect();
        assert_eq!(found, expected, "{word}");
    }

    #[test]
    fn pieces_are_the_longest_at_their_place() {
        let pieces = ["^un", "^unter", "+n", "+neh", "+nehmen", "^a", "+b"];
        check(&pieces, "unternehmen", &["^unter", "+nehmen"]);
        check(&pieces, "unn", &["^un", "+n"]);
        // Nothing begins with it, so that it stands alone.
        check(&pieces, "nehmen", &["+nehmen"]);
        check(&pieces, "xyz", &[]);
        check(&pieces, "axyz", &[]);
        check(&pieces, "abz", &["^a", "+b"]);
        check(&pieces, "", &[]);
    }

    #[test]
    fn words_in_capitals_are_found_where_that_takes_fewer_pieces() {
        let pieces = ["^h", "^Haus", "^DNA", "+aus", "+a", "+u", "+s"];
        check(&pieces, "haus", &["^Haus"]);
        check(&pieces, "dna", &["^DNA"]);
        check(&pieces, "haust", &["^Haus"]);
        check(&["^öl", "^ÖL"], "öl", &["^öl"]);
    }

    #[test]
    fn words_are_parts_of_compounds_if_they_are_long() {
        let words = ["=flug", "=hafen", "=in", "=flughafen"];
        check(&words, "in", &["=in"]);
        check(&words, "flughafen", &["=flughafen"]);
        check(&words, "hafenflug", &["=hafen", "=flug"]);
        check(&words, "influg", &["=flug"]);
    }

    #[test]
    fn entries_without_a_place_and_entries_that_come_twice_are_errors() {
        for entries in [&["word"][..], &["^"], &["^a", "^a"], &[""]] {
            assert!(
                WordParts::new(entries.iter().collect()).is_err(),
                "{entries:?}"
            );
        }
    }
}
