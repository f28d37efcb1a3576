//! Splits a text into words.
//!
//! The text is lower-cased as a whole, then cut into maximal runs of letters, digits, underscores and marks on letters;
//! a Han character is a word by itself. Lower-casing comes first because it can change what follows a letter ("İ"
//! becomes "i" and a combining dot). Nothing is stemmed or normalised.
//! ASCII, the bulk of most texts, is handled bytewise.

use crate::features::word_chars::{is_mark, is_word_by_itself, is_word_char};

/// Writes the text into `lowered`, in lower case.
///
/// Allocates only if `lowered` is too small, or the text contains a capital sigma, whose lower case depends on its
/// context.
pub(super) fn lowercase_into(text: &str, lowered: &mut String) {
    lowered.clear();
    if text.is_ascii() {
        lowered.push_str(text);
        lowered.make_ascii_lowercase();
    } else if text.contains('Σ') {
        lowered.push_str(&text.to_lowercase());
    } else {
        for character in text.chars() {
            if character.is_ascii() {
                lowered.push(character.to_ascii_lowercase());
            } else {
                lowered.extend(character.to_lowercase());
            }
        }
    }
}

/// Calls `visit` with each word of the text, in order.
pub(super) fn for_each_token<'text>(text: &'text str, mut visit: impl FnMut(&'text [u8])) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at = end_of_ascii_run(bytes, at);
        // A run goes on through non-ASCII word characters, and through ASCII ones after them.
        while let Some(character) = non_ascii_at(text, at) {
            let ends_before = is_word_by_itself(character)
                || !is_word_char(character)
                || (at == start && is_mark(character));
            if ends_before {
                break;
            }
            at = end_of_ascii_run(bytes, at + character.len_utf8());
        }
        if at > start {
            visit(&bytes[start..at]);
        }
        // The run ended at the end of the text, a separator, or a character that is a word by itself.
        let Some(&stopper) = bytes.get(at) else { break };
        if stopper.is_ascii() {
            at += 1;
        } else if let Some(character) = non_ascii_at(text, at) {
            let after = at + character.len_utf8();
            if is_word_by_itself(character) {
                visit(&bytes[at..after]);
            }
            at = after;
        }
    }
}

/// Where the run of ASCII word characters from `at` on ends.
#[inline]
fn end_of_ascii_run(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && is_ascii_word_byte(bytes[at]) {
        at += 1;
    }
    at
}

/// The character at a character boundary, if there is one and it is not ASCII.
#[inline]
fn non_ascii_at(text: &str, at: usize) -> Option<char> {
    let is_ascii = text.as_bytes().get(at)?.is_ascii();
    if is_ascii {
        return None;
    }
    text[at..].chars().next()
}

#[inline]
fn is_ascii_word_byte(byte: u8) -> bool {
    ASCII_WORD_BYTES[byte as usize]
}

const ASCII_WORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut lowered = String::new();
        lowercase_into(text, &mut lowered);
        let mut found = Vec::new();
        for_each_token(&lowered, |token| {
            found.push(String::from_utf8(token.to_vec()).unwrap());
        });
        found
    }

    fn check(text: &str, words: &[&str]) {
        assert_eq!(tokens(text), words);
    }

    #[test]
    fn words_are_cut_as_documented() {
        check("", &[]);
        check(" \t-", &[]);
        check("A C++ parser", &["a", "c", "parser"]);
        check("snake_case x2", &["snake_case", "x2"]);
        check("Café-Straße é", &["café", "straße", "é"]);
        check("naïve’s", &["naïve", "s"]);
        check("ΟΔΟΣ ΣΑΣ", &["οδος", "σας"]);
        check("İstanbul", &["i\u{307}stanbul"]);
        check("cafe\u{301}s", &["cafe\u{301}s"]);
        check("\u{301}a", &["a"]);
        check("हिन्दी", &["हिन्दी"]);
        check("x²½ Ⅷ", &["x²½", "ⅷ"]);
        check("日本x語", &["日", "本", "x", "語"]);
        check("한국어 ok", &["한국어", "ok"]);
        check("a😀b\u{a0}cd", &["a", "b", "cd"]);
        check("ǅ Ǆa", &["ǆ", "ǆa"]);
        check("zero\u{200d}joined", &["zero\u{200d}joined"]);
    }

    proptest! {
        #[test]
        fn bytewise_cutting_equals_cutting_by_character(text in "[a-cA-C_0-9 \\-.éÉβΣßİ日\u{301}\u{200d}²Ⓐ😀ि]{0,40}") {
            let lowered = text.to_lowercase();
            let mut expected = Vec::new();
            let mut word = String::new();
            for character in lowered.chars().chain([' ']) {
                let alone = is_word_by_itself(character);
                let starts = is_word_char(character) && !is_mark(character);
                if !alone && (starts || (is_word_char(character) && !word.is_empty())) {
                    word.push(character);
                    continue;
                }
                if !word.is_empty() {
                    expected.push(std::mem::take(&mut word));
                }
                if alone {
                    expected.push(character.to_string());
                }
            }
            prop_assert_eq!(tokens(&text), expected);
        }
    }
}
