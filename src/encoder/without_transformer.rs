//! The place of transformers in a build without them: there are none.

use crate::config::{Config, no_transformers};
use crate::data::Pretrained;
use crate::encoder::{
    Encoder, EncoderSizes, NamedTensor, Parameter, StepSeed, TakeTensor, TrainableEncoder,
};
use crate::error::Result;
use crate::features::Points;
use crate::matrix::Matrix;

/// A transformer, of which there is none.
#[derive(Clone, Debug)]
pub(crate) enum TransformerEncoder {}

/// Sizes of a transformer.
pub(crate) struct Shape {
    pub(crate) n_words: usize,
    pub(crate) hidden: usize,
}

impl Shape {
    pub(crate) fn flops(&self, _n_tokens: usize) -> f64 {
        0.0
    }
}

impl TransformerEncoder {
    /// Refuses.
    ///
    /// # Errors
    /// Always [`crate::Error::Config`].
    pub(crate) fn from_pretrained(_files: &Pretrained, _config: &Config) -> Result<Self> {
        Err(no_transformers())
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`crate::Error::Config`].
    pub(crate) fn from_tensors(
        _json: &str,
        _config: &Config,
        _take: &mut TakeTensor<'_>,
    ) -> Result<Self> {
        Err(no_transformers())
    }

    pub(crate) fn shape(&self) -> &Shape {
        match *self {}
    }

    pub(crate) fn is_frozen(&self) -> bool {
        match *self {}
    }

    pub(crate) fn sizes(&self, _texts: usize, _tokens: usize, _threads: usize) -> EncoderSizes {
        match *self {}
    }
}

impl Encoder for TransformerEncoder {
    fn dim(&self) -> usize {
        match *self {}
    }

    fn encode(&self, _points: Points<'_>, _rows: &[u32], _out: &mut Matrix) {
        match *self {}
    }
}

impl TrainableEncoder for TransformerEncoder {
    fn forward(&mut self, _points: Points<'_>, _rows: &[u32], _step: StepSeed, _out: &mut Matrix) {
        match *self {}
    }

    fn backward(&mut self, _points: Points<'_>, _rows: &[u32], _gradient: &Matrix) {
        match *self {}
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        match *self {}
    }

    fn tensors(&self) -> Vec<NamedTensor<'_>> {
        match *self {}
    }

    fn as_encoder(&self) -> &dyn Encoder {
        match *self {}
    }

    fn boxed(&self) -> Box<dyn TrainableEncoder> {
        match *self {}
    }
}
