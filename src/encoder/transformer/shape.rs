//! The sizes and tensor names of a BERT or DistilBERT, from its `config.json`.

use serde_json::Value;

/// Listed in error messages.
const SUPPORTED: &str =
    "supported are bert (BERT, MiniLM) and distilbert with GELU and absolute positions";

/// A family of transformers, which determines the names of the tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// BERT, and models of its shape, such as MiniLM.
    Bert,
    /// DistilBERT: BERT without token types.
    DistilBert,
}

/// The sizes of a transformer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// The family, which determines the names of the tensors.
    pub architecture: Architecture,
    /// V: word pieces.
    pub n_words: usize,
    /// Positions: the most tokens a text may have.
    pub n_positions: usize,
    /// Token types; every token has the first.
    pub n_types: usize,
    /// h: size of a token's state.
    pub hidden: usize,
    /// Size of the inner layer of the feed-forward block.
    pub inner: usize,
    /// Layers.
    pub n_layers: usize,
    /// Attention heads, which divide h among them.
    pub n_heads: usize,
    /// ε of the layer norms.
    pub epsilon: f32,
}

impl Shape {
    /// Reads `config.json`.
    ///
    /// # Errors
    /// A phrase for what was found, and one for what is supported.
    pub(crate) fn from_json(text: &str) -> Result<Shape, String> {
        let config: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let kind = config["model_type"].as_str().unwrap_or("(none)");
        let architecture = match kind {
            "bert" => Architecture::Bert,
            "distilbert" => Architecture::DistilBert,
            _ => return Err(format!("model_type is {kind}: {SUPPORTED}")),
        };
        let is_bert = architecture == Architecture::Bert;
        let name =
            |bert: &'static str, distilbert: &'static str| if is_bert { bert } else { distilbert };
        let number = |key: &str| match config[key].as_u64() {
            Some(number @ 1..=1_000_000) => Ok(number as usize),
            _ => Err(format!(
                "{key} is {}, expected a positive number",
                config[key]
            )),
        };
        let activation = config[name("hidden_act", "activation")]
            .as_str()
            .unwrap_or("gelu");
        let positions = config["position_embedding_type"]
            .as_str()
            .unwrap_or("absolute");
        if activation != "gelu" || positions != "absolute" {
            return Err(format!(
                "it has {activation} and {positions} positions: {SUPPORTED}"
            ));
        }
        let shape = Shape {
            architecture,
            n_words: number("vocab_size")?,
            n_positions: number("max_position_embeddings")?,
            n_types: if is_bert {
                number("type_vocab_size")?
            } else {
                0
            },
            hidden: number(name("hidden_size", "dim"))?,
            inner: number(name("intermediate_size", "hidden_dim"))?,
            n_layers: number(name("num_hidden_layers", "n_layers"))?,
            n_heads: number(name("num_attention_heads", "n_heads"))?,
            epsilon: config["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32,
        };
        if !shape.hidden.is_multiple_of(shape.n_heads) {
            return Err(format!(
                "a hidden size of {} cannot be divided among {} heads",
                shape.hidden, shape.n_heads
            ));
        }
        Ok(shape)
    }

    /// Number of values of all weights.
    pub(crate) fn n_parameters(&self) -> usize {
        let rows = self.n_words + self.n_positions + self.n_types + 2;
        rows * self.hidden + self.n_layers * self.n_layer_parameters()
    }

    /// Number of values of the weights of one layer.
    pub(crate) fn n_layer_parameters(&self) -> usize {
        let (h, inner) = (self.hidden, self.inner);
        4 * h * h + 2 * h * inner + 9 * h + inner
    }

    /// Multiplications and additions of the matrix products in the forward pass over a text of `n_tokens`.
    pub(crate) fn flops(&self, n_tokens: usize) -> f64 {
        let (h, inner, n) = (self.hidden as f64, self.inner as f64, n_tokens as f64);
        let linear = 2.0 * n * (4.0 * h * h + 2.0 * h * inner);
        let attention = 4.0 * n * n * h;
        self.n_layers as f64 * (linear + attention)
    }
}

impl Architecture {
    /// An optional prefix of all tensor names.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Architecture::Bert => "bert.",
            Architecture::DistilBert => "distilbert.",
        }
    }

    /// The name of a part of a layer.
    pub(super) fn of_layer(self, layer_idx: usize, part: LayerPart) -> String {
        let (stack, name) = match (self, part) {
            (Architecture::Bert, part) => {
                let name = match part {
                    LayerPart::Query => "attention.self.query",
                    LayerPart::Key => "attention.self.key",
                    LayerPart::Value => "attention.self.value",
                    LayerPart::Attention => "attention.output.dense",
                    LayerPart::AttentionNorm => "attention.output.LayerNorm",
                    LayerPart::Inner => "intermediate.dense",
                    LayerPart::Outer => "output.dense",
                    LayerPart::OutputNorm => "output.LayerNorm",
                };
                ("encoder", name)
            }
            (Architecture::DistilBert, part) => {
                let name = match part {
                    LayerPart::Query => "attention.q_lin",
                    LayerPart::Key => "attention.k_lin",
                    LayerPart::Value => "attention.v_lin",
                    LayerPart::Attention => "attention.out_lin",
                    LayerPart::AttentionNorm => "sa_layer_norm",
                    LayerPart::Inner => "ffn.lin1",
                    LayerPart::Outer => "ffn.lin2",
                    LayerPart::OutputNorm => "output_layer_norm",
                };
                ("transformer", name)
            }
        };
        format!("{stack}.layer.{layer_idx}.{name}")
    }
}

/// The parts of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum LayerPart {
    Query,
    Key,
    Value,
    Attention,
    AttentionNorm,
    Inner,
    Outer,
    OutputNorm,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_configs_are_errors_that_say_what_is_supported() {
        for (config, expected) in [
            ("{}", "model_type is (none)"),
            (
                r#"{"model_type": "roberta"}"#,
                "model_type is roberta: supported are bert",
            ),
            (
                r#"{"model_type": "bert", "hidden_act": "relu"}"#,
                "it has relu",
            ),
            (
                r#"{"model_type": "bert", "position_embedding_type": "relative_key"}"#,
                "relative_key positions",
            ),
            (
                r#"{"model_type": "distilbert", "vocab_size": 0}"#,
                "vocab_size is 0",
            ),
            ("[", "it is not JSON"),
        ] {
            let error = Shape::from_json(config).unwrap_err();
            assert!(error.contains(expected), "{config}: {error}");
        }
    }
}
