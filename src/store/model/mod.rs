//! A model in a directory: saved, described, loaded, checked, merged.

mod boosting;
mod change;
mod check;
mod corrections;
mod describe;
mod learner;
mod load;
mod load_member;
mod merge;
mod rerank;
mod save;
mod save_member;
mod sparse;

pub use check::{CheckedFile, FileState, FilesCheck, check_files};
pub use describe::{Description, describe};
pub use learner::Learner;
pub(crate) use load::verify;
pub(crate) use merge::merge;

pub(super) use load_member::MemberLoader;
pub(super) use save::save_locked;
pub(super) use save_member::{send_member, write_member};
