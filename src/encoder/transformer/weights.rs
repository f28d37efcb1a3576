//! The weights of a transformer, each with its gradient and the names it has in files.

use super::shape::{Architecture, LayerPart, Shape};
use crate::encoder::{Gradient, NamedTensor, Parameter, TakeTensor, TensorValues};
use crate::error::Result;
use crate::kernels::NormScale;
use crate::matrix::{Matrix, Output, View, product};
use crate::random::Random;

/// A parameter: one tensor, or several of the same shape stacked, and its gradient.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    names: Vec<String>,
    pub(super) values: Matrix,
    /// Empty if it is not trained.
    pub(super) gradient: Vec<f32>,
    decays: bool,
}

/// y = W x + b, or several such maps whose outputs are concatenated.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    /// out×in
    pub(super) weight: Weight,
    pub(super) bias: Weight,
}

/// γ and β of a layer norm.
#[derive(Clone, Debug)]
pub(super) struct LayerNorm {
    pub(super) gamma: Weight,
    pub(super) beta: Weight,
    pub(super) epsilon: f32,
}

/// One layer.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// Queries, keys and values in one product.
    pub(super) qkv: Linear,
    pub(super) attention: Linear,
    pub(super) attention_norm: LayerNorm,
    pub(super) inner: Linear,
    pub(super) outer: Linear,
    pub(super) output_norm: LayerNorm,
}

/// All weights.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// V×h
    pub(super) words: Weight,
    pub(super) positions: Weight,
    pub(super) types: Option<Weight>,
    pub(super) norm: LayerNorm,
    pub(super) layers: Vec<Layer>,
}

impl Weights {
    /// Weights from the tensors that `take` returns.
    ///
    /// # Errors
    /// Whatever `take` returns.
    pub(super) fn new(shape: &Shape, take: &mut TakeTensor<'_>) -> Result<Self> {
        let h = shape.hidden;
        let mut table = |name: &str, n_rows| {
            let name = format!("embeddings.{name}_embeddings.weight");
            Weight::take(vec![name], n_rows, h, true, take)
        };
        Ok(Weights {
            words: table("word", shape.n_words)?,
            positions: table("position", shape.n_positions)?,
            types: match shape.n_types {
                0 => None,
                n_types => Some(table("token_type", n_types)?),
            },
            norm: LayerNorm::take("embeddings.LayerNorm".into(), shape, take)?,
            layers: (0..shape.n_layers)
                .map(|layer_idx| Layer::take(layer_idx, shape, take))
                .collect::<Result<_>>()?,
        })
    }

    /// Random weights, as BERT is initialised.
    pub(super) fn random(shape: &Shape, seed: u64) -> Self {
        let mut take = |name: &str, n_rows: usize, n_cols: usize| {
            let mut random = Random::new(seed, name, 0);
            let is_gain = name.contains("orm.weight");
            let is_bias = name.ends_with("bias");
            let mut value = || {
                if is_gain {
                    1.0
                } else if is_bias {
                    0.0
                } else {
                    0.02 * random.normal()
                }
            };
            let values = (0..n_rows * n_cols).map(|_| value()).collect();
            Ok(Matrix::from_vec(values, n_rows, n_cols).into())
        };
        Weights::new(shape, &mut take).expect("random tensors have any shape")
    }

    /// Every weight in a fixed order, embeddings first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Weight> {
        let embeddings = [&self.words, &self.positions].into_iter();
        let norm = [&self.norm.gamma, &self.norm.beta];
        let layers = self.layers.iter().flat_map(Layer::all);
        embeddings.chain(&self.types).chain(norm).chain(layers)
    }

    /// The embeddings and their norm, without the words.
    pub(super) fn dense_embeddings_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        let Weights {
            positions,
            types,
            norm,
            ..
        } = self;
        let norm = [&mut norm.gamma, &mut norm.beta];
        std::iter::once(positions).chain(types).chain(norm)
    }
}

