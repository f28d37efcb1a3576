//! Settings of the two training stages and of what they share.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// A setting that both stages share, or that each has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "invalid type: expected one value, or [stage 1, stage 2]"
)]
pub enum PerStage<T> {
    /// The same in both stages.
    Both(T),
    /// Of stage 1 and of stage 2.
    Each([T; 2]),
}

impl<T: Copy> PerStage<T> {
    /// The values of stage 1 and of stage 2.
    pub fn values(self) -> [T; 2] {
        match self {
            PerStage::Both(value) => [value; 2],
            PerStage::Each(values) => values,
        }
    }
}

/// Learning rates of the parameter groups: one number, or [stage 1, stage 2].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct RatesConfig {
    /// LR_φ: the encoder.
    pub encoder: PerStage<f32>,
    /// LR_W: W_L.
    pub labels: PerStage<f32>,
    /// W_C.
    pub clusters: PerStage<f32>,
    /// A; unset: as W_L; 0 leaves the weights of the edges as they start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<PerStage<f32>>,
}

impl Default for RatesConfig {
    fn default() -> Self {
        RatesConfig {
            encoder: PerStage::Both(0.003),
            labels: PerStage::Both(0.008),
            clusters: PerStage::Both(0.008),
            edges: None,
        }
    }
}

/// The learning rates of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRates {
    /// LR_φ.
    pub encoder: f32,
    /// LR_W.
    pub labels: f32,
    /// Of W_C.
    pub clusters: f32,
    /// Of A.
    pub edges: f32,
}

impl RatesConfig {
    /// The rates of stage 1 and of stage 2.
    pub fn by_stage(&self) -> [LearningRates; 2] {
        [0, 1].map(|stage| LearningRates {
            encoder: self.encoder.values()[stage],
            labels: self.labels.values()[stage],
            clusters: self.clusters.values()[stage],
            edges: self.edges.unwrap_or(self.labels).values()[stage],
        })
    }
}

/// One training stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct StageConfig {
    /// Passes over the training points; unset: 2 in stage 1, and in stage 2 as many as the ranker and the final score leave
    /// to the network, 4, or 14 where it stands alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
}

/// A stage as it is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagePlan {
    /// Passes over the training points.
    pub epochs: usize,
    /// Learning rates.
    pub rates: LearningRates,
    /// Points per step.
    pub batch_size: usize,
    /// λ.
    pub lambda: f32,
}

/// Settings that both stages share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Seed of every random stream.
    pub seed: u64,
    /// Points per step: one number, or [stage 1, stage 2].
    pub batch_size: PerStage<usize>,
    /// λ: weight of the shortlist loss (paper: 0.05, for means): one number, or [stage 1, stage 2].
    pub lambda: PerStage<f32>,
    /// Whether the model also keeps encoder, clusters and classifiers of stage 1, to be evaluated and for reports;
    /// answers do not change.
    pub keep_stage1: bool,
    /// How the weights of words and labels are kept after training.
    pub precision: Precision,
    /// Whether labels are also learned from their names, and from what else is known about them; unset: the recipe's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_texts: Option<LabelTexts>,
}

/// Whether labels are learned from their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum LabelTexts {
    /// If the training texts contain more of the names of their labels than of others.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Bits per weight in a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 8 bits: small models, rankings that differ in one answer of a thousand.
    #[default]
    Eight,
    /// 32 bits.
    Full,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            seed: 42,
            batch_size: PerStage::Both(256),
            lambda: PerStage::Both(0.05),
            keep_stage1: false,
            precision: Precision::Eight,
            label_texts: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn a_rate_is_that_of_both_stages_or_one_of_each() {
        let config = Config::from_toml("[rates]\nencoder = [1, 0.5]\nlabels = 2.0\n").unwrap();
        let [first, second] = config.rates.by_stage();
        assert_eq!((first.encoder, second.encoder), (1.0, 0.5));
        assert_eq!((first.labels, second.labels), (2.0, 2.0));
        assert_eq!(second.edges, 2.0);
        assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config);
        for wrong in ["[1.0]", "[1, 2, 3]", "\"fast\""] {
            let error = Config::default().with_value(&format!("rates.labels={wrong}"));
            let message = error.unwrap_err().to_string();
            assert!(message.contains("[stage 1, stage 2]"), "{message}");
        }
    }
}
