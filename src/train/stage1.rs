//! What a finished training remembers of stage 1: its edges, and everything else where that was asked for.
//!
//! The edges are few and tell how far the learned index moved from the clusters it came from. Encoder and classifiers
//! are as large as the final ones; they are kept by `train.keep_stage1`.

use super::{TrainState, fixed_edges};
use crate::classifiers::LabelClassifiers;
use crate::config::Plan;
use crate::encoder::{EncoderOrigin, TrainableEncoder};
use crate::error::Result;
use crate::index::{Adjacency, ClusterClassifiers, Edges};
use crate::matrix::Matrix;
use crate::model::Model;

/// What is remembered of stage 1.
#[derive(Default)]
pub struct Stage1 {
    /// The one edge of each label, rows numbered as in the final model; none in models that do not know it.
    pub edges: Option<Edges>,
    /// All of it, if it was kept.
    pub whole: Option<Stage1Model>,
}

/// Encoder, index and classifiers as they were after stage 1.
pub struct Stage1Model {
    /// φ.
    pub encoder: Box<dyn TrainableEncoder>,
    /// W_C, fixed edges, and W_L.
    pub model: Model,
}

impl Stage1 {
    /// What a training that has ended remembers.
    pub(super) fn of(state: &mut TrainState, plan: &Plan, origin: &EncoderOrigin) -> Result<Self> {
        let edges = fixed_edges(&state.clustering, &state.model.numbering)?;
        let copies = std::mem::take(&mut state.copies.stage1);
        let mut copies = copies.into_iter();
        let mut next = || copies.next().unwrap_or_default();
        // The order of TrainState::parameters: W_L, b_L, W_C, b_C, the encoder.
        let (label_weights, label_bias) = (next(), next());
        let (cluster_weights, cluster_bias) = (next(), next());
        if label_bias.is_empty() {
            return Ok(Stage1 {
                edges: Some(edges),
                whole: None,
            });
        }
        let mut encoder = origin.encoder(plan);
        for (parameter, copy) in encoder.parameters().into_iter().zip(copies) {
            parameter.values.copy_from_slice(&copy);
        }
        let dim = plan.config().encoder.dim;
        let matrix = |values, n_rows| Matrix::from_vec(values, n_rows, dim);
        let model = Model {
            clusters: ClusterClassifiers {
                weights: matrix(cluster_weights, cluster_bias.len()),
                bias: cluster_bias,
                alpha: plan.config().index.alpha,
            },
            adjacency: Adjacency::fixed(edges.clone()),
            classifiers: LabelClassifiers {
                weights: matrix(label_weights, label_bias.len()).into(),
                bias: label_bias,
                coarse: None,
            },
            numbering: state.model.numbering.clone(),
        };
        Ok(Stage1 {
            edges: Some(edges),
            whole: Some(Stage1Model { encoder, model }),
        })
    }
}
