//! Every file of a model against its manifest, one by one.
//!
//! [`verify`](super::verify) stops at the first problem; this lists all of them, to show what a copy or a disk did to a
//! model.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::describe::read_manifest;
use crate::error::{Error, Result};
use crate::predict::Integrity;
use crate::store::format::files::{FileRecord, MANIFEST, hexadecimal};
use crate::store::format::map::open_regular;
use crate::store::format::open::Unchecked;

/// How a file compares with its entry in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Size and SHA-256 are the same.
    Whole,
    /// There is no such file.
    Missing,
    /// It has another size.
    WrongSize {
        /// Its size in bytes.
        found: u64,
    },
    /// It has the right size and another SHA-256.
    WrongHash {
        /// The SHA-256 that was found, in hexadecimal digits.
        found: String,
    },
    /// It cannot be read, or is not a file.
    Unreadable(
        /// Why, in words.
        String,
    ),
}

/// A listed file and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedFile {
    /// The listed size and hash.
    pub record: FileRecord,
    /// How the file compares with them.
    pub state: FileState,
}

/// The result of checking all files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesCheck {
    /// Every file that the manifest lists.
    pub files: BTreeMap<String, CheckedFile>,
    /// Files in the directory that the manifest does not list; they are not part of the model.
    pub unlisted_files: Vec<String>,
}

impl FilesCheck {
    /// Whether every file is whole.
    pub fn is_whole(&self) -> bool {
        let mut files = self.files.values();
        files.all(|file| file.state == FileState::Whole)
    }
}

/// Reads every byte of every file and compares sizes and SHA-256 with the manifest.
///
/// It does not check whether the files form a model; [`Predictor::verify`](crate::Predictor::verify) does.
///
/// # Errors
/// If the manifest itself cannot be read or is damaged, as where it is read alone.
pub fn check_files(directory: &Path) -> Result<FilesCheck> {
    let records = read_manifest(directory)?.records();
    let is_unlisted = |name: &String| name != MANIFEST && !records.contains_key(name);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut unlisted_files: Vec<String> = names.filter(is_unlisted).collect();
    unlisted_files.sort();
    let files = records.into_par_iter().map(|(name, record)| {
        let state = compare(&directory.join(&name), &record);
        (name, CheckedFile { record, state })
    });
    Ok(FilesCheck {
        files: files.collect(),
        unlisted_files,
    })
}

fn compare(path: &Path, record: &FileRecord) -> FileState {
    let compared = || -> Result<FileState> {
        let (file, metadata) = open_regular(path)?;
        if metadata.len() != record.bytes {
            let found = metadata.len();
            return Ok(FileState::WrongSize { found });
        }
        match sha256_while(path, file, record.bytes, || true)? {
            Some(found) if found != record.sha256 => Ok(FileState::WrongHash { found }),
            _ => Ok(FileState::Whole),
        }
    };
    compared().unwrap_or_else(|error| match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => FileState::Missing,
        Error::Io { source, .. } => FileState::Unreadable(source.to_string()),
        Error::BadFile { problem, .. } => FileState::Unreadable(problem),
        error => FileState::Unreadable(error.to_string()),
    })
}

/// SHA-256 of a file of so many bytes, read in chunks; none if it stops being wanted.
fn sha256_while(
    path: &Path,
    file: File,
    n_bytes: u64,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<String>> {
    // One byte more, so that a file that grows has another hash; it may grow for ever.
    let mut file = file.take(n_bytes.saturating_add(1));
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    while is_wanted() {
        let n_read = file.read(&mut chunk);
        match n_read.map_err(|error| Error::io(path, "read", error))? {
            0 => return Ok(Some(hexadecimal(&hash.finalize()))),
            n_read => hash.update(&chunk[..n_read]),
        }
    }
    Ok(None)
}

/// Checks files in the background; where no thread can be started, at once.
pub(crate) fn check_in_background(files: Vec<Unchecked>) -> Arc<Integrity> {
    if files.is_empty() {
        return Arc::default();
    }
    let integrity = Arc::new(Integrity::checking());
    let (shared, queue) = (Arc::clone(&integrity), files.clone());
    let started = std::thread::Builder::new()
        .name("elias-check".into())
        .spawn(move || shared.conclude(check_all(&queue, &shared)));
    if started.is_err() {
        integrity.conclude(check_all(&files, &integrity));
    }
    integrity
}

fn check_all(files: &[Unchecked], integrity: &Integrity) -> Result<()> {
    for file in files {
        let (opened, _) = open_regular(&file.path)?;
        let is_wanted = || !integrity.is_unwanted();
        let hash = sha256_while(&file.path, opened, file.record.bytes(), is_wanted)?;
        let Some(hash) = hash else {
            return Ok(());
        };
        if !file.record.is_of(file.record.bytes(), &hash) {
            return Err(Error::BadFile {
                path: file.path.clone(),
                problem: "it is damaged: its SHA-256 is not the one in the manifest".into(),
            });
        }
    }
    Ok(())
}
