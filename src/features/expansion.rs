//! Words added to a text: for each word or phrase that a list of synonyms knows, the words of the list.
//!
//! A text is cut into words as the features do it. From left to right, the longest phrase of the list that begins at a
//! word is taken; a single word that is not in the list is cut into two words that are, with an s, es, n, en or er
//! between them, as German compounds are (`Flughafenvorfeld`), where both parts have four letters or more. Of several
//! ways to cut, the one with the longest second part is taken, then the one with the longest first part. Every line of
//! the list counts once per text, so the added words are at most those of the list for each word of the text.
//! The words are added behind the text, after a line break, in the order in which their phrases occur.

use std::borrow::Cow;
use std::collections::HashMap;

use super::tokens::{for_each_token, lowercase_into};
use crate::data::{Synonyms, Texts};

/// Longest phrase, in words; longer ones are never found.
const MAX_WORDS: usize = 6;
/// Least number of letters of each part of a compound.
const MIN_PART: usize = 4;
/// Most letters of a word that is cut: what is longer is no compound.
const MAX_COMPOUND: usize = 60;
/// Letters between the parts of a compound.
const LINKS: [&str; 6] = ["", "s", "es", "n", "en", "er"];

/// A list of synonyms, ready to be found in texts.
#[derive(Clone, Debug)]
pub(crate) struct Expansion {
    synonyms: Synonyms,
    /// Lines by the words of their phrase in lower case, joined by spaces.
    lines_of: HashMap<Box<str>, Vec<u32>>,
    /// Words of the longest phrase.
    n_words: usize,
}

impl Expansion {
    /// The phrases of a list; those without a word, or with too many, are never found.
    pub(crate) fn new(synonyms: Synonyms) -> Self {
        let mut lines_of: HashMap<Box<str>, Vec<u32>> = HashMap::new();
        let (mut lowered, mut longest) = (String::new(), 0);
        for (line, (phrase, _)) in synonyms.iter().enumerate() {
            let words = words_of(phrase, &mut lowered);
            if (1..=MAX_WORDS).contains(&words.len()) {
                longest = longest.max(words.len());
                let lines = lines_of.entry(words.join(" ").into()).or_default();
                lines.push(line as u32);
            }
        }
        Expansion {
            synonyms,
            lines_of,
            n_words: longest,
        }
    }

    /// The list.
    pub(crate) fn synonyms(&self) -> &Synonyms {
        &self.synonyms
    }

    /// The text, and behind it the words that the list adds to it.
    pub(crate) fn expand<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let lines = self.lines_in(text);
        if lines.is_empty() {
            return text.into();
        }
        let mut expanded = String::with_capacity(2 * text.len());
        expanded.push_str(text);
        expanded.push('\n');
        for (_, words) in lines.iter().map(|&line| self.line(line)) {
            expanded.push(' ');
            expanded.push_str(words);
        }
        expanded.into()
    }

    /// All texts, expanded.
    pub(crate) fn expand_all(&self, texts: &Texts) -> Texts {
        texts.iter().map(|text| self.expand(text)).collect()
    }

    fn line(&self, line: u32) -> (&str, &str) {
        self.synonyms.line(line as usize)
    }

    /// The lines whose phrase the text has, in the order in which they occur, each once.
    fn lines_in(&self, text: &str) -> Vec<u32> {
        let mut lowered = String::new();
        let words = words_of(text, &mut lowered);
        let (mut found, mut phrase) = (Vec::new(), String::new());
        let mut at = 0;
        while at < words.len() {
            let longest = self.n_words.min(words.len() - at);
            let known = (1..=longest).rev().find_map(|n_words| {
                phrase.clear();
                for word in &words[at..at + n_words] {
                    if !phrase.is_empty() {
                        phrase.push(' ');
                    }
                    phrase.push_str(word);
                }
                Some((n_words, self.lines_of.get(phrase.as_str())?))
            });
            if let Some((n_words, lines)) = known {
                found.extend(lines);
                at += n_words;
                continue;
            }
            if let Some([first, second]) = self.parts(words[at]) {
                found.extend(first.iter().chain(second));
            }
            at += 1;
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|line| seen.insert(*line));
        found
    }

    /// The lines of the two parts of a compound.
    fn parts(&self, word: &str) -> Option<[&Vec<u32>; 2]> {
        let is_candidate = word.len() >= 2 * MIN_PART && word.len() <= MAX_COMPOUND;
        if !is_candidate {
            return None;
        }
        let has_letters = |part: &str| part.chars().nth(MIN_PART - 1).is_some();
        let cuts = word.char_indices().map(|(cut, _)| word.split_at(cut));
        for (before, second) in cuts.filter(|(_, second)| has_letters(second)) {
            let Some(lines) = self.lines_of.get(second) else {
                continue;
            };
            let firsts = LINKS.iter().filter_map(|link| before.strip_suffix(link));
            let mut firsts = firsts.filter(|first| has_letters(first));
            if let Some(first) = firsts.find_map(|first| self.lines_of.get(first)) {
                return Some([first, lines]);
            }
        }
        None
    }
}

/// The words of a text in lower case, which is written into the buffer.
fn words_of<'b>(text: &str, lowered: &'b mut String) -> Vec<&'b str> {
    lowercase_into(text, lowered);
    let mut words = Vec::new();
    for_each_token(lowered, |word| {
        // Cut at the borders of characters.
        words.extend(std::str::from_utf8(word).ok());
    });
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expansion(pairs: &[(&str, &str)]) -> Expansion {
        Expansion::new(Synonyms::from_pairs(pairs.iter().copied()).unwrap())
    }

    #[test]
    fn phrases_words_and_parts_of_compounds_add_their_words_once() {
        let known = expansion(&[
            ("Haus", "house"),
            ("rotes Haus", "red house"),
            ("haus", "home"),
            ("Flughafen", "airport"),
            ("Vorfeld", "apron"),
            ("Staat", "state"),
            ("Grenze", "border"),
            ("feld", "field"),
        ]);
        let check = |text: &str, added: &str| {
            let expected = if added.is_empty() {
                text.to_owned()
            } else {
                format!("{text}\n {added}")
            };
            assert_eq!(known.expand(text), expected);
        };
        check("Ein Haus, ein HAUS", "house home");
        check("Rotes Haus!", "red house");
        check("rotes", "");
        // The longest second part, so not "feld".
        check("Flughafenvorfeld", "airport apron");
        check("Staatsgrenze Staatesgrenze", "state border");
        check("Hausboot Bootshaus Vorfelder", "");
        check("", "");
    }

    #[test]
    fn phrases_that_are_too_long_or_have_no_word_are_never_found() {
        let known = expansion(&[("a b c d e f g", "x"), ("--", "y")]);
        assert_eq!(known.expand("a b c d e f g --"), "a b c d e f g --");
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_words_and_gets_only_those_of_the_list(text in "[a-dA-D ßé-]{0,60}") {
            let known = expansion(&[("abcd", "one"), ("dcba", "two"), ("a b", "three"), ("ßé", "four")]);
            let expanded = known.expand(&text);
            prop_assert!(expanded.starts_with(&text));
            let added: Vec<_> = expanded[text.len()..].split_whitespace().collect();
            let mut distinct = added.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), added.len());
            prop_assert!(added.iter().all(|word| ["one", "two", "three", "four"].contains(word)));
            for (phrase, word) in [("abcd", "one"), ("ßé", "four")] {
                let lowered = text.to_lowercase();
                let has_it = lowered.split([' ', '-']).any(|token| token == phrase);
                prop_assert!(!has_it || added.contains(&word), "{} of {:?}", phrase, text);
            }
        }
    }
}
