//! Writing files so that a crash at any instant leaves the old state or the new one.
//!
//! Every file is written to a temporary sibling, synced and renamed to a name that ends in the hash of its content.
//! The manifest is written last and names them all: until it is renamed into place nothing has changed for a reader,
//! and files of two versions never share a name. Files that the new manifest does not name are removed
//! afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::map::open_regular;
use crate::error::{Error, Result};

/// The file whose arrival makes a directory a model.
pub(crate) const MANIFEST: &str = "manifest.json";
/// Ending of files that are being written.
const PARTIAL: &str = ".partial";
/// Hexadecimal digits of the hash in a file's name.
const NAME_DIGITS: usize = 16;

/// Size and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// Files on their way into a directory.
pub(crate) struct Writer {
    directory: PathBuf,
    files: BTreeMap<String, FileRecord>,
}

impl Writer {
    /// Writes into a directory, which is made if need be.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(|error| Error::io(directory, "create", error))?;
        Ok(Writer {
            directory: directory.into(),
            files: BTreeMap::new(),
        })
    }

    /// Writes one file and returns its name, `STEM.HASH.ENDING`.
    ///
    /// # Errors
    /// [`Error::Io`]; nothing of the file is left then.
    pub(crate) fn write(
        &mut self,
        stem: &str,
        ending: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<String> {
        let partial = self.directory.join(format!("{stem}.{ending}{PARTIAL}"));
        let record = write_synced(&partial, content)?;
        let name = format!("{stem}.{}.{ending}", &record.sha256[..NAME_DIGITS]);
        rename(&partial, &self.directory.join(&name))?;
        self.files.insert(name.clone(), record);
        Ok(name)
    }

    /// Size and hash of what was written so far.
    pub(crate) fn files(&self) -> &BTreeMap<String, FileRecord> {
        &self.files
    }

    /// Puts the manifest in place, which makes everything written so far visible, and removes `obsolete` files.
    ///
    /// # Errors
    /// [`Error::Io`]; the earlier manifest is then still in place.
    pub(crate) fn commit(self, manifest: &str, obsolete: &[String]) -> Result<()> {
        let partial = self.directory.join(format!("{MANIFEST}{PARTIAL}"));
        write_synced(&partial, |out| out.write_all(manifest.as_bytes()))?;
        // The names of the files must reach the disk before the name of the manifest does.
        sync_directory(&self.directory)?;
        rename(&partial, &self.directory.join(MANIFEST))?;
        sync_directory(&self.directory)?;
        for name in obsolete {
            if !self.files.contains_key(name) {
                // What cannot be removed does no harm: no manifest names it.
                let _ = fs::remove_file(self.directory.join(name));
            }
        }
        Ok(())
    }

    /// Removes what was written, save for what an earlier manifest names.
    pub(crate) fn abandon(self, in_use: &[String]) {
        for name in self.files.keys() {
            if !in_use.contains(name) {
                let _ = fs::remove_file(self.directory.join(name));
            }
        }
    }
}

/// Writes a file, hashes it on the way and syncs it.
fn write_synced(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<FileRecord> {
    let written = File::create(path).and_then(|file| {
        let mut out = Hashing {
            out: BufWriter::with_capacity(1 << 18, file),
            hash: Sha256::new(),
            bytes: 0,
        };
        content(&mut out)?;
        let file = out.out.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()?;
        Ok(FileRecord {
            bytes: out.bytes,
            sha256: hexadecimal(&out.hash.finalize()),
        })
    });
    written.map_err(|error| {
        let _ = fs::remove_file(path);
        Error::io(path, "write", error)
    })
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| {
        let _ = fs::remove_file(from);
        Error::io(to, "rename into place", error)
    })
}

/// Makes renames in a directory durable, where the system can.
pub(crate) fn sync_directory(directory: &Path) -> Result<()> {
    if cfg!(unix) {
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        return synced.map_err(|error| Error::io(directory, "sync", error));
    }
    Ok(())
}

/// A writer that hashes what passes through.
struct Hashing {
    out: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.out.write(bytes)?;
        self.hash.update(&bytes[..n_written]);
        self.bytes += n_written as u64;
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Hexadecimal digits of bytes.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Whether a manifest may name a file so: lower-case letters, digits, hyphens and single dots, nothing that leads
/// out of the directory.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    (1..=128).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('.')
        && !name.contains("..")
        && name != MANIFEST
}

/// Reads a whole file that must not be longer than `most` bytes.
///
/// # Errors
/// [`Error::Io`], and [`Error::BadFile`] if it is longer or not a regular file.
pub(crate) fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>> {
    let (file, metadata) = open_regular(path).map_err(|error| match error {
        Error::Io { source, .. } => Error::io(path, "read", source),
        error => error,
    })?;
    let mut bytes = Vec::new();
    if metadata.len() <= most {
        // One byte more, in case it grows.
        let read = io::Read::take(file, most + 1).read_to_end(&mut bytes);
        read.map_err(|error| Error::io(path, "read", error))?;
    }
    if most < metadata.len().max(bytes.len() as u64) {
        return Err(Error::BadFile {
            path: path.into(),
            problem: format!("it has more than {most} bytes"),
        });
    }
    Ok(bytes)
}

/// A name beside a directory that nothing has yet.
pub(crate) fn free_sibling(directory: &Path) -> PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let numbered = |number: u32| directory.with_file_name(format!("{name}-{number}"));
    let mut candidates = (1..).map(numbered);
    candidates
        .find(|path| !path.exists())
        .expect("there are more numbers than files")
}
