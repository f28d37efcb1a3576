//! The model: φ, the search index and the label classifiers.
//!
//! There is one `Model`; the stages differ in its adjacency. It does not know that it can be trained. Labels are
//! numbered in cluster order inside the model, so that shortlisted rows of W_L are neighbours in memory;
//! [`Numbering`] leads back to the labels of the data set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::classifiers::{LabelClassifiers, sigmoid};
use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};
use crate::index::{Adjacency, ClusterClassifiers, ShortlistOptions, Shortlister};
use crate::matrix::{CsrBuilder, CsrMatrix, Kernels, sort_descending};

/// Search index and label classifiers: what stands behind an embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// W_C.
    pub clusters: ClusterClassifiers,
    /// A.
    pub adjacency: Adjacency,
    /// W_L.
    pub classifiers: LabelClassifiers,
    /// From rows of W_L to labels of the data set.
    pub numbering: Numbering,
}

/// The order in which a model holds its labels.
///
/// Invariant: a permutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    label_of_row: Vec<LabelId>,
    row_of_label: Vec<u32>,
}

impl Numbering {
    /// The order that holds the label `label_of_row[i]` in row `i`.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if it is not a permutation.
    pub fn new(label_of_row: Vec<LabelId>) -> Result<Self> {
        let mut row_of_label = vec![u32::MAX; label_of_row.len()];
        for (row, label) in label_of_row.iter().enumerate() {
            match row_of_label.get_mut(label.idx()) {
                Some(slot) if *slot == u32::MAX => *slot = row as u32,
                _ => {
                    return Err(Error::InvalidMatrix(format!(
                        "label {} is numbered twice or not at all",
                        label.0
                    )));
                }
            }
        }
        Ok(Numbering {
            label_of_row,
            row_of_label,
        })
    }

    /// The label in a row.
    #[inline]
    pub fn label(&self, row: LabelId) -> LabelId {
        self.label_of_row[row.idx()]
    }

    /// The row of a label.
    #[inline]
    pub fn row(&self, label: LabelId) -> LabelId {
        LabelId(self.row_of_label[label.idx()])
    }

    /// The labels in the order of their rows.
    pub fn labels(&self) -> &[LabelId] {
        &self.label_of_row
    }

    /// A label matrix with its columns in row order.
    pub fn renumber(&self, labels: &CsrMatrix) -> CsrMatrix {
        let mut builder = CsrBuilder::default();
        let mut entries: Vec<(u32, f32)> = Vec::new();
        for point in 0..labels.n_rows() {
            let (columns, values) = labels.row(point);
            entries.clear();
            let renumbered = columns
                .iter()
                .zip(values)
                .map(|(&label, &value)| (self.row_of_label[label as usize], value));
            entries.extend(renumbered);
            entries.sort_unstable_by_key(|entry| entry.0);
            builder.push_row(entries.iter().copied());
        }
        builder
            .finish(labels.n_cols())
            .expect("renumbered columns of a valid matrix are valid")
    }
}

/// Buffers of [`Model::rank`]; one a thread.
#[derive(Clone, Debug)]
pub struct RankScratch {
    searcher: Shortlister,
    probabilities: Vec<f32>,
    queue: BinaryHeap<(u32, Reverse<u32>, u32)>,
    best: BinaryHeap<Reverse<(u32, Reverse<u32>)>>,
    /// Rows of W_L read by the last call.
    pub n_rows_scored: usize,
}

impl RankScratch {
    /// Buffers for a model.
    pub fn new(model: &Model) -> Self {
        RankScratch {
            searcher: Shortlister::new(model.classifiers.n_labels()),
            probabilities: vec![0.0; model.clusters.n_clusters()],
            queue: BinaryHeap::new(),
            best: BinaryHeap::new(),
            n_rows_scored: 0,
        }
    }
}

impl Model {
    /// The `k` best labels of an embedding by p = σ(w·φ + b)·ŷ, best first, ties to the lower label.
    ///
    /// p ≤ ŷ, so the shortlist is walked by descending ŷ and left as soon as no later label can enter the best
    /// `k`: the answer is that of scoring all of it. A classifier whose product is not finite gets the score NaN
    /// and is among the answers.
    pub fn rank(
        &self,
        embedding: &[f32],
        options: &ShortlistOptions,
        k: usize,
        scratch: &mut RankScratch,
    ) -> Vec<Scored> {
        let RankScratch {
            searcher,
            probabilities,
            queue,
            best,
            n_rows_scored,
        } = scratch;
        self.clusters.probabilities_of_one(embedding, probabilities);
        searcher.search(&self.clusters, &self.adjacency, probabilities, options);
        let paths = &searcher.paths;
        let mut keys = std::mem::take(queue).into_vec();
        keys.clear();
        keys.extend(
            paths
                .iter()
                .enumerate()
                .map(|(at, path)| (path.score.to_bits(), Reverse(path.label.0), at as u32)),
        );
        *queue = BinaryHeap::from(keys);
        best.clear();
        *n_rows_scored = 0;
        let kernels = Kernels::detect();
        while let Some((score_bits, _, at)) = queue.pop() {
            let is_full = k <= best.len();
            if is_full
                && best
                    .peek()
                    .is_none_or(|Reverse((worst, _))| score_bits < *worst)
            {
                break;
            }
            let row = paths[at as usize].label;
            let z = kernels.dot(self.classifiers.weights.row(row.idx()), embedding)
                + self.classifiers.bias[row.idx()];
            // An infinite weight must not look like a sure label; the bits of NaN are above those of any score, so
            // that it stays among the best and the caller sees it.
            let p = match z.is_finite() {
                true => sigmoid(z) * f32::from_bits(score_bits),
                false => f32::NAN,
            };
            *n_rows_scored += 1;
            best.push(Reverse((p.to_bits(), Reverse(self.numbering.label(row).0))));
            if k < best.len() {
                best.pop();
            }
        }
        let mut ranked: Vec<Scored> = best
            .drain()
            .map(|Reverse((bits, Reverse(label)))| Scored {
                label: LabelId(label),
                score: f32::from_bits(bits),
            })
            .collect();
        sort_descending(&mut ranked);
        ranked
    }
}
