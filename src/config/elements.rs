//! Values of the recipe's elements: the choices that make a training the paper's, the released code's or our own.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// How the losses of a batch are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Summed over the labels of a point, averaged over the points (the paper).
    Sum,
    /// L_c is divided by points × K, L_s by points × the most labels that one of them has (the released code).
    Mean,
}

/// Which positives of a point are in L_c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Positives {
    /// All that the search reached: a label learns from every point that has it.
    All,
    /// Those among the K best (the paper): a positive that is cut has L_s alone.
    Shortlisted,
}

/// The second moments of AdamW, in parameters that are updated row by row.
///
/// A shared moment keeps the direction of the gradient, so that a row stays in the span of what it was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum SecondMoments {
    /// One per value (the paper).
    Coordinate,
    /// One per row of W_L, one for all word embeddings.
    Shared,
}

/// Start of W_L and b_L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum LabelStart {
    /// 0.1·U(±√(6/d)) and −4: every label is improbable at first.
    Improbable,
    /// U(±√(6/d)) and U(0, 1) (the released code).
    Random,
}

/// The rows of W_L, of A and of the word embeddings that an update moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum RowUpdates {
    /// All: moments and decay move rows without a gradient, too (the paper).
    All,
    /// Those with a gradient, each by its own count of updates.
    Touched,
}

/// The clusters that a point is searched through in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Searched {
    /// The beam and the parents of all positives (the paper).
    Parents,
    /// As many for each point of a batch, the rest random clusters; of more than b + 5, so many are drawn by their scores (the
    /// released code).
    Filled,
}

/// How long a label keeps its parent, the cluster whose edge to it is the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Parents {
    /// For an epoch (the released code).
    Epoch,
    /// Until A is updated (the paper).
    Update,
}

/// Start of the edges of A and of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum EdgeStart {
    /// As `counts`, and again from a fresh MᵀY in every epoch of stage 2 but the last.
    Recounts,
    /// ln of MᵀY: how often the points of a label met the cluster.
    Counts,
    /// Random numbers from 0 to 1 (the paper).
    Random,
}

/// Loss of a label's linear classifier, besides ½‖w‖².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum RankerLoss {
    /// Σ C·max(0, 1 − y·z)² (the released code).
    SquaredHinge,
    /// Σ C·log(1 + exp(−y·z)) (the paper).
    Logistic,
}

/// Which points are negatives of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum RankerNegatives {
    /// Points that have another label of its cluster; clusters get classifiers of their own, as in linear trees.
    Clusters,
    /// Points that have it among their best candidates (the paper).
    Candidates,
}

/// How the token states of a transformer become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The state of the first token (the paper).
    Cls,
    /// The mean of all states, as in sentence encoders.
    Mean,
}

/// A size of the index that the data decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeRule {
    /// A number per label of an average cluster.
    PerLabel(f32),
    /// The same for all data.
    Fixed(f32),
}

impl SizeRule {
    /// The size for clusters of this many labels on average; at least 1.
    pub(super) fn size(self, labels_per_cluster: f32) -> f32 {
        match self {
            SizeRule::PerLabel(factor) => (factor * labels_per_cluster).max(1.0),
            SizeRule::Fixed(size) => size,
        }
    }
}
