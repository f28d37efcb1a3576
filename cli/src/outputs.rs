//! The one rule for files that a verb writes: an existing file needs --overwrite, and an output is never an input.

use std::fs;
use std::path::Path;

use crate::ui::console::Misuse;

/// Checks that a file to be written is not in the directory of a model that is read.
///
/// # Errors
/// A [`Misuse`] if it is.
pub(crate) fn check_outside(out: &Path, model: &Path) -> anyhow::Result<()> {
    let parent = out.parent().filter(|parent| *parent != Path::new(""));
    let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")));
    match (parent, fs::canonicalize(model)) {
        (Ok(parent), Ok(model)) if parent == model => Err(is_input(out)),
        _ => Ok(()),
    }
}

fn is_input(out: &Path) -> anyhow::Error {
    let name = out.display();
    Misuse(format!(
        "{name} is an input and an output: choose another output"
    ))
    .into()
}

/// Checks a file before it is written.
///
/// # Errors
/// A [`Misuse`] if it exists and `overwrite` was not given, or if it is one of the inputs.
pub(crate) fn check(out: &Path, overwrite: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    let name = out.display();
    if let Ok(own) = fs::canonicalize(out) {
        let is_own = |input: &&&Path| fs::canonicalize(input).is_ok_and(|input| input == own);
        if inputs.iter().find(is_own).is_some() {
            return Err(is_input(out));
        }
    }
    // Devices, such as /dev/null, are written to as they are.
    let is_taken = fs::metadata(out).is_ok_and(|metadata| metadata.is_file() || metadata.is_dir());
    if is_taken && !overwrite {
        let problem = format!("{name} exists: choose another output, or add --overwrite");
        return Err(Misuse(problem).into());
    }
    Ok(())
}

/// Whether a directory is there and has nothing in it.
pub(crate) fn is_empty_directory(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}
