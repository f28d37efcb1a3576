//! Configuration of the encoder φ.

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// The kind of encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncoderKind {
    /// A trainable bag of tf-idf-weighted word embeddings.
    #[default]
    Bag,
    /// A pretrained transformer: BERT, DistilBERT, MiniLM.
    Transformer,
}

/// How a transformer's token states become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// That of the first token (the paper).
    Cls,
    /// Their mean, as sentence encoders are trained with.
    #[default]
    Mean,
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
    /// Directory of the pretrained transformer, as Hugging Face lays it out.
    pub pretrained: Option<String>,
    /// d: size of the embedding; that of a transformer follows from its own size or its projection.
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
    /// Tokens at which a transformer's texts are cut (paper: 128, or 32 for titles).
    pub max_len: usize,
    /// How a transformer's token states become one vector (paper: cls).
    pub pooling: Pooling,
    /// Size to which a transformer's vector is projected; absent: no projection.
    pub projection: Option<usize>,
    /// What the encoder's learning rate is multiplied by for the projection, which starts untrained.
    pub projection_rate: f32,
    /// Layers of a transformer that are trained, from the top; 0: none, texts are embedded once; absent: all.
    pub trained_layers: Option<usize>,
    /// Share of hidden values and attention weights dropped inside a transformer in training.
    pub layer_dropout: f32,
}

impl EncoderConfig {
    /// Checks what only a transformer reads, by the rules for positive numbers and for shares.
    pub(super) fn check_transformer(
        &self,
        positive: impl Fn(&str, f64) -> Result<()>,
        share: impl Fn(&str, f64) -> Result<()>,
    ) -> Result<()> {
        // Two tokens are added to each text.
        positive("encoder.max_len", self.max_len as f64 - 2.0)?;
        positive("encoder.projection", self.projection.unwrap_or(1) as f64)?;
        positive("encoder.projection_rate", self.projection_rate.into())?;
        share("encoder.layer_dropout", self.layer_dropout.into())
    }
}

impl Default for EncoderConfig {
    fn default() -> Self {
        EncoderConfig {
            kind: EncoderKind::Bag,
            pretrained: None,
            dim: 384,
            dropout: 0.5,
            word_dropout: 0.0,
            embedding_scale: 0.1,
            embedding_rate: 6.0,
            activation: Activation::default(),
            residual: false,
            max_len: 128,
            pooling: Pooling::default(),
            projection: None,
            projection_rate: 10.0,
            trained_layers: None,
            layer_dropout: 0.1,
        }
    }
}
