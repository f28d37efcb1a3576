//! φ: from points to embeddings.
//!
//! Prediction needs an [`Encoder`], training a [`TrainableEncoder`]. Neither exposes the tensors of a framework, so
//! the trainer does not depend on their implementation. An encoder does not know its optimiser: it exposes its parameters
//! with their gradients.

mod bag;
mod origin;
mod outside;
#[cfg(feature = "transformer")]
mod transformer;
#[cfg(not(feature = "transformer"))]
#[path = "without_transformer.rs"]
mod transformer;

pub(crate) use bag::BagEncoder;
pub(crate) use origin::EncoderOrigin;
pub(crate) use outside::{Outside, Standard};
pub(crate) use transformer::TransformerEncoder;
#[cfg(feature = "transformer")]
pub(crate) use transformer::{Architecture, Shape};

use crate::config::Precision;
use crate::error::Result;
use crate::features::Points;
use crate::matrix::{EightBits, Matrix, WeightRows};

/// Maps points to embeddings.
pub(crate) trait Encoder: Send + Sync {
    /// d: size of an embedding.
    fn dim(&self) -> usize;

    /// Embeds these rows, without dropout. out: rows×d
    fn encode(&self, points: Points<'_>, rows: &[u32], out: &mut Matrix);

    /// The part of these rows' embeddings that training does not change, for [`Points::embedded`]; `None` if there is
    /// no such part.
    fn embed_once(&self, _points: Points<'_>, _rows: &[u32]) -> Option<Matrix> {
        None
    }

    /// Its architecture as text; `None` if the configuration determines it.
    fn architecture(&self) -> Option<&str> {
        None
    }
}

/// An encoder that can be trained.
pub(crate) trait TrainableEncoder: Encoder {
    /// Embeds these rows and keeps the values that [`TrainableEncoder::backward`] needs; `step` seeds the dropout.
    fn forward(&mut self, points: Points<'_>, rows: &[u32], step: StepSeed, out: &mut Matrix);

    /// Adds the gradient of the last forward to the parameters' gradients. gradient: rows×d
    fn backward(&mut self, points: Points<'_>, rows: &[u32], gradient: &Matrix);

    /// Every trained parameter with its gradient, in a fixed order.
    fn parameters(&mut self) -> Vec<Parameter<'_>>;

    /// Every parameter, trained or not, for saving; names and shapes are those of
    /// [`TrainableEncoder::parameters`].
    fn tensors(&self) -> Vec<NamedTensor<'_>>;

    /// Keeps the weights of words in this precision, once they no longer change.
    fn narrow(&mut self, _precision: Precision) {}

    /// This encoder as one that only predicts.
    fn as_encoder(&self) -> &dyn Encoder;

    /// A copy.
    fn boxed(&self) -> Box<dyn TrainableEncoder>;
}

impl Clone for Box<dyn TrainableEncoder> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// A named parameter, read-only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedTensor<'a> {
    /// Its name in model files.
    pub name: &'a str,
    /// Its shape; row-major.
    pub shape: (usize, usize),
    /// Its values.
    pub values: TensorValues<'a>,
}

/// The values of a [`NamedTensor`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum TensorValues<'a> {
    /// 32 bits each.
    Full(&'a [f32]),
    /// 8 bits each.
    Eight(&'a EightBits),
}

#[cfg(all(test, feature = "transformer"))]
impl TensorValues<'_> {
    /// The values in 32 bits.
    pub(crate) fn to_vec(self) -> Vec<f32> {
        match self {
            TensorValues::Full(values) => values.to_vec(),
            TensorValues::Eight(rows) => rows.widened().values().to_vec(),
        }
    }
}

/// Returns a tensor by its name, number of rows and number of columns.
pub(crate) type TakeTensor<'a> = dyn FnMut(&str, usize, usize) -> Result<WeightRows> + 'a;

/// Seeds the random choices of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSeed {
    /// The seed of the configuration.
    pub seed: u64,
    /// The step since the start of training.
    pub step: u64,
}

/// Memory of an encoder, in values of four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EncoderSizes {
    /// Parameters.
    pub(crate) n_parameters: usize,
    /// Those that are trained.
    pub(crate) n_trained: usize,
    /// Buffers of a training step, gradients included.
    pub(crate) n_step: usize,
    /// Embeddings computed once, before training.
    pub(crate) n_embedded: usize,
}

/// A parameter and its gradient.
pub(crate) struct Parameter<'a> {
    /// Its name in model files.
    pub name: &'a str,
    /// Its shape; row-major.
    pub shape: (usize, usize),
    /// Its values.
    pub values: &'a mut [f32],
    /// Its gradient; the optimiser need not clear it.
    pub gradient: Gradient<'a>,
    /// Whether weight decay applies (to weights, not to biases).
    pub decays: bool,
    /// Multiplies the encoder's learning rate.
    pub rate_factor: f32,
}

/// A gradient, of all values or of some rows.
pub(crate) enum Gradient<'a> {
    /// One entry per value.
    Dense(&'a [f32]),
    /// The rows with a gradient, ascending, and their entries row by row.
    Rows(&'a [u32], &'a [f32]),
}
