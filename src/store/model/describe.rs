//! The manifest of a model, read alone.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::config::{DataCounts, Plan};
use crate::data::{DataSummary, missing};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::store::format::files::{FileRecord, MANIFEST, read_bounded};
use crate::store::format::manifest::{self, Manifest};

/// Most bytes of a manifest; reading one takes some ten times its size.
pub(super) const MAX_MANIFEST: u64 = 16 << 20;

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
    /// SHA-256 of the manifest in hexadecimal digits.
    pub sha256: String,
}

/// Reads the manifest alone.
///
/// # Errors
/// As [`Predictor::load`](crate::Predictor::load), for the manifest.
pub fn describe(directory: &Path) -> Result<Description> {
    let (manifest, bytes) = read(directory)?;
    Ok(Description {
        sha256: format!("{:x}", Sha256::digest(&bytes)),
        version: manifest.version,
        plan: plan_of(&manifest)?,
        data: (&manifest.data).into(),
        history: manifest.history.iter().map(Into::into).collect(),
        n_members: manifest.members.len(),
        takes_texts: manifest.features.is_some(),
        files: manifest.records(),
        written_by: manifest.written_by,
    })
}

/// The manifest of a model; every file that it uses is listed.
pub(crate) fn read_manifest(directory: &Path) -> Result<Manifest> {
    Ok(read(directory)?.0)
}

/// The manifest, and its bytes.
fn read(directory: &Path) -> Result<(Manifest, Vec<u8>)> {
    let path = directory.join(MANIFEST);
    if !path.exists() {
        std::fs::metadata(directory).map_err(|error| missing(directory, error))?;
        return Err(Error::NotAModel {
            path: directory.into(),
        });
    }
    let bytes = read_bounded(&path, MAX_MANIFEST)?;
    let manifest: Manifest = manifest::from_text(&path, &bytes, manifest::FORMAT)?;
    manifest::check_names(&path, &manifest.files, &manifest.referenced())?;
    Ok((manifest, bytes))
}

/// The plan that a model was trained by.
pub(super) fn plan_of(manifest: &Manifest) -> Result<Plan> {
    let counts = DataCounts {
        n_points: manifest.n_training_points,
        n_labels: manifest.data.n_labels,
        n_features: manifest.n_features,
        n_pairs: manifest.n_pairs,
        n_parts: manifest.n_parts,
        embedding_dim: manifest.embedding_dim,
    };
    manifest.config.restore(counts, (&manifest.plan).into())
}