impl Layer {
    fn take(layer_idx: usize, shape: &Shape, take: &mut TakeTensor<'_>) -> Result<Self> {
        let (h, inner) = (shape.hidden, shape.inner);
        let name = |part| shape.architecture.of_layer(layer_idx, part);
        let qkv = [LayerPart::Query, LayerPart::Key, LayerPart::Value].map(name);
        Ok(Layer {
            qkv: Linear::take(&qkv, h, h, take)?,
            attention: Linear::take(&[name(LayerPart::Attention)], h, h, take)?,
            attention_norm: LayerNorm::take(name(LayerPart::AttentionNorm), shape, take)?,
            inner: Linear::take(&[name(LayerPart::Inner)], inner, h, take)?,
            outer: Linear::take(&[name(LayerPart::Outer)], h, inner, take)?,
            output_norm: LayerNorm::take(name(LayerPart::OutputNorm), shape, take)?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Weight> {
        let linear = [&self.qkv, &self.attention, &self.inner, &self.outer]
            .into_iter()
            .flat_map(|l| [&l.weight, &l.bias]);
        let norms = [&self.attention_norm, &self.output_norm]
            .into_iter()
            .flat_map(|n| [&n.gamma, &n.beta]);
        linear.chain(norms)
    }

    /// Every weight, in the order of [`Layer::all`].
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        let Layer {
            qkv,
            attention,
            attention_norm,
            inner,
            outer,
            output_norm,
        } = self;
        let linear = [qkv, attention, inner, outer]
            .into_iter()
            .flat_map(|l| [&mut l.weight, &mut l.bias]);
        let norms = [attention_norm, output_norm]
            .into_iter()
            .flat_map(|n| [&mut n.gamma, &mut n.beta]);
        linear.chain(norms)
    }
}

impl Linear {
    /// Linear maps of the same shape, stacked.
    pub(super) fn take(
        names: &[String],
        n_out: usize,
        n_in: usize,
        take: &mut TakeTensor<'_>,
    ) -> Result<Self> {
        let named = |what: &str| names.iter().map(|name| format!("{name}.{what}")).collect();
        let n = names.len();
        Ok(Linear {
            weight: Weight::take(named("weight"), n * n_out, n_in, true, take)?,
            bias: Weight::take(named("bias"), n, n_out, false, take)?,
        })
    }

    fn n_in(&self) -> usize {
        self.weight.values.n_cols()
    }

    fn n_out(&self) -> usize {
        self.weight.values.n_rows()
    }

    /// Y = X Wᵀ, without the bias. x: T×in, out: T×out
    pub(super) fn apply(&self, x: &[f32], out: &mut [f32]) {
        let (n_in, n_out) = (self.n_in(), self.n_out());
        let shape = [x.len() / n_in, n_out, n_in];
        let weight = View::transposed(self.weight.values.values(), n_in);
        product(shape, View::rows(x, n_in), weight, out, Output::Replace);
    }

    /// ∂L/∂X = ∂L/∂Y W. d_out: T×out, d_in: T×in
    pub(super) fn backward(&self, d_out: &[f32], d_in: &mut [f32], output: Output) {
        let (n_in, n_out) = (self.n_in(), self.n_out());
        let shape = [d_out.len() / n_out, n_in, n_out];
        let weight = View::rows(self.weight.values.values(), n_in);
        product(shape, View::rows(d_out, n_out), weight, d_in, output);
    }
}

impl LayerNorm {
    fn take(name: String, shape: &Shape, take: &mut TakeTensor<'_>) -> Result<Self> {
        let h = shape.hidden;
        let mut one = |what: &str| Weight::take(vec![format!("{name}.{what}")], 1, h, false, take);
        Ok(LayerNorm {
            gamma: one("weight")?,
            beta: one("bias")?,
            epsilon: shape.epsilon,
        })
    }

    /// γ, β and ε, for the kernel.
    pub(super) fn scale(&self) -> NormScale<'_> {
        NormScale {
            gamma: self.gamma.values.values(),
            beta: self.beta.values.values(),
            epsilon: self.epsilon,
        }
    }
}

impl Weight {
    fn take(
        names: Vec<String>,
        n_rows: usize,
        n_cols: usize,
        decays: bool,
        take: &mut TakeTensor<'_>,
    ) -> Result<Self> {
        let rows_per_tensor = n_rows / names.len();
        let mut take = |name: &str| Ok(take(name, rows_per_tensor, n_cols)?.into_full());
        let mut values: Matrix = take(&names[0])?;
        if names.len() > 1 {
            let mut joined = values.values().to_vec();
            for name in &names[1..] {
                joined.extend_from_slice(take(name)?.values());
            }
            values = Matrix::from_vec(joined, n_rows, n_cols);
        }
        Ok(Weight {
            names,
            values,
            gradient: Vec::new(),
            decays,
        })
    }

    /// Allocates the gradient.
    pub(super) fn train(&mut self) {
        self.gradient.resize(self.values.values().len(), 0.0);
    }

    fn tensor_shape(&self) -> (usize, usize) {
        let n_rows = self.values.n_rows() / self.names.len();
        (n_rows, self.values.n_cols())
    }

    /// Its tensors.
    pub(super) fn tensors(&self) -> impl Iterator<Item = NamedTensor<'_>> {
        let shape = self.tensor_shape();
        let parts = self.values.values().chunks_exact(shape.0 * shape.1);
        self.names
            .iter()
            .zip(parts)
            .map(move |(name, values)| NamedTensor {
                name,
                shape,
                values: TensorValues::Full(values),
            })
    }

    /// Its tensors with their gradients.
    pub(super) fn parameters(&mut self, rate_factor: f32) -> impl Iterator<Item = Parameter<'_>> {
        let shape = self.tensor_shape();
        let n_values = shape.0 * shape.1;
        let parts = self.values.values_mut().chunks_exact_mut(n_values);
        let gradients = self.gradient.chunks_exact(n_values);
        let decays = self.decays;
        let named = self.names.iter().zip(parts.zip(gradients));
        named.map(move |(name, (values, gradient))| Parameter {
            name,
            shape,
            values,
            gradient: Gradient::Dense(gradient),
            decays,
            rate_factor,
        })
    }

    /// This weight as a parameter of which only some rows have a gradient.
    pub(super) fn sparse_parameter<'a>(
        &'a mut self,
        rows: &'a [u32],
        gradients: &'a [f32],
        rate_factor: f32,
    ) -> Parameter<'a> {
        Parameter {
            name: &self.names[0],
            shape: self.tensor_shape(),
            values: self.values.values_mut(),
            gradient: Gradient::Rows(rows, gradients),
            decays: self.decays,
            rate_factor,
        }
    }
}

/// The name of the same tensor in older files.
pub(super) fn older_name(name: &str) -> Option<String> {
    let stem = name.strip_suffix("LayerNorm.weight");
    let gamma = stem.map(|stem| format!("{stem}LayerNorm.gamma"));
    let stem = name.strip_suffix("LayerNorm.bias");
    gamma.or_else(|| stem.map(|stem| format!("{stem}LayerNorm.beta")))
}

/// The names a tensor may have in a file.
pub(super) fn candidates(architecture: Architecture, name: &str) -> Vec<String> {
    let names = std::iter::once(name.to_owned()).chain(older_name(name));
    let both = names.flat_map(|name| [format!("{}{name}", architecture.prefix()), name]);
    both.collect()
}
