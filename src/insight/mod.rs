//! What a trained model has learned, and how it arrives at its answers: the figures behind explanations and reports.
//!
//! Everything here is computed from a [`Predictor`](crate::predict::Predictor) and data; nothing is drawn or printed.
//! Results are plain structs that can be saved and loaded. Cluster and label numbers in them are those of the model
//! and of its label set. A label is assigned to a cluster, in the paper's words, if its edge has a score ŝ(c,ℓ) above
//! [`assigning_score`]; a point belongs to a cluster whose ŝ_c is above [`STRONG`].

mod curves;
mod explain;
mod hardest;
mod health;
mod maps;
mod members;
mod recall;
mod scores;
mod trace;
mod tsne;

pub use curves::{RatePoint, StageRates, TrainingCurves, rates_by_epoch};
pub use explain::{
    AnswerExplanation, LabelPath, MemberExplanation, Neighbour, RankerExplanation, explain,
    neighbours,
};
pub use hardest::{HardPoint, Miss, MissReason, find_hardest};
pub use health::{IndexHealth, OVERLAP_CUTOFFS, assigning_score};
pub use maps::{Compactness, LabelMap, MapOptions, MapPoint, compactness, label_maps};
pub use members::{ClusterWords, PointClusters, cluster_words, clusters_of_points};
pub use recall::{LabelRecall, StageFigures, measure_stage, recall_of_labels};
pub use scores::{ReliabilityCurve, ScoreSpread, StageRankings, reliability, score_spread};
pub use tsne::{TsneOptions, tsne};

/// The cluster score above which a point belongs to a cluster (paper, Appendix).
pub const STRONG: f32 = 0.25;
