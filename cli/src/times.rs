//! The time and memory of a training, written beside the model by `elias train` and shown by `elias report`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// Time and memory of each phase of a training.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Whether the training was resumed: the times are then those of the last run only.
    pub(crate) resumed: bool,
    pub(crate) phases: Vec<PhaseTime>,
    /// Cost of the checkpoints, which is part of the phases.
    #[serde(default)]
    pub(crate) checkpoints: Checkpoints,
}

/// Number of checkpoints, and the seconds they took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Checkpoints {
    pub(crate) count: usize,
    pub(crate) seconds: f64,
}

/// One phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PhaseTime {
    pub(crate) phase: String,
    pub(crate) seconds: f64,
    /// Peak memory of the process up to the end of the phase.
    pub(crate) peak_bytes: Option<u64>,
}

impl Times {
    /// The times of a model, if there are any.
    pub(crate) fn read(model: &Path) -> Option<Self> {
        let text = fs::read(path_of(model)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the times beside the model.
    ///
    /// # Errors
    /// If a file of that name is something else.
    pub(crate) fn write(&self, model: &Path) -> io::Result<()> {
        if path_of(model).exists() && Times::read(model).is_none() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::write(path_of(model), serde_json::to_vec_pretty(self)?)
    }
}

/// Beside the model, not part of it.
fn path_of(model: &Path) -> PathBuf {
    let mut name = model.file_name().unwrap_or_default().to_os_string();
    name.push("-times.json");
    model.with_file_name(name)
}
