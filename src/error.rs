//! The one error type of the library.
//!
//! Variants are grouped by cause; each names the place, what was found, what was expected and, where there is
//! one, the remedy. Messages are lower case without a full stop. User input never panics: it ends here.

use std::fmt;
use std::path::PathBuf;

/// Everything that can go wrong in the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // -- files ---------------------------------------------------------------------------------------------
    /// The operating system refused a file operation.
    #[error("{path}: cannot {action}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The attempted operation, as a verb: `open`, `read`, `create`.
        action: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// A path that does not exist.
    #[error("{path}: no such file or directory{hint}", path = path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
        /// A similar path, as the end of a sentence; may be empty.
        hint: String,
    },
    /// A directory that does not hold a model.
    #[error("{path} is not a model: it has no manifest.json", path = path.display())]
    NotAModel {
        /// The directory.
        path: PathBuf,
    },
    /// A place for a model that is in use.
    #[error("{path} {holds}", path = path.display())]
    Taken {
        /// The directory or file.
        path: PathBuf,
        /// The contents.
        holds: Contents,
    },

    /// A directory that another process writes into, or has written into since it was read.
    #[error("{path}: {problem}", path = path.display())]
    InUse {
        /// The directory, or the file that says so.
        path: PathBuf,
        /// A phrase for what happens there, and the remedy.
        problem: String,
    },

    // -- data ----------------------------------------------------------------------------------------------
    /// Data that could be read, if something were said of it.
    #[error("{source}")]
    Unclear {
        /// The option of reading that would help.
        needs: ReadOption,
        /// The problem without it.
        source: Box<Error>,
    },
    /// A line that does not follow its format.
    #[error("{path}:{line}: found {found}, expected {expected}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// One-based line number.
        line: usize,
        /// The text found, shortened.
        found: String,
        /// The expected text.
        expected: String,
    },
    /// A label id at or above the declared number of labels.
    #[error("{path}:{line}: label {label} is out of range, the header declares {n_labels} labels (ids start at 0)", path = path.display())]
    LabelOutOfRange {
        /// The file.
        path: PathBuf,
        /// One-based line number.
        line: usize,
        /// The label found.
        label: u64,
        /// The number of labels declared.
        n_labels: usize,
    },
    /// A whole file whose content contradicts itself or its siblings.
    #[error("{path}: {problem}", path = path.display())]
    BadFile {
        /// The file or directory.
        path: PathBuf,
        /// A phrase for what was found, what was expected, and the remedy.
        problem: String,
    },

    // -- matrices and data sets ----------------------------------------------------------------------------
    /// Arrays that do not form a matrix.
    #[error("not a valid matrix: {0}")]
    InvalidMatrix(String),
    /// Parts that do not form a data set.
    #[error("not a valid data set: {0}")]
    InvalidDataset(String),
    /// Words and weights that do not form a vocabulary.
    #[error("not a valid vocabulary: {0}")]
    InvalidVocabulary(String),

    // -- models --------------------------------------------------------------------------------------------
    /// Parts that do not form a model.
    #[error("not a valid model: {0}")]
    InvalidModel(String),

    // -- configuration -------------------------------------------------------------------------------------
    /// A configuration value that cannot be used.
    #[error("config {key}: found {found}, expected {expected}")]
    Config {
        /// The dotted key.
        key: String,
        /// The value found.
        found: String,
        /// The values that can be used.
        expected: String,
    },

    // -- training ------------------------------------------------------------------------------------------
    /// Data that cannot be trained on.
    #[error("cannot train: {0}")]
    CannotTrain(String),
    /// Input that a model cannot answer.
    #[error("cannot predict: {0}")]
    CannotPredict(String),
    /// A value of a query that makes no sense.
    #[error("{name}: found {found}, expected {expected}")]
    Query {
        /// The field of the query.
        name: &'static str,
        /// The value found.
        found: String,
        /// Values that would do.
        expected: &'static str,
    },
    /// A list of labels with some that the model does not know.
    #[error("{list}: {found:?}{} not among the labels of the model", and_others(*n_others))]
    UnknownLabels {
        /// The field of the query.
        list: &'static str,
        /// The first of them: a name, or a number after `#`.
        found: String,
        /// How many more there are.
        n_others: usize,
    },
    /// A training that does not fit into memory.
    #[error("training would need about {needed}, more than {limit}; {remedy}")]
    TooLittleMemory {
        /// Memory that the training needs.
        needed: String,
        /// Memory that there is.
        limit: String,
        /// Settings to change.
        remedy: &'static str,
    },
    /// Training left the finite or the sensible.
    #[error("training diverged at step {step}: {what}; {remedy}")]
    Diverged {
        /// The step at which it was noticed.
        step: usize,
        /// The symptom.
        what: String,
        /// The remedy to try.
        remedy: String,
    },
    /// The observer asked to stop.
    #[error("stopped on request")]
    Stopped,
}

