//! The data set inside the binary: Debian package descriptions and what the packages depend on.
//!
//! Its origin is documented in `data/debian-small/README.md`.

use anyhow::Context;
use elias::data::{Dataset, ReadOptions};
use elias::internals::{BUNDLED_TEST, BUNDLED_TRAIN};

use crate::reading::Split;

/// Both parts.
pub(crate) fn read() -> anyhow::Result<Split> {
    let options = ReadOptions::default();
    let train = read_part("debian-small/train.jsonl.gz", BUNDLED_TRAIN, &options)?;
    let options = ReadOptions {
        known_labels: Some(train.label_set()),
        ..options
    };
    let test = read_part("debian-small/test.jsonl.gz", BUNDLED_TEST, &options)?;
    Ok(Split { train, test })
}

fn read_part(name: &str, bytes: &[u8], options: &ReadOptions<'_>) -> anyhow::Result<Dataset> {
    let (dataset, _) = options
        .read_bytes(name, bytes)
        .context("while reading the bundled data set")?;
    Ok(dataset)
}
