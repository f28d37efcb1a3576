//! Numbers and text in plots and pages.

/// A number, rounded according to its size.
pub fn format_number(value: f64) -> String {
    let text = match value.abs() {
        0.0 => return "0".into(),
        v if v < 0.001 => return format!("{value:.0e}"),
        v if v < 1.0 => format!("{value:.3}"),
        v if v < 100.0 => format!("{value:.2}"),
        v if v < 10_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Escapes text for HTML and SVG, in elements and quoted attributes. Control characters become spaces.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let formatted = [0.0, 0.25, 12.5, 99.999, 1234.5, 51213.0, 0.00012].map(format_number);
        assert_eq!(
            formatted,
            ["0", "0.25", "12.5", "100", "1234.5", "51213", "1e-4"]
        );
    }
}
