//! Words for people, on stderr: how many of them, and whether in colour.
//!
//! Writing to a closed stderr is no reason to fail, so nothing here uses the panicking print macros.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// What was used and what came of it.
    Normal,
    /// Also what is only of interest when something is odd.
    Verbose,
}

/// Where words go.
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

    /// A line that users want to see.
    pub(crate) fn say(&self, line: impl Display) {
        self.line(Verbosity::Normal, line);
    }

    /// A line for those who asked for more.
    pub(crate) fn detail(&self, line: impl Display) {
        self.line(Verbosity::Verbose, line);
    }

    /// The error that ends the command, with its causes, once.
    pub(crate) fn fail(&self, error: &anyhow::Error) {
        let (on, off) = if self.is_coloured {
            ("\x1b[1;31m", "\x1b[0m")
        } else {
            ("", "")
        };
        let told = tell(error);
        self.line(Verbosity::Quiet, format_args!("{on}error:{off} {told}"));
    }

    fn line(&self, least: Verbosity, line: impl Display) {
        if least <= self.verbosity {
            // Nobody is left to tell if this fails.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Whether stderr is a terminal, where a line can be drawn anew.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(crate) fn is_coloured(&self) -> bool {
        self.is_coloured
    }
}

/// The error and its causes in one line; a cause that the message before it already gives is not told again.
fn tell(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if told.ends_with(&cause) {
            continue;
        }
        if !told.is_empty() {
            told.push_str(": ");
        }
        told.push_str(&cause);
    }
    told
}

/// A use of the command that cannot be meant: exit 2.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// Whether the reader of stdout went away.
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
    fn each_cause_is_told_once() {
        let cause = io::Error::other("the disk is full");
        let error = elias::Error::io("a.jsonl", "write", cause);
        let error = anyhow::Error::from(error).context("while writing the answers");
        assert_eq!(
            tell(&error),
            "while writing the answers: a.jsonl: cannot write: the disk is full"
        );
    }
}
