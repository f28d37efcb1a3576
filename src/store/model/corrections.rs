//! The journal of a model: corrections that it learned since it was written, beside its files.
//!
//! A line has a correction and a checksum over it and the line before, so that a line that was changed, cut, doubled or
//! moved is noticed. Lines are appended and synced before they are acknowledged; of a last line without an end, nobody was
//! told, and it is dropped. The journal's name has the hash of the manifest: it belongs to one state of the model, and
//! one of another state is not looked at. Loading learns the corrections again; saving makes them part of the files.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::change::in_locked;
use crate::error::{Error, Result, shortened};
use crate::predict::{Correction, Predictor};
use crate::store::format::files::{MANIFEST, sha256};
use crate::store::format::open::bad;

/// Digits of hashes in the journal.
const N_DIGITS: usize = 16;
/// Most bytes of a journal: it is read whole.
const MAX_BYTES: u64 = 1 << 30;
/// Corrections that are learned at once.
const BATCH: usize = 4096;

/// A line of the journal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
    labels: Vec<String>,
    not: Vec<String>,
}

/// The journal of a model, and the state that it is in.
pub(super) struct Journal {
    path: PathBuf,
    /// The hash that the next line continues.
    hash: String,
    /// Bytes of whole lines.
    n_bytes: u64,
}

impl Journal {
    /// The journal of the model that is in a directory, and what it has.
    ///
    /// # Errors
    /// [`Error::BadFile`] naming the line that is damaged; [`Error::Io`].
    pub(super) fn read(directory: &Path) -> Result<(Journal, Vec<Correction>)> {
        let manifest = directory.join(MANIFEST);
        let bytes = fs::read(&manifest).map_err(|error| Error::io(&manifest, "read", error))?;
        let hash = sha256(&bytes);
        let path = directory.join(format!("corrections.{}.jsonl", &hash[..N_DIGITS]));
        let mut journal = Journal {
            path,
            hash,
            n_bytes: 0,
        };
        let path = &journal.path;
        let text = match fs::metadata(path) {
            Err(_) => return Ok((journal, Vec::new())),
            Ok(found) if found.len() > MAX_BYTES => {
                return Err(bad(
                    path.clone(),
                    format!("it has more than {MAX_BYTES} bytes"),
                ));
            }
            Ok(_) => fs::read(path).map_err(|error| Error::io(path, "read", error))?,
        };
        let mut corrections = Vec::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                break; // Nobody was told of it.
            };
            let number = corrections.len() + 1;
            let damaged = |problem: &str| {
                let problem = format!("line {number} {problem}: the journal is damaged");
                bad(journal.path.clone(), problem)
            };
            let line = std::str::from_utf8(line).map_err(|_| damaged("is not UTF-8"))?;
            let (digits, json) = line
                .split_once(' ')
                .ok_or_else(|| damaged("has no checksum"))?;
            let next = chained(&journal.hash, json);
            if digits != &next[..N_DIGITS] {
                return Err(damaged("does not continue the line before it"));
            }
            let read = serde_json::from_str(json);
            let Line { text, labels, not } =
                read.map_err(|error| damaged(&shortened(&error.to_string())))?;
            corrections.push(Correction { text, labels, not });
            journal.hash = next;
            journal.n_bytes += line.len() as u64 + 1;
        }
        Ok((journal, corrections))
    }

    /// Appends corrections; they are on the disk when this returns.
    ///
    /// # Errors
    /// [`Error::Io`]; part of them may be in the journal then.
    fn append(mut self, corrections: &[Correction]) -> Result<()> {
        let mut lines = Vec::new();
        for Correction { text, labels, not } in corrections {
            let line = Line {
                text: text.clone(),
                labels: labels.clone(),
                not: not.clone(),
            };
            let json = serde_json::to_string(&line).expect("strings are JSON");
            self.hash = chained(&self.hash, &json);
            lines.extend_from_slice(&self.hash.as_bytes()[..N_DIGITS]);
            lines.push(b' ');
            lines.extend_from_slice(json.as_bytes());
            lines.push(b'\n');
        }
        let is_new = self.n_bytes == 0;
        let written = (|| {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.path)?;
            // A last line without an end.
            file.set_len(self.n_bytes)?;
            file.write_all(&lines)?;
            file.sync_all()?;
            match self.path.parent() {
                Some(directory) if is_new => File::open(directory)?.sync_all(),
                _ => Ok(()),
            }
        })();
        written.map_err(|error| Error::io(&self.path, "write", error))
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

impl Predictor {
    /// Learns from corrections and keeps them in the journal of the model in a directory, of which this is the state: the
    /// next answers of everybody who loads it heed them.
    ///
    /// # Errors
    /// As [`Predictor::learn`], when nothing is kept; [`Error::BadFile`] if another process is writing there or the
    /// journal is damaged; [`Error::Io`].
    pub fn learn_in(directory: impl AsRef<Path>, corrections: &[Correction]) -> Result<Predictor> {
        in_locked(directory.as_ref(), |directory| {
            let mut predictor = Predictor::load(directory)?;
            predictor.learn(corrections)?;
            Journal::read(directory)?.0.append(corrections)?;
            Ok(predictor)
        })
    }
}

/// Learns the corrections in the journal of a directory.
///
/// # Errors
/// As [`Journal::read`] and [`Predictor::learn`].
pub(super) fn replay(predictor: &mut Predictor, directory: &Path) -> Result<()> {
    let (_, corrections) = Journal::read(directory)?;
    let mut batches = corrections.chunks(BATCH);
    batches.try_for_each(|batch| predictor.learn(batch))
}
