//! Slow results, cached in the model's directory.
//!
//! The name of an entry has a hash of what it depends on: the model's files, the data, and the version of the program.
//! An entry that cannot be read is computed again; one that cannot be written is not cached. The cache is not part of
//! the model.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ReportCache;
use crate::error::Result;
use crate::store::Description;

/// The directory inside the model's directory.
const DIRECTORY: &str = "report";
/// Version of the entries; another one hides those that lack a figure.
const LAYOUT: u32 = 3;

/// Cached results of one model.
pub(super) struct Cache {
    directory: PathBuf,
    /// Hash of the model and the version.
    model_hash: u64,
    is_used: bool,
}

impl Cache {
    pub(super) fn new(model: &Path, description: &Description, cache: ReportCache) -> Self {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), LAYOUT).hash(&mut hasher);
        for (name, file) in &description.files {
            (name, &file.sha256).hash(&mut hasher);
        }
        Cache {
            directory: model.join(DIRECTORY),
            model_hash: hasher.finish(),
            is_used: cache == ReportCache::Kept,
        }
    }

    /// The entry of this name for this data, computed if it is not cached.
    pub(super) fn get<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        data: &str,
        compute: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut hasher = DefaultHasher::new();
        (self.model_hash, data).hash(&mut hasher);
        let path = self
            .directory
            .join(format!("{name}-{:016x}.json", hasher.finish()));
        if self.is_used
            && let Ok(bytes) = fs::read(&path)
            && let Ok(entry) = serde_json::from_slice(&bytes)
        {
            return Ok(entry);
        }
        let entry = compute()?;
        if self.is_used {
            // One that cannot be written is computed again next time.
            let _ = self.write(&path, &entry);
        }
        Ok(entry)
    }

    fn write(&self, path: &Path, entry: &impl Serialize) -> std::io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let partial = path.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(entry)?)?;
        fs::rename(&partial, path)
    }
}
