//! The time and memory of a training, kept beside the model and shown in its report.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// Time and memory of each phase of a training.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrainingTimes {
    /// Whether the training was resumed: the times are then those of the last run only.
    pub resumed: bool,
    /// Every phase, in order.
    pub phases: Vec<PhaseTime>,
    /// Cost of the checkpoints, which is part of the phases.
    #[serde(default)]
    pub checkpoints: CheckpointTimes,
}

/// Number of checkpoints, and the seconds they took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CheckpointTimes {
    /// Checkpoints written.
    pub count: usize,
    /// Their time.
    pub seconds: f64,
}

/// One phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Name of the phase.
    pub phase: String,
    /// Its time.
    pub seconds: f64,
    /// Peak memory of the process up to the end of the phase.
    pub peak_bytes: Option<u64>,
}

impl TrainingTimes {
    /// The times of a model, if there are any.
    pub(super) fn read(model: &Path) -> Option<Self> {
        let text = fs::read(path_of(model)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the times beside the model.
    ///
    /// # Errors
    /// If a file of that name is something else.
    pub fn write(&self, model: &Path) -> io::Result<()> {
        if path_of(model).exists() && TrainingTimes::read(model).is_none() {
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
