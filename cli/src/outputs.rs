//! The one rule for files that a verb writes: an existing file needs --overwrite, and an output is never an input.

use std::fs;
use std::path::Path;

use crate::ui::console::Misuse;

/// Checks a file before it is written.
///
/// # Errors
/// A [`Misuse`] if it exists and `overwrite` was not given, or if it is one of the inputs.
pub(crate) fn check(out: &Path, overwrite: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    let name = out.display();
    if let Ok(own) = fs::canonicalize(out) {
        let is_own = |input: &&&Path| fs::canonicalize(input).is_ok_and(|input| input == own);
        if inputs.iter().find(is_own).is_some() {
            let problem = format!("{name} is an input and an output: choose another output");
            return Err(Misuse(problem).into());
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
