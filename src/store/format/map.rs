//! Opening a file as a memory map: the only place that needs `unsafe` to read a model.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::error::{Error, Result};

/// Maps a regular file to read.
///
/// Files of a model are never changed in place: a new version has new names or replaces the directory entry, which
/// leaves the mapped file as it was. If someone else truncates a mapped file, its readers fail.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened, [`Error::BadFile`] if it is not a regular file.
pub(crate) fn open(path: &Path) -> Result<Arc<Mmap>> {
    let file = open_regular(path)?;
    #[allow(unsafe_code)]
    // SAFETY: the map is read-only and private to this process's view of the file; it is read as plain bytes or
    // floats, for which every bit pattern is valid. That nobody truncates the file meanwhile is the writer's rule.
    let map = unsafe { Mmap::map(&file) };
    map.map(Arc::new)
        .map_err(|error| Error::io(path, "map", error))
}

/// Copies a regular file into memory of this process, so that nothing done to the file later can change it.
///
/// # Errors
/// As [`open`], and [`Error::Io`] if it becomes shorter while it is read.
pub(crate) fn read(path: &Path) -> Result<Arc<Mmap>> {
    let mut file = open_regular(path)?;
    let mut read = || {
        let n_bytes = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
        let mut memory = MmapMut::map_anon(n_bytes)?;
        file.read_exact(&mut memory)?;
        memory.make_read_only()
    };
    read()
        .map(Arc::new)
        .map_err(|error| Error::io(path, "read", error))
}

fn open_regular(path: &Path) -> Result<File> {
    // Before opening: a pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, "open", error))?;
    if !metadata.is_file() {
        return Err(Error::BadFile {
            path: path.into(),
            problem: "it is not a regular file".into(),
        });
    }
    File::open(path).map_err(|error| Error::io(path, "open", error))
}
