//! Messages on stderr: how many, and whether in colour.
//!
//! A closed stderr is not an error, so nothing here uses the print macros, which panic.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use elias::ReadOption;

/// How much is printed on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Inputs and results.
    Normal,
    /// Also timings and other details.
    Verbose,
}

/// Prints messages for the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    verbosity: Verbosity,
    is_terminal: bool,
    is_coloured: bool,
}

impl Console {
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Console {
            verbosity,
            is_terminal,
            is_coloured: is_terminal && !no_color,
        }
    }

    /// Prints a line, unless quiet.
    pub(crate) fn info(&self, line: impl Display) {
        self.line(Verbosity::Normal, line);
    }

    /// Prints a line if verbose.
    pub(crate) fn detail(&self, line: impl Display) {
        self.line(Verbosity::Verbose, line);
    }

    /// Prints the error that ends the command, with its causes.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let (on, off) = if self.is_coloured {
            ("\x1b[1;31m", "\x1b[0m")
        } else {
            ("", "")
        };
        let message = error_message(error);
        self.line(Verbosity::Quiet, format_args!("{on}error:{off} {message}"));
    }

    fn line(&self, min_verbosity: Verbosity, line: impl Display) {
        if self.verbosity >= min_verbosity {
            // There is nowhere to report a failure.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Whether stderr is a terminal, where a line can be redrawn.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(crate) fn is_coloured(&self) -> bool {
        self.is_coloured
    }
}

/// The error and its causes on one line; a cause already at the end of the message is not repeated.
pub(crate) fn error_message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if message.ends_with(&cause) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&cause);
    }
    let errors = error.chain().filter_map(|cause| cause.downcast_ref());
    let needed = errors.filter_map(elias::Error::needed_option).next();
    message.push_str(needed.map_or("", |option| match option {
        ReadOption::TextColumn => "; name the column of the text with --text-column",
        ReadOption::LabelColumn => "; name the column of the labels with --label-column",
        ReadOption::LabelSeparator => "; name another separator with --label-separator",
        ReadOption::Format => "; if you know the format, name it with --format",
        _ => "",
    }));
    message
}

/// Arguments that make no sense: exit code 2.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// Whether the reader of stdout closed the pipe.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_appears_once() {
        let cause = io::Error::other("the disk is full");
        let error = elias::Error::Io {
            path: "a.jsonl".into(),
            action: "write",
            source: cause,
        };
        let error = anyhow::Error::from(error).context("while writing the answers");
        assert_eq!(
            error_message(&error),
            "while writing the answers: a.jsonl: cannot write: the disk is full"
        );
    }
}
