//! The listed files of a directory, opened without being trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use super::files::{MANIFEST, sha256};
use super::manifest::WireFile;
use super::map;
use super::tensors::{Scan, TensorFile};
use crate::error::{Error, Result};

/// Files up to this size are read and hashed whenever they are loaded.
const SMALL_FILE: u64 = 16 << 20;

/// How much of a model is read before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// All but the matrices of large files.
    Quick,
    /// Every byte.
    Full,
}

/// Where the bytes of a model are while it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residence {
    /// In its files.
    Mapped,
    /// In memory of this process.
    Memory,
}

/// A file whose hash was not compared when it was opened.
#[derive(Clone, Debug)]
pub(crate) struct Unchecked {
    pub(crate) path: PathBuf,
    pub(crate) record: WireFile,
}

/// The files that a manifest lists.
#[derive(Clone, Copy)]
pub(crate) struct ListedFiles<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) records: &'a BTreeMap<String, WireFile>,
    pub(crate) depth: Depth,
    pub(crate) residence: Residence,
}

/// A file that is mapped, and how much of it was checked.
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    pub(crate) map: Arc<Mmap>,
    checked: Depth,
}

impl ListedFiles<'_> {
    /// Maps a file of the listed size; a small file, or any at depth `Full`, must have the listed hash.
    fn open(&self, name: &str, depth: Depth) -> Result<OpenFile> {
        let path = self.directory.join(name);
        let record = self.records.get(name);
        let record = record.ok_or_else(|| self.bad_manifest(format!("it does not list {name}")))?;
        let n_bytes = record.bytes();
        let map = match self.residence {
            Residence::Mapped => map::open(&path, n_bytes)?,
            Residence::Memory => map::read(&path, n_bytes)?,
        };
        let is_checked = depth == Depth::Full || n_bytes <= SMALL_FILE;
        if is_checked && !record.is_of(n_bytes, &sha256(&map)) {
            let problem = "it is damaged: its SHA-256 is not the one in the manifest";
            return Err(bad(path, problem.into()));
        }
        let checked = if is_checked { Depth::Full } else { depth };
        Ok(OpenFile { path, map, checked })
    }

    /// The listed files that are too large to be checked when they are opened.
    pub(crate) fn unchecked(&self) -> Vec<Unchecked> {
        let is_unchecked =
            |file: &&WireFile| self.depth == Depth::Quick && file.bytes() > SMALL_FILE;
        let files = self.records.iter();
        files
            .filter(|(_, file)| is_unchecked(file))
            .map(|(name, file)| Unchecked {
                path: self.directory.join(name),
                record: file.clone(),
            })
            .collect()
    }

    /// A file that is checked in full, whatever its size.
    pub(crate) fn whole(&self, name: &str) -> Result<OpenFile> {
        self.open(name, Depth::Full)
    }

    /// A text file.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        let OpenFile { path, map, .. } = self.whole(name)?;
        match std::str::from_utf8(&map) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(bad(path, "it is not UTF-8".into())),
        }
    }

    /// A file of tensors.
    pub(crate) fn tensors(&self, name: &str) -> Result<TensorFile> {
        let OpenFile { path, map, checked } = self.open(name, self.depth)?;
        let scan = match checked {
            Depth::Full => Scan::Everything,
            Depth::Quick => Scan::Lists,
        };
        TensorFile::new(&path, map, scan)
    }

    /// Parses a file of tensors that must form a whole; an error names the file.
    pub(crate) fn parse<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&mut TensorFile) -> Result<T>,
    ) -> Result<T> {
        let mut file = self.tensors(name)?;
        let parsed = parse(&mut file).map_err(|error| self.in_file(name, error))?;
        file.finish()?;
        Ok(parsed)
    }

    /// An error of parts that do not fit together, with the name of the file they come from.
    pub(crate) fn in_file(&self, name: &str, error: Error) -> Error {
        match error {
            Error::InvalidMatrix(problem)
            | Error::InvalidDataset(problem)
            | Error::InvalidModel(problem) => bad(self.directory.join(name), problem),
            error => error,
        }
    }

    /// A problem of the manifest itself.
    pub(crate) fn bad_manifest(&self, problem: String) -> Error {
        bad(self.directory.join(MANIFEST), problem)
    }
}

/// A problem of a file.
pub(crate) fn bad(path: PathBuf, problem: String) -> Error {
    Error::BadFile { path, problem }
}
