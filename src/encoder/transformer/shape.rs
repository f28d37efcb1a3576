//! The sizes and names of a BERT or DistilBERT, as its `config.json` tells them.

use serde_json::Value;

/// What is supported, for error messages.
const SUPPORTED: &str =
    "supported are bert (BERT, MiniLM) and distilbert with GELU and absolute positions";

/// Which names the tensors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// BERT, and what has its shape, such as MiniLM.
    Bert,
    /// DistilBERT: BERT without token types.
    DistilBert,
}

/// The sizes of a transformer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Which names the tensors have.
    pub architecture: Architecture,
    /// V: word pieces.
    pub n_words: usize,
    /// Positions: no text may have more tokens.
    pub n_positions: usize,
    /// Token types; every token is of the first.
    pub n_types: usize,
    /// h: size of a token's state.
    pub hidden: usize,
    /// Size of the inner layer of the feed-forward block.
    pub inner: usize,
    /// Layers.
    pub n_layers: usize,
    /// Attention heads, among which h is divided.
    pub n_heads: usize,
    /// ε of the layer norms.
    pub epsilon: f32,
}

impl Shape {
    /// Reads `config.json`.
    ///
    /// # Errors
    /// What was found and what is supported, in words.
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
        let name = |bert: &'static str, distilbert: &'static str| match is_bert {
            true => bert,
            false => distilbert,
        };
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
        match shape.hidden.is_multiple_of(shape.n_heads) {
            true => Ok(shape),
            false => Err(format!(
                "a hidden size of {} cannot be divided among {} heads",
                shape.hidden, shape.n_heads
            )),
        }
    }

    /// Values of all weights together.
    pub(crate) fn n_parameters(&self) -> usize {
        let rows = self.n_words + self.n_positions + self.n_types + 2;
        rows * self.hidden + self.n_layers * self.n_layer_parameters()
    }

    /// Values of the weights of one layer.
    pub(crate) fn n_layer_parameters(&self) -> usize {
        let (h, inner) = (self.hidden, self.inner);
        4 * h * h + 2 * h * inner + 9 * h + inner
    }

    /// Multiplications and additions of the forward pass over a text of this many tokens; of the matrix products alone.
    pub(crate) fn flops(&self, n_tokens: usize) -> f64 {
        let (h, inner, n) = (self.hidden as f64, self.inner as f64, n_tokens as f64);
        let linear = 2.0 * n * (4.0 * h * h + 2.0 * h * inner);
        let attention = 4.0 * n * n * h;
        self.n_layers as f64 * (linear + attention)
    }
}

impl Architecture {
    /// What the names of all tensors may begin with.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Architecture::Bert => "bert.",
            Architecture::DistilBert => "distilbert.",
        }
    }

    /// The name of a part of a layer.
    pub(super) fn of_layer(self, layer_idx: usize, part: Part) -> String {
        let (stack, name) = match (self, part) {
            (Architecture::Bert, part) => {
                let name = match part {
                    Part::Query => "attention.self.query",
                    Part::Key => "attention.self.key",
                    Part::Value => "attention.self.value",
                    Part::Attention => "attention.output.dense",
                    Part::AttentionNorm => "attention.output.LayerNorm",
                    Part::Inner => "intermediate.dense",
                    Part::Outer => "output.dense",
                    Part::OutputNorm => "output.LayerNorm",
                };
                ("encoder", name)
            }
            (Architecture::DistilBert, part) => {
                let name = match part {
                    Part::Query => "attention.q_lin",
                    Part::Key => "attention.k_lin",
                    Part::Value => "attention.v_lin",
                    Part::Attention => "attention.out_lin",
                    Part::AttentionNorm => "sa_layer_norm",
                    Part::Inner => "ffn.lin1",
                    Part::Outer => "ffn.lin2",
                    Part::OutputNorm => "output_layer_norm",
                };
                ("transformer", name)
            }
        };
        format!("{stack}.layer.{layer_idx}.{name}")
    }
}

/// The parts of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
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
    fn what_is_not_supported_is_named_with_what_is() {
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
