//! Rankers and calibration as tensors.

use bytemuck::allocation::cast_vec;

use crate::calibration::{DecisionTree, Isotonic, TreeNode};
use crate::config::RankerLoss;
use crate::error::Result;
use crate::ids::ClusterId;
use crate::matrix::{CsrMatrix, Matrix, columns_of, steps_of};
use crate::predict::EnsembleCalibration;
use crate::ranker::{ClusterTree, ClusterTreeParts, Ranker, RankerParts};
use crate::store::format::tensors::{Tensor, TensorFile, Values, offsets};

/// Features of a calibration tree: p, q, p·q and f.
const N_TREE_FEATURES: usize = 4;

/// The parts of a ranker that are not held as they are stored.
pub(crate) struct StoredRanker {
    words: StoredWeights,
    clusters: Option<StoredClusters>,
}

struct StoredClusters {
    weights: StoredWeights,
    /// 0 is none, otherwise one more than the cluster.
    parents: Vec<u32>,
}

/// Sparse weights: their columns as gaps, and their values as integers if they are multiples of a step.
struct StoredWeights {
    indptr: Vec<u64>,
    gaps: Vec<u8>,
    values: StoredValues,
}

enum StoredValues {
    Full(Vec<f32>),
    Eight(Vec<i8>),
}

impl StoredWeights {
    /// The entries of a matrix; the step of an entry is that of its row or column.
    fn new(matrix: &CsrMatrix, step: Option<&dyn Fn(usize, u32) -> f32>) -> Self {
        let values = match step {
            None => StoredValues::Full(matrix.values().to_vec()),
            Some(step) => {
                let rows = (0..matrix.n_rows()).flat_map(|row_idx| {
                    let (columns, values) = matrix.row(row_idx);
                    let entries = columns.iter().zip(values);
                    entries.map(move |(&column, &value)| steps_of(value, step(row_idx, column)))
                });
                StoredValues::Eight(rows.collect())
            }
        };
        StoredWeights {
            indptr: offsets(matrix.indptr()),
            gaps: matrix.gaps(),
            values,
        }
    }

    fn tensors(&self, prefix: &str) -> [Tensor<'_>; 3] {
        let values = match &self.values {
            StoredValues::Full(values) => Values::F32(values),
            StoredValues::Eight(values) => Values::I8(values),
        };
        [
            Tensor::list(&format!("{prefix}.indptr"), Values::U64(&self.indptr)),
            Tensor::list(&format!("{prefix}.gaps"), Values::U8(&self.gaps)),
            Tensor::list(&format!("{prefix}.weight"), values),
        ]
    }
}

/// Reads what [`StoredWeights`] writes: rows and columns of a matrix, with a function for the step of an entry.
fn read_weights(
    file: &mut TensorFile,
    prefix: &str,
    (n_rows, n_cols): (usize, usize),
    step: Option<&dyn Fn(usize, u32) -> f32>,
) -> Result<CsrMatrix> {
    let [indptr, gaps, weight] =
        ["indptr", "gaps", "weight"].map(|part| format!("{prefix}.{part}"));
    let offsets = file.large_numbers(&indptr, n_rows.saturating_add(1))?;
    let n_gap_bytes = file.len(&gaps)?;
    let bytes = file.octets(&gaps, n_gap_bytes)?;
    let n_weights = file.len(&weight)?;
    let columns = columns_of(&bytes, &offsets).filter(|columns| columns.len() == n_weights);
    let columns = columns.ok_or_else(|| file.bad(&gaps, "they do not fit the offsets"))?;
    let values = match step {
        None => file.floats(&weight, n_weights)?,
        Some(step) => {
            let whole = file.small_integers(&weight, n_weights)?;
            let mut row_idx = 0;
            let entries = whole.iter().zip(&columns).enumerate();
            let value = |(at, (&whole, &column)): (usize, (&i8, &u32))| {
                while offsets[row_idx + 1] <= at as u64 {
                    row_idx += 1;
                }
                step(row_idx, column) * f32::from(whole)
            };
            entries.map(value).collect()
        }
    };
    let indptr = offsets.iter().map(|&end| end as usize).collect();
    CsrMatrix::new(indptr, columns, values, n_cols)
}

