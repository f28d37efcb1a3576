//! The format on disk: files that are written whole or not at all, and are not trusted when they are read.
//!
//! `manifest`, `history` and `snapshot_manifest` have the wire structs of version 1; `tensors`, `lines` and `map` the
//! files that a manifest lists.

pub(super) mod files;
pub(super) mod history;
pub(super) mod lines;
pub(super) mod manifest;
pub(super) mod map;
pub(super) mod open;
pub(super) mod snapshot_manifest;
pub(super) mod tensors;
