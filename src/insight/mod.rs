//! Figures behind explanations and reports: what a model has learned, and why it answers as it does.
//!
//! Three doors: [`Predictor::explain`](crate::Predictor::explain) for one text,
//! [`Predictor::inspect`](crate::Predictor::inspect) for the model and its index, with
//! [`Predictor::inspect_label`](crate::Predictor::inspect_label) and
//! [`Predictor::inspect_cluster`](crate::Predictor::inspect_cluster), and
//! [`Predictor::report`](crate::Predictor::report) for the paper's tables and figures. Results are plain structs that
//! can be serialised. Cluster and label numbers are those of the model and of its label set. Where the paper calls a
//! label assigned to a cluster, its edge has a score ŝ(c,ℓ) above [`IndexHealth::assigned_above`]; a point belongs to a
//! cluster whose ŝ_c is above 0.25.

mod browse;
mod card;
mod curves;
mod edges;
mod explain;
mod explanation;
mod hardest;
mod health;
mod inspection;
mod maps;
mod members;
mod quality;
mod recall;
mod report;
mod scores;
mod shortlist;
#[doc(hidden)]
pub mod svg;
mod trace;
mod tsne;

pub use browse::{ClusterDetails, ClusterEdge, LabelDetails, LabelExample};
pub use card::CardOptions;
pub use curves::TrainingCurves;
pub use edges::PruneFigures;
pub use explain::{
    AnswerExplanation, LabelPath, MemberExplanation, NameExplanation, RankerExplanation,
    SourcesExplanation, VoteExplanation,
};
pub use explanation::{Explanation, NearPoint};
pub use health::IndexHealth;
pub use inspection::Inspection;
pub use report::{Figure, Report, ReportCache, ReportOptions, ReportProgress};
pub use shortlist::{IndexRecall, ShortlistRecall};

pub use crate::index::{Cut, LostLabels, Pruning, RemovedShare};

#[doc(hidden)]
pub use report::{CheckpointTimes, PhaseTime, TrainingTimes};

use curves::rates_by_epoch;
use edges::assignments;
use hardest::{HardPoint, MissReason, find_hardest};
use health::OVERLAP_CUTOFFS;
use maps::{Compactness, LabelMap, MapOptions, compactness, label_maps};
use members::{ClusterWords, cluster_words, clusters_of_points};
use quality::{Repetitions, ThresholdQuality, repetitions, threshold_quality};
use recall::{LabelRecall, StageFigures, measure_stage, recall_of_labels};
use scores::{ReliabilityCurve, ScoreSpread, StageRankings, reliability, score_spread};
use shortlist::{BEAM_SIZES, RecallBySize, SHORTLIST_SIZES, shortlist_recall};

/// The cluster score above which a point belongs to a cluster (paper, Appendix).
const STRONG: f32 = 0.25;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
