//! Counts and texts as they stand in sentences.

/// A count with its noun: "1 point", "2 points".
pub(super) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// The text, or its first characters with `…` for the rest. Control characters become spaces.
pub(super) fn shorten(text: &str, max_chars: usize) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().count() <= max_chars {
        return text.chars().map(clean).collect();
    }
    let kept = text.chars().map(clean).take(max_chars.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_long_texts_end_in_an_ellipsis() {
        assert_eq!(
            [count(1, "point"), count(0, "point")],
            ["1 point", "0 points"]
        );
        assert_eq!([shorten("a\nb", 3), shorten("abcd", 3)], ["a b", "ab…"]);
    }
}
