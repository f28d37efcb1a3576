//! The contents of a report as plain data: results of the library, with names and texts.

use serde::{Deserialize, Serialize};

use super::times::TrainingTimes;
use crate::insight::{
    ClusterWords, Compactness, HardPoint, IndexHealth, LabelMap, LabelRecall, ReliabilityCurve,
    Repetitions, ScoreSpread, ShortlistRecall, StageFigures, ThresholdQuality,
};
use crate::store::Description;

/// Figures computed from the test part of the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TestFigures {
    pub(super) n_points: usize,
    /// Every stage of the model, in order.
    pub(super) stages: Vec<StageFigures>,
    pub(super) spread: Vec<ScoreSpread>,
    pub(super) reliability: Option<ReliabilityCurve>,
    pub(super) labels: Vec<LabelRecall>,
    pub(super) thresholds: Option<ThresholdQuality>,
    pub(super) hardest: Vec<HardPoint>,
    /// Texts of the hardest points.
    pub(super) texts: Vec<String>,
    /// Names of all labels; those the model does not know are at the end.
    pub(super) label_names: Vec<String>,
}

/// The cost of pruning the index at one cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PruneRow {
    /// The threshold, or the number of edges kept per cluster.
    pub(super) cut: f64,
    /// Edges removed, in percent.
    pub(super) removed: f64,
    /// Labels that are kept only by their strongest edge.
    pub(super) n_rescued: usize,
    /// P@1, P@5, R@10 and R@100 of stage 2.
    pub(super) metrics: [f64; 4],
}

/// Both pruning tables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pruning {
    /// Number of test points.
    pub(super) n_points: usize,
    pub(super) by_threshold: Vec<PruneRow>,
    pub(super) by_top_k: Vec<PruneRow>,
}

/// Figures computed from the training part of the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrainFigures {
    pub(super) clusters: Vec<ClusterWords>,
    /// Maps of labels in several clusters, and in one.
    pub(super) maps: [Vec<LabelMap>; 2],
    /// The start of the text of every point on a map, by kind, map and point.
    pub(super) map_texts: [Vec<Vec<String>>; 2],
    pub(super) compactness: Vec<Compactness>,
}

/// A whole report.
pub(super) struct ReportData {
    /// The model's name: the last part of its path.
    pub(super) name: String,
    pub(super) description: Description,
    pub(super) label_counts: Vec<u32>,
    /// The strongest labels of every cluster.
    pub(super) strongest: Vec<Vec<u32>>,
    /// The clusters of every label, the strongest first.
    pub(super) clusters_of: Vec<Vec<u32>>,
    pub(super) health: IndexHealth,
    pub(super) test: TestFigures,
    pub(super) shortlist: ShortlistRecall,
    /// The network of a model with fixed clusters, if one was given.
    pub(super) fixed: Option<StageFigures>,
    pub(super) pruning: Option<Pruning>,
    pub(super) train: Option<TrainFigures>,
    pub(super) repetitions: Option<Repetitions>,
    /// Test texts that the model was trained on, where it can tell.
    pub(super) n_seen: Option<usize>,
    pub(super) times: Option<TrainingTimes>,
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
