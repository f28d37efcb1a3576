//! Texts in tables that spreadsheets open: none becomes a formula.
//!
//! A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@`; where it takes semicolons or tabs for separators, or
//! a line feed for the end of a row, what follows one begins a cell, too, and some leave out characters that cannot be
//! seen. An apostrophe in front makes it a text, and is removed by [`plain`].

use std::borrow::Cow;

/// Characters that a spreadsheet may take for the end of a cell inside of one.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

/// A text with an apostrophe wherever a formula could begin.
pub(super) fn guarded(text: &str) -> Cow<'_, str> {
    rewrite(text, |rest| is_formula(rest).then_some(("'", 0)))
}

/// The text that was guarded.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    rewrite(text, |rest| {
        let is_guard = rest.strip_prefix('\'').is_some_and(is_formula);
        is_guard.then_some(("", 1))
    })
}

/// Replaces the first bytes of cells: `change` says by what, and how many.
fn rewrite(text: &str, change: impl Fn(&str) -> Option<(&'static str, usize)>) -> Cow<'_, str> {
    let ends = text.match_indices(SEPARATORS).map(|(at, _)| at + 1);
    // The whole text, in case separators are left out, too; then each cell up to its end.
    let cells = ends.map(|start| (start, text[start..].split(SEPARATORS).next().unwrap_or("")));
    let cells = std::iter::once((0, text)).chain(cells);
    let mut rewritten = String::new();
    let mut n_done = 0;
    for (start, cell) in cells {
        if let Some((new, n_old)) = change(cell) {
            rewritten.push_str(&text[n_done..start]);
            rewritten.push_str(new);
            n_done = start + n_old;
        }
    }
    if n_done == 0 && rewritten.is_empty() {
        return Cow::Borrowed(text);
    }
    rewritten.push_str(&text[n_done..]);
    Cow::Owned(rewritten)
}

/// Whether a spreadsheet could run what begins here, behind apostrophes and what cannot be seen.
fn is_formula(text: &str) -> bool {
    let visible = text.trim_start_matches(|c| c == '\'' || is_invisible(c));
    if !visible.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        return false;
    }
    let cell = visible.split(SEPARATORS).next().unwrap_or("");
    !cell.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Characters that take no room: white space, controls, marks of direction and joints of width zero.
fn is_invisible(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_survives(text in "[a=+@1;'\t\n \u{200b}-]{0,8}|.{0,20}") {
            let guarded = guarded(&text);
            prop_assert!(plain(&guarded) == text, "{guarded:?}");
        }

        #[test]
        fn no_cell_begins_with_a_formula(text in "[a=+@1;\t\n \u{200b}-]{0,8}") {
            let guarded = guarded(&text).into_owned();
            for cell in guarded.split([';', '\t', '\r', '\n']) {
                let visible = cell.trim_start_matches(is_invisible);
                let is_number = visible.parse::<f64>().is_ok();
                prop_assert!(is_number || !visible.starts_with(['=', '+', '-', '@']), "{:?}", guarded);
            }
        }
    }

    #[test]
    fn formulas_get_an_apostrophe_and_numbers_do_not() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("\n=1+1", "'\n'=1+1"),
            ("\u{200b}@SUM(A1)", "'\u{200b}@SUM(A1)"),
            ("a;=1+1", "a;'=1+1"),
            ("a\t+cmd", "a\t'+cmd"),
            ("＝1", "'＝1"),
            ("'=a", "''=a"),
            ("-17", "-17"),
            ("+1.5", "+1.5"),
            ("a-b=c", "a-b=c"),
            ("'a", "'a"),
            ("", ""),
        ] {
            assert_eq!(guarded(text), expected);
            assert_eq!(plain(expected), text);
        }
    }
}
