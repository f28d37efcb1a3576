//! Changes of a model where it is.

use std::path::Path;

use super::save::save_locked;
use crate::error::{Error, Result};
use crate::predict::Predictor;
use crate::store::Existing;
use crate::store::format::files::MANIFEST;
use crate::store::unfinished::WriteLock;

impl Predictor {
    /// Changes the model in a directory, where no other process writes in the meantime: nothing that another one adds is
    /// lost. Readers see the old model until the new one is complete; it stays if `change` fails.
    ///
    /// # Errors
    /// As [`Predictor::load`] and [`Predictor::replace`]; whatever `change` returns.
    pub fn change_in<T, E: From<Error>>(
        directory: impl AsRef<Path>,
        change: impl FnOnce(Predictor) -> Result<(Predictor, T), E>,
    ) -> Result<T, E> {
        in_locked(directory.as_ref(), |directory| {
            let (changed, value) = change(Predictor::load(directory)?)?;
            // Its files are read once more, before they are replaced.
            changed.check_files()?;
            save_locked(&changed, directory, Existing::Replace)?;
            Ok(value)
        })
    }
}

/// Works on the model in a directory while no other process may write there.
///
/// # Errors
/// As [`Predictor::load`] if there is no model; [`Error::InUse`] if another process is writing there; whatever `work`
/// returns.
pub(super) fn in_locked<T, E: From<Error>>(
    directory: &Path,
    work: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    if !directory.join(MANIFEST).exists() {
        // It says what is missing; no directory is made for a lock.
        Predictor::load(directory)?;
    }
    let lock = WriteLock::take(directory)?;
    let done = work(directory);
    lock.release();
    done
}
