//! Settings of score calibration and of the hold-out it is fitted on.

use serde::{Deserialize, Serialize};

/// Calibration of scores on held-out training points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CalibrationConfig {
    /// Whether training points are held out and scores calibrated on them.
    pub enabled: bool,
    /// What makes the final score.
    pub kind: CalibrationKind,
    /// Whether the judge hears the labels of similar training points.
    pub neighbours: bool,
    /// Whether members are trained again on all points after calibration; doubles the time.
    pub refit: bool,
    /// The training points that are held out.
    pub hold_out: HoldOutConfig,
}

/// The final score of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationKind {
    /// Boosted trees over what network, ranker and neighbours say.
    #[default]
    Judge,
    /// T(p, q, p·q, f) + p·q (the paper).
    Tree,
    /// 0.3·T + 0.7·p·q (the released code).
    Released,
}

/// Which training points are held out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HoldOutConfig {
    /// Most points held out; never more than a tenth of all.
    pub n_points: usize,
    /// Fewest points to calibrate on; with fewer, nothing is held out and nothing calibrated.
    pub min_points: usize,
    /// Cosine from which points are near duplicates; those of every other point that is held out do not train. Above 1:
    /// none are.
    pub near_duplicates: f32,
}

impl Default for CalibrationConfig {
    fn default() -> Self {
        CalibrationConfig {
            enabled: true,
            kind: CalibrationKind::default(),
            neighbours: true,
            refit: true,
            hold_out: HoldOutConfig::default(),
        }
    }
}

impl Default for HoldOutConfig {
    fn default() -> Self {
        HoldOutConfig {
            n_points: 5000,
            min_points: 100,
            near_duplicates: 0.6,
        }
    }
}
