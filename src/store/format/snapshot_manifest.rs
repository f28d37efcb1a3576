//! Version 1 of the manifest of an unfinished training's snapshot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::history::{WireEvent, WirePhase};
use super::manifest::WireFile;
use crate::config::Config;
use crate::train::{EpochSums, Position};

/// The `format` of a snapshot's manifest.
pub(crate) const FORMAT: &str = "elias-checkpoint";

/// `manifest.json` of a snapshot, without its checksum.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) written_by: String,
    /// Snapshots of the training before this one.
    pub(crate) generation: u64,
    /// SHA-256 of the data set.
    pub(crate) data: String,
    /// SHA-256 of the validation data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) validation: Option<String>,
    /// SHA-256 of the pretrained encoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) encoder: Option<String>,
    /// Which member of the ensemble is being trained.
    pub(crate) member: usize,
    pub(crate) position: WirePosition,
    /// Absent where edges are fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beta: Option<f32>,
    pub(crate) state: String,
    pub(crate) history: Vec<WireEvent>,
    pub(crate) config: Config,
    pub(crate) files: BTreeMap<String, WireFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WirePosition {
    phase: WirePhase,
    step: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_loss: Option<f64>,
    classification: f64,
    shortlist: f64,
    total: f64,
    n_pairs: usize,
    n_points: usize,
    recent: f64,
}

impl From<Position> for WirePosition {
    fn from(position: Position) -> Self {
        let sums = position.sums;
        WirePosition {
            phase: position.phase.into(),
            step: position.step,
            first_loss: position.first_loss,
            classification: sums.classification,
            shortlist: sums.shortlist,
            total: sums.total,
            n_pairs: sums.n_pairs,
            n_points: sums.n_points,
            recent: sums.recent,
        }
    }
}

impl From<&WirePosition> for Position {
    fn from(wire: &WirePosition) -> Self {
        Position {
            phase: wire.phase.into(),
            step: wire.step,
            first_loss: wire.first_loss,
            sums: EpochSums {
                classification: wire.classification,
                shortlist: wire.shortlist,
                total: wire.total,
                n_pairs: wire.n_pairs,
                n_points: wire.n_points,
                recent: wire.recent,
            },
        }
    }
}
