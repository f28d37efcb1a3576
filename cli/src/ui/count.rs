//! Counts in sentences.

/// A count with its noun: "1 point", "2 points".
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "point"), "1 point");
        assert_eq!(count(0, "empty point"), "0 empty points");
    }
}
