//! Version 1 of the manifest: wire structs and their way from and to the text of `manifest.json`.
//!
//! The last member is a checksum over all bytes before it, so that a changed manifest is not believed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::DataSummary;
use super::files::{FileRecord, is_plain_name, sha256};
use crate::config::{Config, Decided};
use crate::error::{Error, Result};
use crate::train::{Event, Phase};

/// The `format` of a model's manifest.
pub(super) const FORMAT: &str = "elias-model";
/// The `version` this module reads and writes.
pub(super) const VERSION: u32 = 1;

/// `manifest.json`, without its checksum.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) written_by: String,
    pub(super) seed: u64,
    pub(super) data: Data,
    pub(super) n_features: usize,
    /// Points that were trained on: those that have a label.
    pub(super) n_training_points: usize,
    pub(super) plan: WirePlan,
    pub(super) labels: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) features: Option<Features>,
    pub(super) members: Vec<Member>,
    pub(super) history: Vec<Told>,
    pub(super) config: Config,
    pub(super) files: BTreeMap<String, WireFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    pub(super) n_points: usize,
    pub(super) n_labels: usize,
    pub(super) n_positives: usize,
    pub(super) sha256: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WirePlan {
    n_clusters: usize,
    beta: f32,
    kappa: usize,
    beam_size: usize,
    shortlist_size: usize,
}

/// Files of the label names and of the training points a label has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Labels {
    pub(super) names: String,
    pub(super) counts: String,
}

/// Files of the vocabulary and of its weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Features {
    pub(super) vocabulary: String,
    pub(super) weights: String,
}

/// One encoder with its index and classifiers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    pub(super) alpha: f32,
    /// Absent where edges are fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) beta: Option<f32>,
    pub(super) encoder: String,
    pub(super) index: String,
    pub(super) classifiers: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireFile {
    bytes: u64,
    sha256: String,
}

/// An event of the training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Told {
    Epoch {
        phase: WirePhase,
        epoch: usize,
        loss: f64,
        classification_loss: f64,
        shortlist_loss: f64,
        labels_scored: f64,
    },
    Validation {
        phase: WirePhase,
        epoch: usize,
        precision_at_1: f64,
        precision_at_5: f64,
        recall_at_100: f64,
    },
    Adjacency {
        n_edges: usize,
        n_repaired: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WirePhase {
    #[serde(rename = "features")]
    Features,
    #[serde(rename = "clustering")]
    Clustering,
    #[serde(rename = "warm-up")]
    WarmUp,
    #[serde(rename = "stage 1")]
    Stage1,
    #[serde(rename = "adjacency")]
    Adjacency,
    #[serde(rename = "stage 2")]
    Stage2,
}

/// What every version has.
#[derive(Deserialize)]
struct Opening {
    format: String,
    version: u32,
}

const BEFORE_CHECKSUM: &str = ",\n  \"checksum\": \"";
const AFTER_CHECKSUM: &str = "\"\n}\n";

/// A manifest as text, with its checksum.
pub(super) fn to_text(manifest: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(manifest).expect("a manifest has only string keys");
    let body = text.strip_suffix("\n}").unwrap_or(&text);
    let checksum = sha256(body.as_bytes());
    format!("{body}{BEFORE_CHECKSUM}{checksum}{AFTER_CHECKSUM}")
}

/// Reads a manifest of the given format and version.
///
/// # Errors
/// [`Error::BadFile`] if it is of another format or version, damaged, or does not follow the format.
pub(super) fn from_text<T: for<'de> Deserialize<'de>>(
    path: &Path,
    bytes: &[u8],
    (format, version): (&str, u32),
) -> Result<T> {
    let bad = |problem: String| Error::BadFile {
        path: path.into(),
        problem,
    };
    let text =
        std::str::from_utf8(bytes).map_err(|_| bad("it is damaged: it is not UTF-8".into()))?;
    let opening: Opening = serde_json::from_str(text)
        .map_err(|error| bad(format!("it is not a manifest: {error}")))?;
    if opening.format != format {
        let found = shortened(&opening.format);
        return Err(bad(format!("its format is {found:?}, expected {format:?}")));
    }
    if opening.version != version {
        let found = opening.version;
        return Err(bad(format!(
            "its format version is {found}, this program reads {version}: use the program that wrote it"
        )));
    }
    let body = text
        .strip_suffix(AFTER_CHECKSUM)
        .and_then(|text| text.split_at_checked(text.len().checked_sub(64)?))
        .and_then(|(text, checksum)| Some((text.strip_suffix(BEFORE_CHECKSUM)?, checksum)));
    match body {
        Some((body, checksum)) if sha256(body.as_bytes()) == checksum => {
            serde_json::from_str(&format!("{body}\n}}"))
                .map_err(|error| bad(format!("it does not follow version {version}: {error}")))
        }
        _ => Err(bad(
            "it was changed after it was written: its checksum differs".into(),
        )),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

impl Manifest {
    /// Checks every name of a file, and that each is listed once with its size.
    ///
    /// # Errors
    /// [`Error::BadFile`].
    pub(super) fn check_names(&self, path: &Path) -> Result<()> {
        let bad = |problem: String| Error::BadFile {
            path: path.into(),
            problem,
        };
        for name in self.files.keys() {
            if !is_plain_name(name) {
                let name = shortened(name);
                return Err(bad(format!("{name:?} is not the name of a model file")));
            }
        }
        for name in self.referenced() {
            if !self.files.contains_key(name) {
                let name = shortened(name);
                return Err(bad(format!("file {name:?} is used but not listed")));
            }
        }
        Ok(())
    }

    fn referenced(&self) -> Vec<&str> {
        let mut names = vec![&self.labels.names[..], &self.labels.counts];
        if let Some(features) = &self.features {
            names.extend([&features.vocabulary[..], &features.weights]);
        }
        for member in &self.members {
            names.extend([&member.encoder[..], &member.index, &member.classifiers]);
        }
        names
    }

    /// Size and hash of one file.
    pub(super) fn record(&self, name: &str) -> Option<FileRecord> {
        let file = self.files.get(name)?;
        Some(FileRecord {
            bytes: file.bytes,
            sha256: file.sha256.clone(),
        })
    }

    /// Size and hash of every file.
    pub(super) fn records(&self) -> BTreeMap<String, FileRecord> {
        let records = self.files.iter().map(|(name, file)| {
            let (bytes, sha256) = (file.bytes, file.sha256.clone());
            (name.clone(), FileRecord { bytes, sha256 })
        });
        records.collect()
    }
}

impl WireFile {
    /// Whether a file of this size and hash is the one listed.
    pub(super) fn is_of(&self, bytes: u64, sha256: &str) -> bool {
        self.bytes == bytes && self.sha256 == sha256
    }
}

impl From<&FileRecord> for WireFile {
    fn from(record: &FileRecord) -> Self {
        WireFile {
            bytes: record.bytes,
            sha256: record.sha256.clone(),
        }
    }
}

impl From<&DataSummary> for Data {
    fn from(data: &DataSummary) -> Self {
        Data {
            n_points: data.n_points,
            n_labels: data.n_labels,
            n_positives: data.n_positives,
            sha256: data.sha256.clone(),
        }
    }
}

impl From<&Data> for DataSummary {
    fn from(data: &Data) -> Self {
        DataSummary {
            n_points: data.n_points,
            n_labels: data.n_labels,
            n_positives: data.n_positives,
            sha256: data.sha256.clone(),
        }
    }
}

impl From<Decided> for WirePlan {
    fn from(plan: Decided) -> Self {
        WirePlan {
            n_clusters: plan.n_clusters,
            beta: plan.beta,
            kappa: plan.kappa,
            beam_size: plan.beam_size,
            shortlist_size: plan.shortlist_size,
        }
    }
}

impl From<&WirePlan> for Decided {
    fn from(plan: &WirePlan) -> Self {
        Decided {
            n_clusters: plan.n_clusters,
            beta: plan.beta,
            kappa: plan.kappa,
            beam_size: plan.beam_size,
            shortlist_size: plan.shortlist_size,
        }
    }
}

impl From<Phase> for WirePhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Features => WirePhase::Features,
            Phase::Clustering => WirePhase::Clustering,
            Phase::WarmUp => WirePhase::WarmUp,
            Phase::Stage1 => WirePhase::Stage1,
            Phase::Adjacency => WirePhase::Adjacency,
            Phase::Stage2 => WirePhase::Stage2,
        }
    }
}

