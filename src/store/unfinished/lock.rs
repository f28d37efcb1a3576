//! One writer per directory.
//!
//! The lock is the operating system's lock on a file, which ends with the process that holds it, however it ends:
//! a file that was left behind locks nothing. The file holds the process's id, for the error message only.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::folder::folder_in;
use crate::error::{Error, Result};

/// The file that the writer holds, in the folder of an unfinished training.
const LOCK: &str = "lock";

/// Checks that no process is writing into a directory.
///
/// # Errors
/// [`Error::InUse`] naming the lock of the process that is.
pub(crate) fn check_not_in_use(directory: &Path) -> Result<()> {
    let path = folder_in(directory).join(LOCK);
    if path.exists() {
        Lock::take(&path)?;
    }
    Ok(())
}

/// The right to write into a directory, which one process has at a time.
#[derive(Debug)]
pub(crate) struct WriteLock {
    folder: PathBuf,
    lock: Lock,
}

impl WriteLock {
    /// Takes the right; the directory is made if need be.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has it; [`Error::Io`].
    pub(crate) fn take(directory: &Path) -> Result<Self> {
        let is_new = !directory.exists();
        let folder = folder_in(directory);
        fs::create_dir_all(&folder).map_err(|error| {
            if is_new {
                let _ = fs::remove_dir(directory);
            }
            Error::io(&folder, "create", error)
        })?;
        let lock = Lock::take(&folder.join(LOCK))?;
        Ok(WriteLock { folder, lock })
    }

    /// Gives it back, and removes the folder if nothing else is in it.
    pub(crate) fn release(self) {
        self.lock.remove();
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process holds it, [`Error::Io`].
    fn take(path: &Path) -> Result<Lock> {
        let io = |action| move |error| Error::io(path, action, error);
        loop {
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(path)
                .map_err(io("open"))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(held(path, &mut file)),
                Err(TryLockError::Error(error)) => return Err(io("lock")(error)),
            }
            // The previous holder may have removed the file after we opened it and before we locked it.
            if is_still_at(&file, path) {
                file.set_len(0).map_err(io("write"))?;
                writeln!(file, "{}", std::process::id()).map_err(io("write"))?;
                return Ok(Lock {
                    path: path.into(),
                    _file: file,
                });
            }
        }
    }

    /// Removes the file, then lets go.
    fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn held(path: &Path, file: &mut File) -> Error {
    let mut owner = String::new();
    let _ = file.take(20).read_to_string(&mut owner);
    let owner = match owner.trim() {
        "" => "another process".to_string(),
        id => format!("process {id}"),
    };
    Error::InUse {
        path: path.into(),
        problem: format!("{owner} is writing into this directory: wait for it, or choose another"),
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_is_refused_by_the_id_of_the_first_and_a_left_file_locks_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "4194305\nleft behind by a process that was killed").unwrap();
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        let owner = format!("process {} is writing", std::process::id());
        assert!(error.contains(&owner), "{error}");
        drop(first);
        Lock::take(&path).unwrap().remove();
        assert!(!path.exists());
    }
}
