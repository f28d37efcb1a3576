//! The part of stage 1 that a model keeps, taken at the end of its training.

use super::{TrainState, fixed_edges};
use crate::classifiers::LabelClassifiers;
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::Result;
use crate::index::{Adjacency, ClusterClassifiers};
use crate::matrix::Matrix;
use crate::model::{Model, Stage1, Stage1Model};

/// The part of stage 1 that the model of a finished training keeps.
pub(super) fn take_stage1(
    state: &mut TrainState,
    plan: &Plan,
    origin: &EncoderOrigin,
) -> Result<Stage1> {
    let edges = fixed_edges(&state.clustering, &state.model.numbering)?;
    let mut copies = std::mem::take(&mut state.stage1).into_iter();
    let mut next = || copies.next().unwrap_or_default();
    // The order of `TrainState::parameters`: W_L, b_L, W_C, b_C, the encoder.
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
