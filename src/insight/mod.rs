//! What a trained model has learned, and why it answers so: the figures behind explanations and reports.
//!
//! Everything here is computed from a [`Predictor`](crate::predict::Predictor) and data; nothing is drawn or printed.
//! Results are plain structs that can be written down and read back, so that whoever asks twice computes once.
//! Cluster and label numbers in them are those of the model and of its label set. Where the paper calls a label
//! assigned to a cluster, its edge has a score ŝ(c,ℓ) above [`assigning_score`]; a point belongs to a cluster whose
//! ŝ_c is above [`STRONG`].

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

pub use curves::{RatePoints, TrainingCurves, rates_by_epoch};
pub use explain::{
    AnswerStory, LabelPath, MemberStory, Neighbour, RankerStory, explain, neighbours,
};
pub use hardest::{HardPoint, Miss, MissReason, find_hardest};
pub use health::{IndexHealth, OVERLAP_CUTOFFS, assigning_score};
pub use maps::{Compactness, LabelMap, MapOptions, MapPoint, compactness, label_maps};
pub use members::{ClusterWords, PointClusters, cluster_words, clusters_of_points};
pub use recall::{LabelRecall, StageFigures, measure_stage, recall_of_labels};
pub use scores::{Calibration, ScoreSpread, reliability, score_spread};
pub use tsne::{TsneOptions, tsne};

/// Above this score a point belongs to a cluster (paper, Appendix).
pub const STRONG: f32 = 0.25;