impl From<&Ranker> for StoredRanker {
    fn from(ranker: &Ranker) -> Self {
        let words = ranker.words();
        let clusters = ranker.clusters().map(|tree| {
            let place = |parent: &Option<ClusterId>| parent.map_or(0, |parent| parent.0 + 1);
            let of_cluster = tree
                .steps()
                .map(|steps| move |_: usize, cluster: u32| steps[cluster as usize]);
            let step = of_cluster
                .as_ref()
                .map(|step| step as &dyn Fn(usize, u32) -> f32);
            StoredClusters {
                weights: StoredWeights::new(tree.weights(), step),
                parents: tree.parents().iter().map(place).collect(),
            }
        });
        let of_label = ranker
            .steps()
            .map(|steps| move |label: usize, _: u32| steps[label]);
        let step = of_label
            .as_ref()
            .map(|step| step as &dyn Fn(usize, u32) -> f32);
        StoredRanker {
            words: StoredWeights::new(&words, step),
            clusters,
        }
    }
}

/// Writes a ranker.
pub(crate) fn ranker_tensors<'a>(ranker: &'a Ranker, stored: &'a StoredRanker) -> Vec<Tensor<'a>> {
    let (dense, intercepts) = (ranker.dense(), ranker.intercepts());
    let mut tensors: Vec<Tensor<'a>> = stored.words.tensors("ranker.words").into();
    tensors.push(Tensor::list("ranker.intercept", Values::F32(intercepts)));
    if let Some(steps) = ranker.steps() {
        tensors.push(Tensor::list("ranker.words.step", Values::F32(steps)));
    }
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
        if let Some(steps) = tree.steps() {
            tensors.push(Tensor::list("ranker.clusters.step", Values::F32(steps)));
        }
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
    let steps = read_steps(file, "ranker.words.step", n_labels)?;
    let of_label = steps
        .as_deref()
        .map(|steps| move |label: usize, _: u32| steps[label]);
    let step = of_label
        .as_ref()
        .map(|step| step as &dyn Fn(usize, u32) -> f32);
    let words = read_weights(file, "ranker.words", (n_labels, n_words), step)?;
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
        words,
        steps,
        dense,
        intercepts,
        clusters,
    })
}

fn read_steps(file: &mut TensorFile, name: &str, n_steps: usize) -> Result<Option<Vec<f32>>> {
    file.has(name)
        .then(|| file.floats(name, n_steps))
        .transpose()
}

fn read_clusters(file: &mut TensorFile, shape: RankerShape) -> Result<ClusterTree> {
    let n_clusters = file.len("ranker.clusters.intercept")?;
    let cluster_of = file.numbers("ranker.cluster_of", shape.n_labels)?;
    let steps = read_steps(file, "ranker.clusters.step", n_clusters)?;
    // A cluster that is not there has no step; the matrix refuses it.
    let of_cluster = steps.as_deref().map(|steps| {
        move |_: usize, cluster: u32| steps.get(cluster as usize).copied().unwrap_or(0.0)
    });
    let step = of_cluster
        .as_ref()
        .map(|step| step as &dyn Fn(usize, u32) -> f32);
    let weights = read_weights(file, "ranker.clusters", (shape.n_words, n_clusters), step)?;
    let intercepts = file.floats("ranker.clusters.intercept", n_clusters)?;
    let parents = file.numbers("ranker.clusters.parent", n_clusters)?;
    let parents = parents
        .iter()
        .map(|place| place.checked_sub(1).map(ClusterId));
    ClusterTree::from_parts(ClusterTreeParts {
        cluster_of: cast_vec(cluster_of),
        parents: parents.collect(),
        weights,
        steps,
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
