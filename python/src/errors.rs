//! The one way from the library's errors to Python's exceptions.
//!
//! Every exception is an `elias_xmc.EliasError`; where Python has a word for the cause, it is that exception, too.

use std::io::ErrorKind;

use elias::{Contents, Error, ReadOption};
use pyo3::prelude::*;

/// A failure, as it can be carried from a thread without the interpreter's lock.
#[derive(Debug)]
pub(crate) struct Failure {
    cause: Cause,
    message: String,
}

/// Which exception it becomes.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// `EliasError` alone.
    Other,
    /// Also `ValueError`.
    Value,
    /// Also `FileNotFoundError`.
    NotFound,
    /// Also `OSError`.
    System,
}

impl Cause {
    fn of(error: &Error) -> Self {
        match error {
            Error::NotFound { .. } => Cause::NotFound,
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => Cause::NotFound,
            Error::Io { .. } => Cause::System,
            Error::TooLittleMemory { .. }
            | Error::InvalidModel(_)
            | Error::Diverged { .. }
            | Error::Stopped => Cause::Other,
            _ => Cause::Value,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Cause::Other => "EliasError",
            Cause::Value => "EliasValueError",
            Cause::NotFound => "EliasFileNotFoundError",
            Cause::System => "EliasOSError",
        }
    }
}

impl Failure {
    /// A value that cannot be used.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Failure {
            cause: Cause::Value,
            message: message.into(),
        }
    }

    /// Something else.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Failure {
            cause: Cause::Other,
            message: message.into(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = match error.needed_option() {
            Some(ReadOption::TextColumn) => "; name the column of the text with text_column=",
            Some(ReadOption::LabelColumn) => "; name the column of the labels with label_column=",
            Some(ReadOption::LabelSeparator) => "; name another separator with label_separator=",
            Some(ReadOption::Format) => "; if you know the format, name it with format=",
            _ => "",
        };
        let hint = match error {
            Error::Taken {
                holds: Contents::UnfinishedTraining,
                ..
            } => ": resume=True continues it, overwrite=True discards it",
            Error::Taken { .. } => ": overwrite=True replaces it",
            _ => hint,
        };
        Failure {
            cause: Cause::of(&error),
            message: format!("{error}{hint}"),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| {
            let class = py
                .import("elias_xmc._errors")
                .and_then(|module| module.getattr(failure.cause.class()));
            let exception = class.and_then(|class| class.call1((failure.message,)));
            exception.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

/// The exception for a value that cannot be used.
pub(crate) fn value_error(message: impl Into<String>) -> PyErr {
    Failure::value(message).into()
}
