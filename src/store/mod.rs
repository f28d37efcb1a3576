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
//!
//! `model` has finished models, `unfinished` trainings, `format` the files of both, and `processes` what is needed only where
//! several processes train together.

mod format;
mod model;
mod processes;
mod unfinished;

pub use format::files::FileRecord;
pub use model::{CheckedFile, Description, FileState, FilesCheck, Learner, check_files, describe};
pub use unfinished::is_unfinished;

pub(crate) use model::{merge, verify};
pub(crate) use unfinished::check_not_in_use;

pub(crate) use processes::Follower;
pub(crate) use unfinished::{
    Destination, FinishedMember, Identity, InMemory, MemberStore, SnapshotPace, Start, Store,
    TrainingFolder, Whole,
};

/// Treatment of a model that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Keep it: saving is an error.
    #[default]
    Keep,
    /// Replace it, in one instant.
    Replace,
}

/// Name and version of this program, as files name it.
fn written_by() -> String {
    concat!("elias ", env!("CARGO_PKG_VERSION")).into()
}
