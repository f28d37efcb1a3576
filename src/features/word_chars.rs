//! Which characters belong to words.
//!
//! Letters and digits are those of the standard library, in the wide sense of Unicode's Alphabetic property, which
//! includes most vowel signs and circled letters. The table adds the other marks; it was made from Unicode 14 (Python's
//! `unicodedata`).

/// Whether this character continues a word: a letter, a digit, the underscore, a mark on a letter, or a joiner.
pub(super) fn is_word_char(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    character.is_alphanumeric() || is_mark(character)
}

/// Whether this character can only continue a word, never begin one: a mark on a letter, or a joiner.
pub(super) fn is_mark(character: char) -> bool {
    let is_joiner = matches!(character, '\u{200c}' | '\u{200d}');
    is_joiner || (is_in(MARKS, character) && !character.is_alphanumeric())
}

/// Whether this character is a word by itself: Han, which is written without spaces.
pub(super) fn is_word_by_itself(character: char) -> bool {
    matches!(
        character as u32,
        0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff
    )
}

/// Whether a character lies in one of the ranges, which ascend.
fn is_in(ranges: &[(u32, u32)], character: char) -> bool {
    let code = character as u32;
    let n_below = ranges.partition_point(|&(_, last)| last < code);
    ranges.get(n_below).is_some_and(|&(first, _)| first <= code)
}

/// Marks (category M) that are not alphabetic. A range may run over letters and unassigned characters.
#[rustfmt::skip] // One range per line would be a hundred lines.
const MARKS: &[(u32, u32)] = &[
    (0x0300, 0x0362), (0x0483, 0x0489), (0x0591, 0x05af), (0x0658, 0x0658), (0x06df, 0x06e0), (0x06ea, 0x06ec),
    (0x0740, 0x07f3), (0x07fd, 0x07fd), (0x0818, 0x082d), (0x0859, 0x085b), (0x0898, 0x08e1), (0x08ea, 0x0954),
    (0x09bc, 0x09cd), (0x09fe, 0x0a4d), (0x0abc, 0x0acd), (0x0afd, 0x0b55), (0x0bcd, 0x0bcd), (0x0c3c, 0x0c4d),
    (0x0cbc, 0x0d4d), (0x0dca, 0x0dca), (0x0e47, 0x0e4e), (0x0eba, 0x0ecc), (0x0f18, 0x0f19), (0x0f35, 0x0f35),
    (0x0f37, 0x0f37), (0x0f39, 0x0f39), (0x0f3e, 0x0f84), (0x0f86, 0x0f87), (0x0fc6, 0x0fc6), (0x1037, 0x103a),
    (0x135d, 0x135f), (0x1714, 0x1734), (0x17b4, 0x17d3), (0x17dd, 0x17dd), (0x180b, 0x180d), (0x180f, 0x193b),
    (0x1a60, 0x1a7f), (0x1ab0, 0x1b44), (0x1b6b, 0x1b73), (0x1baa, 0x1bf3), (0x1c37, 0x1c37), (0x1cd0, 0x1cd2),
    (0x1cd4, 0x1dff), (0x20d0, 0x20f0), (0x2cef, 0x2cf1), (0x2d7f, 0x2d7f), (0x302a, 0x302f), (0x3099, 0x309a),
    (0xa66f, 0xa672), (0xa67c, 0xa67d), (0xa6f0, 0xa6f1), (0xa806, 0xa806), (0xa82c, 0xa82c), (0xa8c4, 0xa8c4),
    (0xa8e0, 0xa8f1), (0xa92b, 0xa92d), (0xa953, 0xa953), (0xa9b3, 0xa9c0), (0xaabf, 0xaac1), (0xaaf6, 0xaaf6),
    (0xabec, 0xabed), (0xfe00, 0xfe0f), (0xfe20, 0xfe2f), (0x101fd, 0x102e0), (0x10a38, 0x10a3f),
    (0x10ae5, 0x10ae6), (0x10f46, 0x10f50), (0x10f82, 0x10f85), (0x11046, 0x11046), (0x11070, 0x110ba),
    (0x11133, 0x11134), (0x11173, 0x11173), (0x111c0, 0x111c0), (0x111c9, 0x111cc), (0x11235, 0x11236),
    (0x112e9, 0x11446), (0x1145e, 0x114c3), (0x115bf, 0x115c0), (0x1163f, 0x1163f), (0x116b6, 0x116b7),
    (0x1172b, 0x1172b), (0x11839, 0x1183a), (0x1193d, 0x11943), (0x119e0, 0x119e0), (0x11a33, 0x11a34),
    (0x11a47, 0x11a99), (0x11c3f, 0x11c3f), (0x11d42, 0x11d97), (0x16af0, 0x16af4), (0x16b30, 0x16b36),
    (0x16fe4, 0x16fe4), (0x1bc9d, 0x1bc9d), (0x1cf00, 0x1cf46), (0x1d165, 0x1d169), (0x1d16d, 0x1d172),
    (0x1d17b, 0x1d182), (0x1d185, 0x1d18b), (0x1d1aa, 0x1d1ad), (0x1d242, 0x1d244), (0x1da00, 0x1da36),
    (0x1da3b, 0x1da6c), (0x1da75, 0x1da75), (0x1da84, 0x1da84), (0x1da9b, 0x1e136), (0x1e2ae, 0x1e2ef),
    (0x1e8d0, 0x1e94a), (0xe0100, 0xe01ef),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_ascending_ranges() {
        assert!(MARKS.iter().all(|&(first, last)| first <= last));
        assert!(MARKS.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn word_characters_are_those_of_python_and_marks() {
        // Python: re.match(r"\w", character) is not None.
        for character in "aZ0_éßΩж中한ªº²½Ⅷ०ǅ\u{10400}".chars() {
            assert!(is_word_char(character), "{character:?}");
        }
        for character in "-.' \u{a0}«€\u{2028}😀".chars() {
            assert!(!is_word_char(character), "{character:?}");
        }
        // These are None in Python.
        for character in "\u{301}\u{345}\u{93f}\u{94d}\u{e31}Ⓐ".chars() {
            assert!(is_word_char(character), "{character:?}");
        }
    }
}