impl From<WirePhase> for Phase {
    fn from(phase: WirePhase) -> Self {
        match phase {
            WirePhase::Features => Phase::Features,
            WirePhase::Clustering => Phase::Clustering,
            WirePhase::WarmUp => Phase::WarmUp,
            WirePhase::Stage1 => Phase::Stage1,
            WirePhase::Adjacency => Phase::Adjacency,
            WirePhase::Stage2 => Phase::Stage2,
        }
    }
}

/// The events worth keeping.
pub(super) fn told(history: &[Event]) -> Vec<Told> {
    let keep = |event: &Event| match *event {
        Event::Epoch {
            phase,
            epoch,
            loss,
            classification_loss,
            shortlist_loss,
            labels_scored,
        } => Some(Told::Epoch {
            phase: phase.into(),
            epoch,
            loss,
            classification_loss,
            shortlist_loss,
            labels_scored,
        }),
        Event::Validation {
            phase,
            epoch,
            precision_at_1,
            precision_at_5,
            recall_at_100,
        } => Some(Told::Validation {
            phase: phase.into(),
            epoch,
            precision_at_1,
            precision_at_5,
            recall_at_100,
        }),
        Event::AdjacencyReady {
            n_edges,
            n_repaired,
        } => Some(Told::Adjacency {
            n_edges,
            n_repaired,
        }),
        Event::PhaseStarted { .. } | Event::Step { .. } => None,
    };
    history.iter().filter_map(keep).collect()
}

impl From<&Told> for Event {
    fn from(told: &Told) -> Self {
        match *told {
            Told::Epoch {
                phase,
                epoch,
                loss,
                classification_loss,
                shortlist_loss,
                labels_scored,
            } => Event::Epoch {
                phase: phase.into(),
                epoch,
                loss,
                classification_loss,
                shortlist_loss,
                labels_scored,
            },
            Told::Validation {
                phase,
                epoch,
                precision_at_1,
                precision_at_5,
                recall_at_100,
            } => Event::Validation {
                phase: phase.into(),
                epoch,
                precision_at_1,
                precision_at_5,
                recall_at_100,
            },
            Told::Adjacency {
                n_edges,
                n_repaired,
            } => Event::AdjacencyReady {
                n_edges,
                n_repaired,
            },
        }
    }
}
