//! Fuzz targets: one function per reader of hostile bytes, with valid inputs to start from.
//!
//! `cargo fuzz run TARGET` searches by coverage; `tests/fuzz.rs` includes this file and runs a bounded number of
//! seeded mutations of the same inputs with every `cargo test`. A target fails by a panic, by running out of memory or
//! time, or where an answer breaks what its reader promises. See `docs/fuzzing.md`.

#![allow(unreachable_pub)] // a library here, a module there

pub mod data;
pub mod model;
pub mod settings;
pub mod training;

use std::path::{Path, PathBuf};

use elias::{Error, Result};

/// A reader of hostile bytes.
pub struct Target {
    /// Its name for `cargo fuzz run`.
    pub name: &'static str,
    /// Reads the bytes, and checks the result.
    pub run: fn(&[u8]),
    /// Valid inputs, or nearly so.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    Target {
        name: "lines",
        run: data::lines,
        seeds: data::lines_seeds,
    },
    Target {
        name: "files",
        run: data::files,
        seeds: data::files_seeds,
    },
    Target {
        name: "npz",
        run: data::npz,
        seeds: data::npz_seeds,
    },
    Target {
        name: "predictions",
        run: data::predictions,
        seeds: data::predictions_seeds,
    },
    Target {
        name: "inputs",
        run: data::inputs,
        seeds: data::inputs_seeds,
    },
    Target {
        name: "labels",
        run: data::labels,
        seeds: data::labels_seeds,
    },
    Target {
        name: "pipes",
        run: data::pipes,
        seeds: data::pipes_seeds,
    },
    Target {
        name: "model",
        run: model::load,
        seeds: model::seeds,
    },
    Target {
        name: "settings",
        run: settings::change,
        seeds: settings::seeds,
    },
    Target {
        name: "training",
        run: training::load,
        seeds: training::seeds,
    },
];

/// Upper bound of the bytes of an error message, whatever the content of a file.
const MAX_MESSAGE: usize = 2000;

/// The value read, if any; an error must be one short line.
fn checked<T>(result: Result<T>) -> Option<T> {
    result
        .map_err(|error: Error| check_message(&error.to_string()))
        .ok()
}

fn check_message(message: &str) {
    let is_line = !message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
    assert!(is_line, "a message of {} bytes: {message}", message.len());
}

/// The separator between files, or between the arrays of an archive, in one input.
const SEPARATOR: &[u8] = b"\n\0\n";

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.join(SEPARATOR)
}

/// The parts of an input, at most `most` of them.
fn split(mut bytes: &[u8], most: usize) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while parts.len() + 1 < most
        && let Some(at) = bytes
            .windows(SEPARATOR.len())
            .position(|at| at == SEPARATOR)
    {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + SEPARATOR.len()..];
    }
    parts.push(bytes);
    parts
}

/// A directory that is removed in the end, in memory where there is such a place.
fn temporary() -> tempfile::TempDir {
    let in_memory = Path::new("/dev/shm");
    let made = if in_memory.is_dir() {
        tempfile::tempdir_in(in_memory)
    } else {
        tempfile::tempdir()
    };
    made.expect("there is a place for temporary files")
}

/// A file of the repository, wherever this is compiled.
fn repository(path: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_own = package.ends_with("fuzz");
    let root = package.parent().filter(|_| is_own).unwrap_or(package);
    root.join(path)
}
