//! Rankers and calibration as tensors.

use bytemuck::allocation::cast_vec;

use super::sparse::{StepOf, StoredSparse, read_sparse};
use crate::calibration::{DecisionTree, Isotonic, TreeNode};
use crate::config::RankerLoss;
use crate::error::Result;
use crate::ids::ClusterId;
use crate::matrix::Matrix;
use crate::predict::EnsembleCalibration;
use crate::ranker::{ClusterTree, ClusterTreeParts, Ranker, RankerParts};
use crate::store::format::tensors::{Tensor, TensorFile, Values};

/// Features of a calibration tree: p, q, p·q and f.
const N_TREE_FEATURES: usize = 4;

/// The parts of a ranker that are not held as they are stored.
pub(crate) struct StoredRanker<'a> {
    words: StoredSparse<'a>,
    clusters: Option<StoredClusters<'a>>,
}

struct StoredClusters<'a> {
    weights: StoredSparse<'a>,
    /// 0 is none, otherwise one more than the cluster.
    parents: Vec<u32>,
}

impl<'a> From<&'a Ranker> for StoredRanker<'a> {
    fn from(ranker: &'a Ranker) -> Self {
        let clusters = ranker.clusters().map(|tree| {
            let place = |parent: &Option<ClusterId>| parent.map_or(0, |parent| parent.0 + 1);
            StoredClusters {
                weights: StoredSparse::new(tree.weights(), tree.steps(), StepOf::Column),
                parents: tree.parents().iter().map(place).collect(),
            }
        });
        StoredRanker {
            words: StoredSparse::new(&ranker.words(), ranker.steps(), StepOf::Row),
            clusters,
        }
    }
}

/// Writes a ranker.
pub(crate) fn ranker_tensors<'a>(
    ranker: &'a Ranker,
    stored: &'a StoredRanker<'a>,
) -> Vec<Tensor<'a>> {
    let (dense, intercepts) = (ranker.dense(), ranker.intercepts());
    let mut tensors = stored.words.tensors("ranker.words");
    tensors.push(Tensor::list("ranker.intercept", Values::F32(intercepts)));
    if dense.n_cols() > 0 {
        let shape = (dense.n_rows(), dense.n_cols());
        tensors.push(Tensor::matrix("ranker.weight", shape, dense.values()));
    }
    if let (Some(tree), Some(stored)) = (ranker.clusters(), &stored.clusters) {
        let cluster_of = bytemuck::cast_slice(tree.cluster_of());
        tensors.extend(stored.weights.tensors("ranker.clusters"));
        tensors.extend([
            Tensor::list("ranker.cluster_of", Values::U32(cluster_of)),
            Tensor::list("ranker.clusters.parent", Values::U32(&stored.parents)),
            Tensor::list("ranker.clusters.intercept", Values::F32(tree.intercepts())),
        ]);
    }
    tensors
}

/// Sizes of a ranker.
#[derive(Clone, Copy)]
pub(crate) struct RankerShape {
    pub(crate) n_labels: usize,
    pub(crate) n_words: usize,
    /// Dimensions of the embedding it reads; 0 if it reads none.
    pub(crate) n_dense: usize,
}

/// Reads a ranker.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_ranker(
    file: &mut TensorFile,
    loss: RankerLoss,
    shape: RankerShape,
) -> Result<Ranker> {
    let RankerShape {
        n_labels,
        n_words,
        n_dense,
    } = shape;
    let words = read_sparse(file, "ranker.words", (Some(n_labels), n_words), StepOf::Row)?;
    let intercepts = file.floats("ranker.intercept", n_labels)?;
    let dense = match n_dense {
        0 => Matrix::zeros(n_labels, 0),
        dim => file.matrix("ranker.weight", (n_labels, dim))?,
    };
    let clusters = if file.has("ranker.cluster_of") {
        Some(read_clusters(file, shape)?)
    } else {
        None
    };
    Ranker::from_parts(RankerParts {
        loss,
        words: words.matrix,
        steps: words.steps,
        dense,
        intercepts,
        clusters,
    })
}

