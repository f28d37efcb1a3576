//! Models on disk: written so that nothing is ever half there, read in place, and trusted in nothing.
//!
//! A model is a directory: `manifest.json` names every other file with its size and hash. `docs/model-format.md`
//! specifies each byte. [`save`] writes a directory, [`load`] maps it, [`describe`] reads the manifest alone.
//!
//! What [`load`] checks: the manifest against its own checksum; the size of every file; the SHA-256 of every file up
//! to 16 MiB and of all lists of texts; every shape, id and list. Matrices in larger files are used in place without
//! being read first, so that a process answers at once: a weight in them that is not finite is reported by the
//! prediction that meets it. [`verify`] reads and checks every byte; [`check_files`] tells of each file how it is.
//!
//! [`TrainingFolder`] keeps an unfinished training: killed at any instant, it is resumed and ends in the same bytes.

mod check;
mod files;
mod lines;
mod load;
mod lock;
mod map;
mod rerank;
mod save;
mod snapshot;
mod tensors;
mod training;
mod v1;
mod v1_history;
mod v1_training;

pub use check::{FileState, FilesCheck, check_files};
pub use files::FileRecord;
pub use load::{describe, load, verify};
pub use save::save;
pub use training::{Destination, Identity, SnapshotPace, Start, TrainingFolder, is_unfinished};

use std::collections::BTreeMap;

use crate::config::Plan;
use crate::data::DataSummary;
use crate::events::Event;

/// What is saved besides the predictor.
#[derive(Clone, Debug, PartialEq)]
pub struct SaveInfo {
    /// What training told: epochs, validations and the adjacency are kept.
    pub history: Vec<Event>,
    /// What it was trained on.
    pub data: DataSummary,
    /// What to do with a model that is there already.
    pub existing: Existing,
}

/// What to do with a model that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Keep it: saving is an error.
    #[default]
    Keep,
    /// Replace it, in one instant.
    Replace,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Version of the format.
    pub version: u32,
    /// Name and version of the program that wrote it.
    pub written_by: String,
    /// How it was trained, with its configuration and the sizes of its data.
    pub plan: Plan,
    /// What it was trained on.
    pub data: DataSummary,
    /// What training told.
    pub history: Vec<Event>,
    /// Encoders with their indexes and classifiers.
    pub n_members: usize,
    /// Whether it takes texts; otherwise it takes features.
    pub takes_texts: bool,
    /// Every file with its size and hash, the manifest excepted.
    pub files: BTreeMap<String, FileRecord>,
}

/// Name and version of this program, as files name it.
fn written_by() -> String {
    concat!("elias ", env!("CARGO_PKG_VERSION")).into()
}
