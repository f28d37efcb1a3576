//! Configuration of the loss and of the two training stages.

use serde::{Deserialize, Serialize};

/// How the losses of a batch are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Summed over a point's labels, averaged over the points (the paper).
    #[default]
    Sum,
    /// Averaged over all shortlisted labels and over all positives of the batch (the released code).
    Mean,
}

/// The loss L_c + λ L_s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LossConfig {
    /// How the losses of a batch are combined; λ weighs the two sums or the two means alike.
    pub reduction: Reduction,
}

/// What stage 2 starts W_L from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelInit {
    /// Random rows, as the released code does.
    Reset,
    /// The rows that stage 1 trained.
    #[default]
    Warm,
}

/// Learning rates of the three parameter groups.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearningRates {
    /// LR_φ: the encoder.
    pub encoder: f32,
    /// LR_W: W_L and A.
    pub labels: f32,
    /// W_C.
    pub clusters: f32,
}

impl Default for LearningRates {
    fn default() -> Self {
        LearningRates {
            encoder: 0.003,
            labels: 0.008,
            clusters: 0.008,
        }
    }
}

/// One training stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StageConfig {
    /// Passes over the training points.
    pub epochs: usize,
    /// Points a step.
    pub batch_size: usize,
    /// λ: weight of the shortlist loss (paper: 0.05, grid-searched for mean reduction).
    pub lambda: f32,
    /// Learning rates.
    pub rates: LearningRates,
    /// What W_L starts from; read by stage 2 only.
    pub label_classifiers: LabelInit,
}

impl Default for StageConfig {
    fn default() -> Self {
        StageConfig {
            epochs: 2,
            batch_size: 256,
            lambda: 0.05,
            rates: LearningRates::default(),
            label_classifiers: LabelInit::default(),
        }
    }
}

impl StageConfig {
    /// The defaults of stage 2.
    pub fn stage2() -> Self {
        StageConfig {
            epochs: 14,
            ..StageConfig::default()
        }
    }
}

/// What both stages share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Seed of every random stream.
    pub seed: u64,
    /// Paths with a lower shortlist score ŷ are not scored in training (positives always are): a negative's
    /// gradient is at most ŷ. 0 scores all.
    pub score_floor: f32,
    /// A negative whose |∂L/∂z| and |∂L/∂log ŷ| are both lower passes no gradient; 0 lets all pass.
    pub gradient_floor: f32,
    /// What U(±√(6/d)), from which W_L starts, is multiplied by.
    pub label_scale: f32,
    /// What b_L starts from (released code: random in (0, 1)).
    pub label_bias: f32,
    /// Points held out to watch the training; 0 holds out none.
    pub validation_points: usize,
    /// Epochs between validations.
    pub validate_every: usize,
    /// Whether the epoch with the best validation P@1 is kept instead of the last.
    pub keep_best: bool,
    /// Whether the model keeps encoder, clusters and classifiers as they were after stage 1 beside the final ones, for
    /// `evaluate --stage stage1` and reports; answers do not change.
    pub keep_stage1: bool,
    /// How W_L is kept once it is trained.
    pub label_precision: LabelPrecision,
}

/// Bits of a label classifier's weights in a model.
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
            score_floor: 1e-4,
            gradient_floor: 1e-3,
            label_scale: 0.1,
            label_bias: -4.0,
            validation_points: 0,
            validate_every: 2,
            keep_best: false,
            keep_stage1: false,
            label_precision: LabelPrecision::Full,
        }
    }
}
