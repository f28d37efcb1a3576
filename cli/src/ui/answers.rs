//! Answers for people: the text, and below it a label per line.

use std::io::{self, Write};

use elias::Prediction;
use unicode_width::UnicodeWidthStr;

use crate::ui::table::{MAX_WIDTH, shorten};

/// Columns of a probability or a score, with the space before it.
const NUMBER: usize = 9;

/// Writes a text with its answers, best first.
pub(crate) fn write(
    out: &mut impl Write,
    text: &str,
    is_unknown: bool,
    answers: &[Prediction<'_>],
) -> io::Result<()> {
    writeln!(out, "{}", shorten(text, MAX_WIDTH))?;
    if is_unknown {
        writeln!(
            out,
            "  (no word that the model knows: these are the labels it gives to anything)"
        )?;
    }
    if answers.is_empty() {
        writeln!(out, "  (no label)")?;
    }
    let widest = answers.iter().map(|answer| answer.label.width()).max();
    let width = widest.unwrap_or(0).min(MAX_WIDTH - NUMBER - 2);
    for answer in answers {
        let label = shorten(answer.label, width);
        let padding = " ".repeat(width - label.width());
        let number = match answer.probability {
            Some(probability) => format!("{:.1} %", 100.0 * probability),
            None => format!("{:.4}", answer.score),
        };
        writeln!(out, "  {label}{padding}{number:>NUMBER$}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use elias::LabelId;

    fn answer(label: &str, score: f32, probability: Option<f32>) -> Prediction<'_> {
        Prediction {
            id: LabelId(0),
            label,
            score,
            probability,
        }
    }

    fn check(is_unknown: bool, answers: &[Prediction<'_>], expected: &str) {
        let mut out = Vec::new();
        write(&mut out, "a\ttext", is_unknown, answers).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn labels_are_below_the_text_with_their_probabilities() {
        let likely = answer("long label", 0.5, Some(0.875));
        check(
            false,
            &[likely, answer("short", 0.25, None)],
            "a text\n  long label   87.5 %\n  short        0.2500\n\n",
        );
    }

    #[test]
    fn what_a_model_cannot_know_is_said() {
        let expected = "a text\n  (no word that the model knows: these are the labels it gives to anything)\n  (no label)\n\n";
        check(true, &[], expected);
    }
}
