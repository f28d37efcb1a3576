//! Opening a file as a memory map: the only place that needs `unsafe` to read a model.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::error::{Error, Result};

/// Maps a regular file of a size that is known.
///
/// Files of a model are never changed in place: a new version has new names or replaces the directory entry, which
/// leaves the mapped file as it was. If someone else truncates a mapped file, its readers fail.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened, [`Error::BadFile`] if it is not a regular file or has another size.
pub(crate) fn open(path: &Path, n_bytes: u64) -> Result<Arc<Mmap>> {
    let file = open_sized(path, n_bytes)?;
    #[allow(unsafe_code)]
    // SAFETY: the map is read-only and private to this process's view of the file; it is read as plain bytes or
    // floats, for which every bit pattern is valid. That nobody truncates the file meanwhile is the writer's rule.
    let map = unsafe { Mmap::map(&file) };
    let map = map.map_err(|error| Error::io(path, "map", error))?;
    check_size(path, map.len() as u64, n_bytes)?;
    Ok(Arc::new(map))
}

/// Copies a regular file of a size that is known into memory of this process, so that nothing done to the file later
/// can change it.
///
/// # Errors
/// As [`open`], and [`Error::Io`] if it becomes shorter while it is read.
pub(crate) fn read(path: &Path, n_bytes: u64) -> Result<Arc<Mmap>> {
    let mut file = open_sized(path, n_bytes)?;
    let mut read = || {
        let n_bytes = usize::try_from(n_bytes).map_err(std::io::Error::other)?;
        let mut memory = MmapMut::map_anon(n_bytes)?;
        file.read_exact(&mut memory)?;
        memory.make_read_only()
    };
    read()
        .map(Arc::new)
        .map_err(|error| Error::io(path, "read", error))
}

fn open_sized(path: &Path, n_bytes: u64) -> Result<File> {
    let (file, metadata) = open_regular(path)?;
    check_size(path, metadata.len(), n_bytes)?;
    Ok(file)
}

fn check_size(path: &Path, found: u64, expected: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::BadFile {
        path: path.into(),
        problem: format!("it has {found} bytes, the manifest says {expected}"),
    })
}

/// Opens a regular file, without waiting for whatever else may be there.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened, [`Error::BadFile`] if it is not a regular file.
pub(crate) fn open_regular(path: &Path) -> Result<(File, Metadata)> {
    let io = |error| Error::io(path, "open", error);
    // Before opening, which does something to some devices; and what was opened, which may be something else by now.
    let is_file = std::fs::metadata(path).map_err(io)?.is_file();
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    if is_file {
        let file = options.open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_file() {
            return Ok((file, metadata));
        }
    }
    Err(Error::BadFile {
        path: path.into(),
        problem: "it is not a regular file".into(),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pipe_that_takes_the_place_of_a_file_is_never_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let [file, pipe, next, place] =
            ["file", "pipe", "next", "place"].map(|name| directory.path().join(name));
        std::fs::write(&file, "content").unwrap();
        std::fs::hard_link(&file, &place).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let is_done = AtomicBool::new(false);
        let (reader, path) = (mpsc::channel(), place.clone());
        // It would outlive the test if it waited for a writer.
        std::thread::spawn(move || {
            let outcomes = (0..20_000).map(|_| open_regular(&path).is_ok());
            let _ = reader
                .0
                .send(outcomes.filter(|&is_opened| is_opened).count());
        });
        let n_opened = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    for source in [&pipe, &file] {
                        std::fs::hard_link(source, &next).unwrap();
                        std::fs::rename(&next, &place).unwrap();
                        // Renaming one link over another of the same file leaves both.
                        let _ = std::fs::remove_file(&next);
                    }
                }
            });
            let n_opened = reader.1.recv_timeout(Duration::from_secs(60));
            is_done.store(true, Ordering::Relaxed);
            n_opened
        });
        assert!(n_opened.expect("nothing waits for the pipe") > 0);
    }

    #[test]
    fn a_file_of_another_size_is_refused_before_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels.txt");
        // Four terabytes, of which nothing is on disk.
        File::create(&path).unwrap().set_len(1 << 42).unwrap();
        for result in [open(&path, 5), read(&path, 5)] {
            let error = result.unwrap_err().to_string();
            let expected = "it has 4398046511104 bytes, the manifest says 5";
            assert!(error.contains(expected), "{error}");
        }
    }
}
