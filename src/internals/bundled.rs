//! The files of the bundled data set, debian-small: real texts for the demo, without a download.
//!
//! Its origin is documented in `data/debian-small/README.md`.

/// The training part, compressed JSON Lines.
pub const BUNDLED_TRAIN: &[u8] = include_bytes!("../../data/debian-small/train.jsonl.gz");
/// The test part.
pub const BUNDLED_TEST: &[u8] = include_bytes!("../../data/debian-small/test.jsonl.gz");
