//! The data set inside the binary: Debian package descriptions and what the packages depend on.
//!
//! Where it comes from is written in `data/debian-small/README.md`.

use anyhow::Context;
use elias::data::{self, Dataset, ReadOptions};

const TRAIN: &[u8] = include_bytes!("../../data/debian-small/train.jsonl.gz");
const TEST: &[u8] = include_bytes!("../../data/debian-small/test.jsonl.gz");

/// The train and the test part, over the same labels.
pub(crate) fn read() -> anyhow::Result<(Dataset, Dataset)> {
    let read_part = |name: &str, bytes: &[u8], options: &ReadOptions<'_>| {
        data::read_bytes(name, bytes, options).context("while reading the bundled data set")
    };
    let (train, _) = read_part(
        "debian-small/train.jsonl.gz",
        TRAIN,
        &ReadOptions::default(),
    )?;
    let options = ReadOptions {
        known_labels: Some(train.label_set()),
        ..ReadOptions::default()
    };
    let (test, _) = read_part("debian-small/test.jsonl.gz", TEST, &options)?;
    Ok((train, test))
}
