//! Everything a report shows, as plain data: what the library computed, with the names and texts a reader needs.

use elias::insight::{
    ClusterWords, Compactness, HardPoint, IndexHealth, LabelMap, LabelRecall, ReliabilityCurve,
    ScoreSpread, StageFigures,
};
use serde::{Deserialize, Serialize};

/// What is computed from the test part of the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TestFigures {
    pub(super) n_points: usize,
    /// Every stage the model has, from the bottom to the top.
    pub(super) stages: Vec<StageFigures>,
    pub(super) spread: Vec<ScoreSpread>,
    pub(super) reliability: Option<ReliabilityCurve>,
    pub(super) labels: Vec<LabelRecall>,
    pub(super) hardest: Vec<HardPoint>,
    /// Text and true label names of the hardest points.
    pub(super) texts: Vec<String>,
    /// Names of all labels of the data, those the model does not know at the end.
    pub(super) label_names: Vec<String>,
}

/// What one cut of the index costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PruneRow {
    /// Threshold, or edges kept a cluster.
    pub(super) cut: f64,
    /// Share of the edges that went, in percent.
    pub(super) removed: f64,
    /// Labels that only stay because their strongest edge does.
    pub(super) n_rescued: usize,
    /// P@1, P@5, R@10 and R@100 of stage 2.
    pub(super) metrics: [f64; 4],
}

/// Both pruning tables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pruning {
    /// Test points they are measured on.
    pub(super) n_points: usize,
    pub(super) by_threshold: Vec<PruneRow>,
    pub(super) by_top_k: Vec<PruneRow>,
}

/// What is computed from the training part of the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrainFigures {
    pub(super) clusters: Vec<ClusterWords>,
    /// The words of [`ClusterWords::columns`], cluster by cluster.
    pub(super) words: Vec<Vec<String>>,
    /// Maps of labels with several clusters, and with one.
    pub(super) maps: [Vec<LabelMap>; 2],
    /// The beginning of the text of every point on a map, by map kind, map and point.
    pub(super) map_texts: [Vec<Vec<String>>; 2],
    pub(super) compactness: Vec<Compactness>,
}

/// Seconds and memory of a training's phases; written beside the model by `elias train`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Whether the training was interrupted and resumed: the seconds are then those of its last part.
    pub(crate) resumed: bool,
    pub(crate) phases: Vec<PhaseTime>,
    /// What checkpoints cost, within the phases.
    #[serde(default)]
    pub(crate) checkpoints: Checkpoints,
}

/// Checkpoints of a training.
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
    /// Most memory of the process until the phase ended.
    pub(crate) peak_bytes: Option<u64>,
}

/// A whole report.
pub(super) struct ReportData {
    /// The model's name: the last part of its path.
    pub(super) name: String,
    pub(super) description: elias::checkpoint::Description,
    pub(super) label_counts: Vec<u32>,
    /// For every cluster the strongest labels assigned to it.
    pub(super) strongest: Vec<Vec<u32>>,
    /// For every label the clusters it is assigned to, the strongest first.
    pub(super) clusters_of: Vec<Vec<u32>>,
    pub(super) health: IndexHealth,
    pub(super) test: TestFigures,
    pub(super) pruning: Option<Pruning>,
    pub(super) train: Option<TrainFigures>,
    pub(super) times: Option<Times>,
}

impl ReportData {
    /// The figures of a stage, if the model has it.
    pub(super) fn stage(&self, name: &str) -> Option<&StageFigures> {
        self.test.stages.iter().find(|stage| stage.stage == name)
    }

    /// The name of a label.
    pub(super) fn label(&self, label: u32) -> &str {
        let name = self.test.label_names.get(label as usize);
        name.map_or("?", String::as_str)
    }
}
