//! The one way from the library's errors to Python's exceptions.
//!
//! Every exception is an `elias_xmc.EliasError`; where Python has a word for the cause, it is that exception, too.

use std::io::ErrorKind;

use elias::Error;
use elias_cli::shared;
use pyo3::prelude::*;

/// What went wrong, as it can be carried from a thread without the interpreter's lock.
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
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => Cause::NotFound,
            Error::Io { .. } => Cause::System,
            // What `data::missing` says of a path that does not exist.
            Error::BadFile { problem, .. } if problem.starts_with("no such file") => {
                Cause::NotFound
            }
            Error::InvalidModel(_) | Error::Diverged { .. } | Error::Stopped => Cause::Other,
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
        Failure {
            cause: Cause::of(&error),
            message: error.to_string(),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let known = error.chain().find_map(|cause| cause.downcast_ref());
        let cause = match known {
            Some(error) => Cause::of(error),
            None if shared::is_misuse(&error) => Cause::Value,
            None => Cause::Other,
        };
        Failure {
            cause,
            message: shared::error_message(&error),
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