fn read_clusters(file: &mut TensorFile, shape: RankerShape) -> Result<ClusterTree> {
    let n_clusters = file.len("ranker.clusters.intercept")?;
    let cluster_of = file.numbers("ranker.cluster_of", shape.n_labels)?;
    let shape = (Some(shape.n_words), n_clusters);
    let weights = read_sparse(file, "ranker.clusters", shape, StepOf::Column)?;
    let intercepts = file.floats("ranker.clusters.intercept", n_clusters)?;
    let parents = file.numbers("ranker.clusters.parent", n_clusters)?;
    let parents = parents
        .iter()
        .map(|place| place.checked_sub(1).map(ClusterId));
    ClusterTree::from_parts(ClusterTreeParts {
        cluster_of: cast_vec(cluster_of),
        parents: parents.collect(),
        weights: weights.matrix,
        steps: weights.steps,
        intercepts,
    })
}

/// A tree, column by column.
#[derive(Default)]
pub(crate) struct TreeColumns {
    thresholds: Vec<f64>,
    features: Vec<u32>,
    rights: Vec<u32>,
    probabilities: Vec<f32>,
}

impl From<&DecisionTree> for TreeColumns {
    fn from(tree: &DecisionTree) -> Self {
        let mut columns = TreeColumns::default();
        for node in tree.nodes() {
            let (threshold, feature, right, probability) = match *node {
                TreeNode::Split {
                    feature,
                    threshold,
                    right,
                } => (threshold, feature, right, 0.0),
                // The root is nobody's right child.
                TreeNode::Leaf { probability } => (0.0, 0, 0, probability),
            };
            columns.thresholds.push(threshold);
            columns.features.push(feature);
            columns.rights.push(right);
            columns.probabilities.push(probability);
        }
        columns
    }
}

impl TreeColumns {
    /// As tensors.
    pub(crate) fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![
            Tensor::list("tree.threshold", Values::F64(&self.thresholds)),
            Tensor::list("tree.feature", Values::U32(&self.features)),
            Tensor::list("tree.right", Values::U32(&self.rights)),
            Tensor::list("tree.probability", Values::F32(&self.probabilities)),
        ]
    }
}

/// Reads a tree.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_tree(file: &mut TensorFile) -> Result<DecisionTree> {
    let n_nodes = file.len("tree.right")?;
    let thresholds = file.doubles("tree.threshold", n_nodes)?;
    let features = file.numbers("tree.feature", n_nodes)?;
    let rights = file.numbers("tree.right", n_nodes)?;
    let probabilities = file.floats("tree.probability", n_nodes)?;
    let node = |at: usize| match rights[at] {
        0 => TreeNode::Leaf {
            probability: probabilities[at],
        },
        right => TreeNode::Split {
            feature: features[at],
            threshold: thresholds[at],
            right,
        },
    };
    DecisionTree::from_nodes((0..n_nodes).map(node).collect(), N_TREE_FEATURES)
}

/// The calibration of all members together, as tensors.
pub(crate) fn calibration_tensors(calibration: &EnsembleCalibration) -> Vec<Tensor<'_>> {
    let (scores, probabilities) = calibration.probabilities.parts();
    vec![
        Tensor::list("frequencies", Values::U32(&calibration.frequencies)),
        Tensor::list("probabilities.score", Values::F32(scores)),
        Tensor::list("probabilities.probability", Values::F32(probabilities)),
    ]
}

/// Reads the calibration of all members together.
///
/// # Errors
/// [`crate::Error::BadFile`]; others if the parts do not fit each other.
pub(crate) fn read_calibration(
    file: &mut TensorFile,
    n_labels: usize,
) -> Result<EnsembleCalibration> {
    let n_knots = file.len("probabilities.score")?;
    let frequencies = file.numbers("frequencies", n_labels)?;
    let scores = file.floats("probabilities.score", n_knots)?;
    let probabilities = file.floats("probabilities.probability", n_knots)?;
    Ok(EnsembleCalibration {
        frequencies,
        probabilities: Isotonic::from_parts(scores, probabilities)?,
    })
}
