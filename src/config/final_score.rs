//! Settings of the final score and of the hold-out it is fitted on.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The final score, fitted on held-out training points with the probability that goes with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct FinalScoreConfig {
    /// The final score of a candidate; unset: the recipe's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FinalScoreKind>,
    /// Whether labels of similar training points are candidates, and their votes a feature of the boosted score; unset:
    /// as the recipe has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<bool>,
}

/// The final score of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum FinalScoreKind {
    /// Boosted trees over all that is known of the candidate.
    Boosted,
    /// T(p, q, p·q, f) + p·q (the paper).
    Tree,
    /// 0.3·T + 0.7·p·q (the released code).
    Mixture,
    /// p·q: no points are held out, nothing is fitted, scores are no probabilities.
    Product,
}

impl FinalScoreKind {
    /// Whether it is fitted on held-out points.
    pub fn is_fitted(self) -> bool {
        self != FinalScoreKind::Product
    }
}

/// The training points that are held out, to fit the final score on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct HoldOutConfig {
    /// Upper bound of the points held out; never more than a tenth of all.
    pub n_points: usize,
    /// Fewest points to hold out; with fewer, folds of all points take turns.
    pub min_points: usize,
    /// Parts of small data that are held out in turn, each beside a training of its own; below 2 nothing is fitted there.
    /// Unset: the recipe's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// Cosine from which points are near duplicates; those of every other point that is held out do not train. Above 1:
    /// none are. Unset: the recipe's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_duplicates: Option<f32>,
    /// The part that is trained again on all points afterwards; unset: the recipe's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refit: Option<Refit>,
}

impl HoldOutConfig {
    /// Upper bound of the points held out of so many.
    pub fn most_points(&self, n_points: usize) -> usize {
        self.n_points.min(n_points / 10)
    }
}

/// The part of a model that is trained again on all points, once its final score is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Refit {
    /// Everything up to 100,000 points, above that the ranker.
    #[default]
    Auto,
    /// Nothing: points that were held out count for probabilities alone.
    Nothing,
    /// The ranker, neighbours and frequencies; the network stays as it is.
    Ranker,
    /// The network, too: doubles the time.
    Everything,
}

impl Default for HoldOutConfig {
    fn default() -> Self {
        HoldOutConfig {
            n_points: 5000,
            min_points: 100,
            folds: None,
            near_duplicates: None,
            refit: None,
        }
    }
}
