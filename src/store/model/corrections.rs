//! The journal of a model: corrections that it learned since it was written, beside its files.
//!
//! A line has a correction and a checksum over it and the line before, so that a line that was changed, cut, doubled or
//! moved is noticed. Lines are appended and synced before they are acknowledged; of a last line without an end, nobody was
//! told, and it is dropped. The journal's name has the hash of the manifest: it belongs to one state of the model, and
//! one of another state is not looked at. Loading learns the corrections again; saving makes them part of the files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::describe::MAX_MANIFEST;
use crate::error::{Error, Result, shortened};
use crate::predict::Correction;
use crate::store::format::files::{MANIFEST, read_bounded, sha256};
use crate::store::format::open::bad;

/// Digits of hashes in the journal.
const N_DIGITS: usize = 16;
/// Most bytes of a journal: it is read whole.
const MAX_BYTES: u64 = 1 << 30;

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    labels: Vec<String>,
    not: Vec<String>,
}

/// The journal of a model, up to a place.
#[derive(Clone)]
pub(super) struct Journal {
    path: PathBuf,
    /// The hash of the model's manifest.
    manifest: String,
    /// The hash that the next line continues.
    hash: String,
    /// Whole lines before the place, and their bytes.
    n_lines: usize,
    n_bytes: u64,
}

impl Journal {
    /// The journal of the model that is in a directory, from its start.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn of(directory: &Path) -> Result<Journal> {
        let manifest = manifest_hash(directory)?;
        Ok(Journal {
            path: directory.join(format!("corrections.{}.jsonl", &manifest[..N_DIGITS])),
            hash: manifest.clone(),
            manifest,
            n_lines: 0,
            n_bytes: 0,
        })
    }

    /// Whether it belongs to the model that is in a directory now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn is_of(&self, directory: &Path) -> Result<bool> {
        Ok(manifest_hash(directory)? == self.manifest)
    }

    /// Whether there is something after the place.
    pub(super) fn has_more(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.len() != self.n_bytes)
    }

    /// Corrections after the place, which moves behind them.
    ///
    /// # Errors
    /// [`Error::BadFile`] naming the line that is damaged, with the place in front of it; [`Error::Io`].
    pub(super) fn read_on(&mut self) -> Result<Vec<Correction>> {
        let path = &self.path;
        let io = |error| Error::io(path, "read", error);
        let mut text = Vec::new();
        match fs::metadata(path) {
            Err(_) if self.n_bytes == 0 => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
            Ok(found) if found.len() > MAX_BYTES => return Err(self.too_long()),
            Ok(found) if found.len() < self.n_bytes => {
                let problem = "it is shorter than it was: the journal is damaged";
                return Err(bad(path.clone(), problem.into()));
            }
            Ok(_) => {
                let mut file = File::open(path).map_err(io)?;
                file.seek(SeekFrom::Start(self.n_bytes)).map_err(io)?;
                file.take(MAX_BYTES).read_to_end(&mut text).map_err(io)?;
            }
        }
        let mut corrections = Vec::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                break; // Nobody was told of it.
            };
            let number = self.n_lines + 1;
            let damaged = |problem: &str| {
                let problem = format!("line {number} {problem}: the journal is damaged");
                bad(self.path.clone(), problem)
            };
            let line = std::str::from_utf8(line).map_err(|_| damaged("is not UTF-8"))?;
            let (digits, json) = line
                .split_once(' ')
                .ok_or_else(|| damaged("has no checksum"))?;
            let next = chained(&self.hash, json);
            if digits != &next[..N_DIGITS] {
                return Err(damaged("does not continue the line before it"));
            }
            let read = serde_json::from_str(json);
            let Line { text, labels, not } =
                read.map_err(|error| damaged(&shortened(&error.to_string())))?;
            corrections.push(Correction { text, labels, not });
            self.hash = next;
            self.n_lines = number;
            self.n_bytes += line.len() as u64 + 1;
        }
        Ok(corrections)
    }

    /// Appends corrections at the place, where the journal ends; they are on the disk when this returns.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::BadFile`] if the journal would be too long; nothing is appended then.
    pub(super) fn append(&mut self, corrections: &[Correction]) -> Result<()> {
        let (mut lines, mut hash) = (Vec::new(), self.hash.clone());
        for Correction { text, labels, not } in corrections {
            let line = Line {
                text: text.clone(),
                labels: labels.clone(),
                not: not.clone(),
            };
            let json = serde_json::to_string(&line).expect("strings are JSON");
            hash = chained(&hash, &json);
            lines.extend_from_slice(&hash.as_bytes()[..N_DIGITS]);
            lines.push(b' ');
            lines.extend_from_slice(json.as_bytes());
            lines.push(b'\n');
        }
        let n_bytes = self.n_bytes + lines.len() as u64;
        if MAX_BYTES < n_bytes {
            return Err(self.too_long());
        }
        let written = self.write(&lines);
        written.map_err(|error| Error::io(&self.path, "write", error))?;
        self.hash = hash;
        self.n_lines += corrections.len();
        self.n_bytes = n_bytes;
        Ok(())
    }

    fn write(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        // A last line without an end.
        file.set_len(self.n_bytes)?;
        let written = file.write_all(lines).and_then(|()| file.sync_all());
        if written.is_err() {
            // On a full disk there is room to become shorter.
            file.set_len(self.n_bytes)?;
        }
        written?;
        match self.path.parent() {
            Some(directory) if self.n_bytes == 0 => File::open(directory)?.sync_all(),
            _ => Ok(()),
        }
    }

    fn too_long(&self) -> Error {
        let problem = format!(
            "the journal has more than {MAX_BYTES} bytes: save the model, which makes corrections part of its files"
        );
        bad(self.path.clone(), problem)
    }

    /// Removes the journal, once what it has is part of a newer state of the model.
    pub(super) fn remove(&self) {
        // What cannot be removed does no harm: it belongs to no state of the model.
        let _ = fs::remove_file(&self.path);
    }
}

fn chained(hash: &str, json: &str) -> String {
    sha256(format!("{hash}{json}").as_bytes())
}

fn manifest_hash(directory: &Path) -> Result<String> {
    let path = directory.join(MANIFEST);
    Ok(sha256(&read_bounded(&path, MAX_MANIFEST)?))
}
