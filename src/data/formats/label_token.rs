//! Label names in formats that separate labels by spaces: white space is escaped as in URLs (`%20`), and undone on
//! reading.
//!
//! A per cent sign is escaped only where it would look like an escape, and only escapes of white space and of the
//! per cent sign are undone, so that names such as `100%` or `a%2Fb` stay what they are.

use std::borrow::Cow;
use std::fmt::Write;

/// The name without white space.
pub(in crate::data) fn escape(name: &str) -> Cow<'_, str> {
    let looks_escaped = |at: usize| hex_byte(&name.as_bytes()[at..]).is_some();
    let is_special = |at: usize, c: char| is_separator(c) || (c == '%' && looks_escaped(at));
    if !name.char_indices().any(|(at, c)| is_special(at, c)) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    for (at, c) in name.char_indices() {
        if !is_special(at, c) {
            escaped.push(c);
            continue;
        }
        let mut utf8 = [0u8; 4];
        for byte in c.encode_utf8(&mut utf8).bytes() {
            write!(escaped, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    Cow::Owned(escaped)
}

/// The name that was escaped.
pub(in crate::data) fn unescape(token: &str) -> Cow<'_, str> {
    if memchr::memchr(b'%', token.as_bytes()).is_none() {
        return Cow::Borrowed(token);
    }
    let mut name = String::with_capacity(token.len());
    let mut rest = token;
    while let Some(at) = rest.find('%') {
        name.push_str(&rest[..at]);
        rest = &rest[at..];
        match escaped_char(rest.as_bytes()) {
            Some((c, n_bytes)) => {
                name.push(c);
                rest = &rest[n_bytes..];
            }
            None => {
                name.push('%');
                rest = &rest[1..];
            }
        }
    }
    name.push_str(rest);
    Cow::Owned(name)
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || c == '\0'
}

/// The byte of an escape such as `%2F` at the start of the text.
fn hex_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else {
        return None;
    };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    Some((16 * digit(high)? + digit(low)?) as u8)
}

/// A character that [`escape`] escapes, and the length of its escape.
fn escaped_char(text: &[u8]) -> Option<(char, usize)> {
    let n_bytes = match hex_byte(text)? {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => return None,
    };
    let mut utf8 = [0u8; 3];
    for (position, byte) in utf8[..n_bytes].iter_mut().enumerate() {
        *byte = hex_byte(text.get(3 * position..)?)?;
    }
    let c = std::str::from_utf8(&utf8[..n_bytes]).ok()?.chars().next()?;
    (is_separator(c) || c == '%').then_some((c, 3 * n_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_white_space_is_escaped() {
        assert_eq!(escape("a b\u{a0}c%"), "a%20b%C2%A0c%");
        assert_eq!(escape("100%25"), "100%2525");
        assert_eq!(unescape("a%2Fb%2"), "a%2Fb%2");
        assert_eq!(unescape("a%20b%C2%A0%2520"), "a b\u{a0}%20");
    }

    proptest! {
        #[test]
        fn names_survive_escaping(name in "[a %0-9A-F\u{a0}\u{3000}é\t\n]{0,12}|\\PC{0,12}") {
            let token = escape(&name).into_owned();
            prop_assert!(!token.contains(char::is_whitespace));
            prop_assert_eq!(unescape(&token), name);
        }

        #[test]
        fn any_token_can_be_unescaped(token in "\\PC*") {
            unescape(&token);
        }
    }
}
