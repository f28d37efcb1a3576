//! The parts of stage 1 that a model keeps: its edges, and with `train.keep_stage1` everything.
//!
//! The edges show how far the learned index moved from the clusters it came from.

use super::Model;
use crate::encoder::TrainableEncoder;
use crate::index::Edges;

/// The parts of stage 1 that a model keeps; no answer of the final model needs them.
#[derive(Clone, Default)]
pub(crate) struct Stage1 {
    /// The one edge of each label, numbered as in the final model.
    pub edges: Option<Edges>,
    /// The whole model after stage 1, if it was kept.
    pub whole: Option<Stage1Model>,
}

/// Encoder, index and classifiers after stage 1.
#[derive(Clone)]
pub(crate) struct Stage1Model {
    /// φ.
    pub encoder: Box<dyn TrainableEncoder>,
    /// W_C, fixed edges, and W_L.
    pub model: Model,
}
