//! Configuration of the encoder φ.

use serde::{Deserialize, Serialize};

/// The kind of encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncoderKind {
    /// A trainable bag of tf-idf-weighted word embeddings.
    #[default]
    Bag,
}

/// What the sum of a bag of words passes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Nothing: embeddings may have either sign.
    #[default]
    Linear,
    /// Negative entries become zero.
    Relu,
}

impl Activation {
    /// f(x).
    #[inline]
    pub fn of(self, x: f32) -> f32 {
        match self {
            Activation::Linear => x,
            Activation::Relu => x.max(0.0),
        }
    }

    /// f'(x), from f(x).
    #[inline]
    pub fn slope(self, value: f32) -> f32 {
        match self {
            Activation::Relu if value <= 0.0 => 0.0,
            _ => 1.0,
        }
    }
}

/// How texts become embeddings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EncoderConfig {
    /// The kind of encoder.
    pub kind: EncoderKind,
    /// d: size of the embedding.
    pub dim: usize,
    /// Share of the embedding's entries dropped in training (released code: 0.5).
    pub dropout: f32,
    /// Share of a text's words dropped in training.
    pub word_dropout: f32,
    /// Standard deviation that word embeddings start with.
    pub embedding_scale: f32,
    /// What the encoder's learning rate is multiplied by for word embeddings, whose rows are seldom touched.
    pub embedding_rate: f32,
    /// What the sum of a bag of words passes through.
    pub activation: Activation,
    /// Whether a residual block follows the bag.
    pub residual: bool,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        EncoderConfig {
            kind: EncoderKind::Bag,
            dim: 384,
            dropout: 0.5,
            word_dropout: 0.0,
            embedding_scale: 0.1,
            embedding_rate: 6.0,
            activation: Activation::default(),
            residual: false,
        }
    }
}
