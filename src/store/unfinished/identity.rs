//! The identity of a training: everything that must be the same when it is resumed.

use crate::config::Config;
use crate::data::{DataSummary, Dataset};
use crate::error::shortened;
use crate::store::format::snapshot_manifest::Snapshot;
use crate::store::written_by;

/// Differing settings that are listed when a training cannot be resumed.
const MAX_LISTED: usize = 6;

/// Everything that must not change between the start and the end of a training.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    /// The configuration.
    pub(crate) config: Config,
    /// The data.
    pub(crate) data: DataSummary,
    /// SHA-256 of the validation data.
    pub(crate) validation: Option<String>,
    /// SHA-256 of the pretrained encoder.
    pub(crate) encoder: Option<String>,
}

impl Identity {
    /// The identity of a training; `encoder` is the SHA-256 of a pretrained one.
    pub(crate) fn new(
        config: &Config,
        data: DataSummary,
        validation: Option<&Dataset>,
        encoder: Option<String>,
    ) -> Self {
        Identity {
            config: config.clone(),
            data,
            validation: validation.map(|data| DataSummary::of(data).sha256),
            encoder,
        }
    }

    /// The differences from a snapshot, as phrases.
    pub(crate) fn differences(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut differences = Vec::new();
        let program = written_by();
        if snapshot.written_by != program {
            let before = shortened(&snapshot.written_by);
            differences.push(format!("the program was {before:?} and is {program:?}"));
        }
        if snapshot.data != self.data.sha256 {
            differences.push("the data has changed".into());
        }
        if snapshot.validation != self.validation {
            differences.push("the validation data has changed".into());
        }
        if snapshot.encoder != self.encoder {
            differences.push("the pretrained encoder has changed".into());
        }
        let settings = snapshot.config.differences(&self.config);
        let n_left = settings.len().saturating_sub(MAX_LISTED);
        differences.extend(settings.iter().take(MAX_LISTED).map(|one| shortened(one)));
        if n_left > 0 {
            differences.push(format!("{n_left} more settings differ"));
        }
        differences
    }
}