/// The contents of a place that a model was to be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contents {
    /// A training that can be resumed.
    UnfinishedTraining,
    /// A model or other files.
    Files,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contents::UnfinishedTraining => "contains an unfinished training",
            Contents::Files => "already exists",
        })
    }
}

/// An option of reading data; each front end has its own way to give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadOption {
    /// The column of texts.
    TextColumn,
    /// The column of labels.
    LabelColumn,
    /// The separator of labels within a column.
    LabelSeparator,
    /// The format.
    Format,
}

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The option of reading without which the data cannot be read.
    pub fn needed_option(&self) -> Option<ReadOption> {
        match self {
            Error::Unclear { needs, .. } => Some(*needs),
            _ => None,
        }
    }

    /// This problem, which an option of reading would solve.
    pub(crate) fn unless_given(self, needs: ReadOption) -> Self {
        Error::Unclear {
            needs,
            source: Box::new(self),
        }
    }

    /// Wraps an operating-system error with the path and the attempted action.
    pub(crate) fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
        source: std::io::Error,
    ) -> Self {
        Error::Io {
            path: path.into(),
            action,
            source,
        }
    }
}

/// A text of a file or of another parser's error, as one line that fits into a message.
pub(crate) fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut chars = text.chars().map(one_line);
    let mut line: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// The error of a parser in plain words, without those of its programming language: "… instead of …".
pub(crate) fn in_plain_words(reason: &str) -> String {
    let reason = reason
        .rsplit_once(" at line ")
        .map_or(reason, |(reason, _)| reason);
    let reason = reason.strip_prefix("invalid type: ").unwrap_or(reason);
    let reason = reason.strip_prefix("invalid value: ").unwrap_or(reason);
    if let Some(rest) = reason.strip_prefix("unknown field ") {
        let (key, known) = rest.split_once(", expected ").unwrap_or((rest, "no key"));
        return format!("the key {} instead of {}", plain(key), plain(known));
    }
    if let Some(rest) = reason.strip_prefix("unknown variant ") {
        let (name, known) = rest.split_once(", expected ").unwrap_or((rest, "no name"));
        return format!("{} instead of {}", plain(name), plain(known));
    }
    for (prefix, words) in [
        ("missing field ", "no key "),
        ("duplicate field ", "twice the key "),
    ] {
        if let Some(key) = reason.strip_prefix(prefix) {
            return format!("{words}{}", plain(key));
        }
    }
    match reason.rsplit_once(", expected ") {
        Some((found, expected)) => format!("{} instead of {}", value(found), kind(expected)),
        None => reason.to_owned(),
    }
}

/// Names in double quotes instead of backticks.
/// Ends the subject of a sentence about something and others like it.
fn and_others(n_others: usize) -> String {
    match n_others {
        0 => " is".into(),
        1 => " and another are".into(),
        _ => format!(" and {n_others} others are"),
    }
}

fn plain(names: &str) -> String {
    names.replace('`', "\"")
}

/// A value that was found.
fn value(found: &str) -> String {
    let unquoted = |prefix| found.strip_prefix(prefix)?.strip_suffix('`');
    if let Some(number) = unquoted("integer `").or_else(|| unquoted("floating point `")) {
        return format!("the number {number}");
    }
    match found {
        "map" => "an object".into(),
        "sequence" => "a list".into(),
        "unit variant" => "a value of another kind".into(),
        found => match unquoted("boolean `") {
            Some(boolean) => boolean.into(),
            None => found.strip_prefix("string ").unwrap_or(found).into(),
        },
    }
}

/// The kind of value that was expected.
fn kind(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "usize" | "u64" | "u32" | "u16" | "u8" => "an integer of at least 0",
        "i64" | "i32" => "an integer",
        "a sequence" => "a list",
        "a map" => "an object",
        "string only" => "a name",
        expected if expected.starts_with("struct ") => "an object or section of its own keys",
        expected if expected.starts_with("tuple ") => "a list",
        expected => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_parser_have_no_words_of_its_language() {
        for (reason, expected) in [
            (
                "invalid type: map, expected a string",
                "an object instead of a string",
            ),
            (
                "invalid value: integer `-1`, expected usize at line 3 column 7",
                "the number -1 instead of an integer of at least 0",
            ),
            (
                "invalid type: string \"a, expected b\", expected f32",
                "\"a, expected b\" instead of a number",
            ),
            (
                "invalid type: integer `3`, expected struct EncoderConfig",
                "the number 3 instead of an object or section of its own keys",
            ),
            (
                "unknown variant `x`, expected `a` or `b`",
                "\"x\" instead of \"a\" or \"b\"",
            ),
            (
                "unknown field `x`, expected one of `a`, `b`",
                "the key \"x\" instead of one of \"a\", \"b\"",
            ),
            ("missing field `text`", "no key \"text\""),
            ("duplicate field `text`", "twice the key \"text\""),
            (
                "invalid type: boolean `true`, expected a sequence",
                "true instead of a list",
            ),
            ("key \"labels\" twice", "key \"labels\" twice"),
        ] {
            assert_eq!(in_plain_words(reason), expected);
        }
    }
}
