//! Settings of the encoder φ.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The kind of encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum EncoderKind {
    /// A trainable bag of tf-idf-weighted word embeddings.
    #[default]
    Bag,
    /// A pretrained transformer: BERT, DistilBERT, MiniLM.
    Transformer,
}

/// How texts become embeddings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EncoderConfig {
    /// The kind of encoder.
    pub kind: EncoderKind,
    /// Directory of the pretrained transformer, as Hugging Face lays it out.
    pub pretrained: Option<String>,
    /// d: size of the embedding of a bag; a transformer has its own, or that of its projection.
    pub dim: usize,
    /// Share of the embedding's entries dropped in training.
    pub dropout: f32,
    /// Tokens after which a transformer's texts are cut (paper: 128, or 32 for titles).
    pub max_len: usize,
    /// Size to which a transformer's vector is projected; unset: no projection.
    pub projection: Option<usize>,
    /// Layers of a transformer that are trained, from the top; 0: none, texts are embedded once; unset: all.
    pub trained_layers: Option<usize>,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        EncoderConfig {
            kind: EncoderKind::Bag,
            pretrained: None,
            dim: 384,
            dropout: 0.5,
            max_len: 128,
            projection: None,
            trained_layers: None,
        }
    }
}
