//! Models on disk: written so that nothing is ever half there, read in place, and never trusted.
//!
//! A model is a directory: `manifest.json` lists every other file with its size and hash. `docs/model-format.md`
//! specifies each byte. [`Predictor::save`](crate::Predictor::save) writes a directory,
//! [`Predictor::load`](crate::Predictor::load) maps it, [`describe`] reads the manifest alone.
//!
//! Loading checks: the manifest against its own checksum; the size of every file; the SHA-256 of every file up to
//! 16 MiB and of all lists of texts; every shape, id and list. Matrices in larger files are used in place without
//! being read first, so that a process answers at once; a background thread compares their SHA-256, and predictions
//! fail from the moment it finds damage. [`verify`] reads and checks every byte first; [`check_files`] checks each file
//! by itself.
//!
//! [`TrainingFolder`] keeps an unfinished training: killed at any instant, it is resumed and ends in the same bytes.

mod check;
mod files;
mod identity;
mod judging;
mod kept_member;
mod lines;
mod load;
mod load_member;
mod lock;
mod map;
mod merge;
mod open;
mod rerank;
mod save;
mod save_member;
mod snapshot;
mod spread;
mod tensors;
mod together;
mod training;
mod v1;
mod v1_history;
mod v1_training;

pub use check::{CheckedFile, FileState, FilesCheck, check_files};
pub use files::FileRecord;
pub use load::describe;
pub use training::is_unfinished;

pub(crate) use load::verify;
pub(crate) use merge::merge;
pub(crate) use training::check_not_in_use;

pub(crate) use identity::Identity;
pub(crate) use kept_member::FinishedMember;
pub(crate) use together::Follower;
pub(crate) use training::{Destination, SnapshotPace, Start, TrainingFolder};

use std::collections::BTreeMap;

use crate::config::Plan;
use crate::data::DataSummary;
use crate::events::Event;

/// What to do with a model that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Keep it: saving is an error.
    #[default]
    Keep,
    /// Replace it, in one instant.
    Replace,
}

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Version of the format.
    pub version: u32,
    /// Name and version of the program that wrote it.
    pub written_by: String,
    /// How it was trained.
    pub plan: Plan,
    /// Its training data.
    pub data: DataSummary,
    /// The events of its training.
    pub history: Vec<Event>,
    /// Number of members.
    pub n_members: usize,
    /// Whether it takes texts; otherwise it takes features.
    pub takes_texts: bool,
    /// Every file but the manifest, with its size and hash.
    pub files: BTreeMap<String, FileRecord>,
}

/// Name and version of this program, as files name it.
fn written_by() -> String {
    concat!("elias ", env!("CARGO_PKG_VERSION")).into()
}
