//! Figures that took long to compute, kept in the model's directory.
//!
//! A piece is kept under a name that holds what it depends on: the files of the model, the data, and the version of
//! the program. What cannot be read is computed again; what cannot be written is not kept. Nothing here is part of
//! the model.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use elias::tools::Description;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ui::console::Console;

/// The folder inside of the model's directory.
const FOLDER: &str = "report";

/// Kept figures of one model.
pub(super) struct Cache<'a> {
    folder: PathBuf,
    model: u64,
    is_used: bool,
    console: &'a Console,
}

impl<'a> Cache<'a> {
    pub(super) fn new(
        (model, description): (&Path, &Description),
        is_used: bool,
        console: &'a Console,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        for (name, file) in &description.files {
            (name, &file.sha256).hash(&mut hasher);
        }
        Cache {
            folder: model.join(FOLDER),
            model: hasher.finish(),
            is_used,
            console,
        }
    }

    /// The piece of this name for this data, computed if it is not there.
    pub(super) fn get<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        data: &str,
        compute: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut hasher = DefaultHasher::new();
        (self.model, data).hash(&mut hasher);
        let path = self
            .folder
            .join(format!("{name}-{:016x}.json", hasher.finish()));
        if self.is_used
            && let Some(kept) = fs::read(&path).ok()
            && let Ok(piece) = serde_json::from_slice(&kept)
        {
            self.console
                .detail(format_args!("{name}: from {}", path.display()));
            return Ok(piece);
        }
        let piece = compute()?;
        if self.is_used && self.keep(&path, &piece).is_err() {
            let folder = self.folder.display();
            self.console.detail(format_args!(
                "{name} is not kept: {folder} cannot be written"
            ));
        }
        Ok(piece)
    }

    fn keep(&self, path: &Path, piece: &impl Serialize) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let partial = path.with_extension("partial");
        fs::write(&partial, serde_json::to_vec(piece)?)?;
        fs::rename(&partial, path)
    }
}
