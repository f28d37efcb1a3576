//! Rankers and calibration as tensors.

use bytemuck::allocation::cast_vec;

use crate::calibration::{DecisionTree, Isotonic, TreeNode};
use crate::config::RankerLoss;
use crate::error::Result;
use crate::ids::ClusterId;
use crate::matrix::{CsrMatrix, Matrix};
use crate::predict::EnsembleCalibration;
use crate::ranker::{ClusterTree, Ranker, RankerParts};
use crate::store::format::tensors::{Tensor, TensorFile, Values, offsets};

/// Features of a calibration tree: p, q, p·q and f.
const N_TREE_FEATURES: usize = 4;

/// The parts of a ranker that are not held as they are stored: weights by label, row offsets, and the parents of
/// clusters.
pub(crate) struct StoredRanker {
    words: CsrMatrix,
    offsets: Vec<u64>,
    clusters: Vec<u64>,
    /// 0 is none, otherwise one more than the cluster.
    parents: Vec<u32>,
}

impl From<&Ranker> for StoredRanker {
    fn from(ranker: &Ranker) -> Self {
        let (mut clusters, mut parents) = (Vec::new(), Vec::new());
        if let Some((_, above, weights, _)) = ranker.clusters().map(ClusterTree::parts) {
            clusters = offsets(weights.indptr());
            let place = |parent: &Option<ClusterId>| parent.map_or(0, |parent| parent.0 + 1);
            parents = above.iter().map(place).collect();
        }
        let words = ranker.words();
        StoredRanker {
            offsets: offsets(words.indptr()),
            words,
            clusters,
            parents,
        }
    }
}

/// Writes a ranker.
pub(crate) fn ranker_tensors<'a>(ranker: &'a Ranker, stored: &'a StoredRanker) -> Vec<Tensor<'a>> {
    let StoredRanker { words, .. } = stored;
    let (dense, intercepts) = (ranker.dense(), ranker.intercepts());
    let mut tensors = vec![
        Tensor::list("ranker.indptr", Values::U64(&stored.offsets)),
        Tensor::list("ranker.words", Values::U32(words.indices())),
        Tensor::list("ranker.word_weight", Values::F32(words.values())),
        Tensor::list("ranker.intercept", Values::F32(intercepts)),
    ];
    if dense.n_cols() > 0 {
        let shape = (dense.n_rows(), dense.n_cols());
        tensors.push(Tensor::matrix("ranker.weight", shape, dense.values()));
    }
    if let Some(clusters) = ranker.clusters() {
        let (cluster_of, _, weights, intercepts) = clusters.parts();
        let cluster_of = bytemuck::cast_slice(cluster_of);
        tensors.extend([
            Tensor::list("ranker.cluster_of", Values::U32(cluster_of)),
            Tensor::list("ranker.clusters.parent", Values::U32(&stored.parents)),
            Tensor::list("ranker.clusters.indptr", Values::U64(&stored.clusters)),
            Tensor::list("ranker.clusters.columns", Values::U32(weights.indices())),
            Tensor::list("ranker.clusters.weight", Values::F32(weights.values())),
            Tensor::list("ranker.clusters.intercept", Values::F32(intercepts)),
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
    let indptr = file.large_numbers("ranker.indptr", n_labels.saturating_add(1))?;
    let n_weights = file.len("ranker.words")?;
    let columns = file.numbers("ranker.words", n_weights)?;
    let weights = file.floats("ranker.word_weight", n_weights)?;
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
    let indptr = indptr.iter().map(|&end| end as usize).collect();
    Ranker::from_parts(RankerParts {
        loss,
        words: CsrMatrix::new(indptr, columns, weights, n_words)?,
        dense,
        intercepts,
        clusters,
    })
}

fn read_clusters(file: &mut TensorFile, shape: RankerShape) -> Result<ClusterTree> {
    let n_clusters = file.len("ranker.clusters.intercept")?;
    let n_weights = file.len("ranker.clusters.columns")?;
    let cluster_of = file.numbers("ranker.cluster_of", shape.n_labels)?;
    let n_offsets = shape.n_words.saturating_add(1);
    let indptr = file.large_numbers("ranker.clusters.indptr", n_offsets)?;
    let columns = file.numbers("ranker.clusters.columns", n_weights)?;
    let weights = file.floats("ranker.clusters.weight", n_weights)?;
    let intercepts = file.floats("ranker.clusters.intercept", n_clusters)?;
    let indptr = indptr.iter().map(|&end| end as usize).collect();
    let weights = CsrMatrix::new(indptr, columns, weights, n_clusters)?;
    let parents = file.numbers("ranker.clusters.parent", n_clusters)?;
    let parents = parents
        .iter()
        .map(|place| place.checked_sub(1).map(ClusterId));
    ClusterTree::from_parts(cast_vec(cluster_of), parents.collect(), weights, intercepts)
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
