//! φ: from points to embeddings.
//!
//! [`Encoder`] is what prediction needs, [`TrainableEncoder`] what training needs besides. Neither mentions a
//! tensor of any framework; the trainer never learns what runs inside. An encoder does not know its optimiser:
//! it hands out its parameters with their gradients.

mod bag;
mod origin;
mod transformer;

pub(crate) use bag::BagEncoder;
pub(crate) use origin::EncoderOrigin;
pub(crate) use transformer::{Architecture, Shape, TransformerEncoder};

use crate::error::Result;
use crate::features::Points;
use crate::matrix::Matrix;

/// Maps points to embeddings.
pub(crate) trait Encoder: Send + Sync {
    /// d: size of an embedding.
    fn dim(&self) -> usize;

    /// Embeds the rows named, without dropout. out: rows×d
    fn encode(&self, points: Points<'_>, rows: &[u32], out: &mut Matrix);

    /// What no training will change about the rows named, for [`Points::embedded`]; none if there is nothing of
    /// that kind.
    fn embed_once(&self, _points: Points<'_>, _rows: &[u32]) -> Option<Matrix> {
        None
    }

    /// What describes it besides its tensors, as text; none if its configuration says it all.
    fn architecture(&self) -> Option<&str> {
        None
    }
}

/// An encoder that can be trained.
pub(crate) trait TrainableEncoder: Encoder {
    /// Embeds the rows named and remembers what [`TrainableEncoder::backward`] needs; `step` seeds its dropout.
    fn forward(&mut self, points: Points<'_>, rows: &[u32], step: StepSeed, out: &mut Matrix);

    /// Adds the gradient of the last forward to the parameters' gradients. gradient: rows×d
    fn backward(&mut self, points: Points<'_>, rows: &[u32], gradient: &Matrix);

    /// Every parameter that is trained with its gradient, in a fixed order.
    fn parameters(&mut self) -> Vec<Parameter<'_>>;

    /// Every parameter as it is, trained or not, for whoever saves it; names and shapes are those of
    /// [`TrainableEncoder::parameters`].
    fn tensors(&self) -> Vec<Tensor<'_>>;

    /// This encoder as one that only predicts.
    fn as_encoder(&self) -> &dyn Encoder;
}

/// A named parameter to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'a> {
    /// Its name in model files.
    pub name: &'a str,
    /// Its shape; row-major.
    pub shape: (usize, usize),
    /// Its values.
    pub values: &'a [f32],
}

/// Hands out tensors by name and shape, as a model file does.
pub(crate) type TakeTensor<'a> = dyn FnMut(&str, (usize, usize)) -> Result<Matrix> + 'a;

/// What random choices of one step are seeded by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSeed {
    /// The seed of the configuration.
    pub seed: u64,
    /// The step since the start of training.
    pub step: u64,
}

/// What an encoder needs, in values of four bytes.
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
    /// Its gradient, which whoever applies it does not need to clear.
    pub gradient: Gradient<'a>,
    /// Whether weight decay applies: to weights, not to biases.
    pub decays: bool,
    /// What the encoder's learning rate is multiplied by.
    pub rate_factor: f32,
}

/// A gradient, of all values or of some rows.
pub(crate) enum Gradient<'a> {
    /// One entry a value.
    Dense(&'a [f32]),
    /// The rows that have any, ascending, and their entries one after the other.
    Rows(&'a [u32], &'a [f32]),
}
