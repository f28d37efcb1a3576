//! What a model has learned, and why it answers as it does: the figures behind explanations and reports.
//!
//! Everything here is computed from a [`Predictor`](crate::Predictor) and data; nothing is drawn or printed. Results
//! are plain structs that can be serialised. Cluster and label numbers are those of the model and of its label set.
//! Where the paper calls a label assigned to a cluster, its edge has a score ŝ(c,ℓ) above
//! [`IndexHealth::assigned_above`]; a point belongs to a cluster whose ŝ_c is above [`STRONG`].

mod browse;
mod curves;
mod edges;
mod explain;
mod hardest;
mod health;
mod maps;
mod members;
mod recall;
mod scores;
mod shortlist;
mod trace;
mod tsne;

pub use browse::{
    ClusterDetails, ClusterEdge, LabelDetails, cluster_details, known_words, label_details,
    n_clusters,
};
pub use curves::{RatePoint, StageRates, TrainingCurves, rates_by_epoch};
pub use edges::{Assignments, PruneFigures, assignments, prune};
pub use explain::{
    AnswerExplanation, LabelPath, MemberExplanation, NameExplanation, Neighbour, RankerExplanation,
    SourcesExplanation, VoteExplanation, explain, neighbours,
};
pub use hardest::{HardPoint, Miss, MissReason, find_hardest};
pub use health::{IndexHealth, OVERLAP_CUTOFFS};
pub use maps::{Compactness, LabelMap, MapOptions, MapPoint, compactness, label_maps};
pub use members::{ClusterWords, PointClusters, cluster_words, clusters_of_points};
pub use recall::{LabelRecall, StageFigures, measure_stage, recall_of_labels};
pub use scores::{ReliabilityCurve, ScoreSpread, StageRankings, reliability, score_spread};
pub use shortlist::{
    BEAM_SIZES, IndexRecall, RecallBySize, SHORTLIST_SIZES, ShortlistRecall, shortlist_recall,
};

pub use crate::calibration::{Reliability, ReliabilityBin};
pub use crate::features::PointSet;
pub use crate::index::{Cut, LostLabels};

/// The cluster score above which a point belongs to a cluster (paper, Appendix).
pub const STRONG: f32 = 0.25;

#[cfg(test)]
mod tests;
