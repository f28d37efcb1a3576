//! What the command line needs besides the main types: models on disk and plans.

pub use crate::checkpoint::{
    CheckedFile, Description, FileRecord, FileState, FilesCheck, check_files, describe,
    is_unfinished, verify,
};
pub use crate::pipeline::MemoryEstimate;
