//! Configuration of the loss and of the two training stages.

use serde::{Deserialize, Serialize};

/// How the losses of a batch are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Summed over the labels of a point, averaged over the points (the paper).
    #[default]
    Sum,
    /// Averaged over all shortlisted labels and over all positives of the batch (the released code).
    Mean,
}

/// Which positives of a point are in L_c.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positives {
    /// All that the search reached: a label learns from every point that has it.
    #[default]
    All,
    /// Those among the K best (the paper): a positive that is cut has L_s alone.
    Shortlisted,
}

/// The loss L_c + λ L_s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// How the losses of a batch are combined; λ weighs the two sums or the two means alike.
    pub reduction: Reduction,
    /// λ: weight of the shortlist loss (paper: 0.05, for mean reduction).
    pub lambda: f32,
    /// Which positives of a point are in L_c.
    pub positives: Positives,
}

impl Default for LossConfig {
    fn default() -> Self {
        LossConfig {
            reduction: Reduction::default(),
            lambda: 0.05,
            positives: Positives::default(),
        }
    }
}

/// Learning rates of the parameter groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearningRates {
    /// LR_φ: the encoder.
    pub encoder: f32,
    /// LR_W: W_L.
    pub labels: f32,
    /// W_C.
    pub clusters: f32,
    /// A; unset: as W_L; 0 leaves the weights of the edges as they start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<f32>,
}

impl Default for LearningRates {
    fn default() -> Self {
        LearningRates {
            encoder: 0.003,
            labels: 0.008,
            clusters: 0.008,
            edges: None,
        }
    }
}

/// One training stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StageConfig {
    /// Passes over the training points.
    pub epochs: usize,
    /// Learning rates.
    pub rates: LearningRates,
}

impl Default for StageConfig {
    fn default() -> Self {
        StageConfig {
            epochs: 2,
            rates: LearningRates::default(),
        }
    }
}

impl StageConfig {
    /// The defaults of stage 2.
    pub(crate) fn stage2() -> Self {
        StageConfig {
            epochs: 14,
            ..StageConfig::default()
        }
    }
}

/// What both stages share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Seed of every random stream.
    pub seed: u64,
    /// Points per step.
    pub batch_size: usize,
    /// Whether the model also keeps encoder, clusters and classifiers of stage 1, for `evaluate --stage stage1` and
    /// reports; answers do not change.
    pub keep_stage1: bool,
    /// How W_L is stored.
    pub label_precision: LabelPrecision,
    /// Whether labels are also learned from their names, and from what else is known about them.
    pub label_texts: LabelTexts,
}

/// Whether labels are learned from their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelTexts {
    /// If the training texts contain more of the names of their labels than of others.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Bits per weight of W_L in a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelPrecision {
    /// 32 bits.
    #[default]
    Full,
    /// 16 bits: smaller models, scores that differ in the fourth digit.
    Half,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            seed: 42,
            batch_size: 256,
            keep_stage1: false,
            label_precision: LabelPrecision::Full,
            label_texts: LabelTexts::default(),
        }
    }
}
