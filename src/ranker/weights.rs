//! The trained ranker: a linear classifier per label.
//!
//! Most terms have a weight in few labels, and most texts have few of these terms, so such weights are held by term: an
//! answer reads those of its text. Terms that many labels know are held by label: an answer reads those of its
//! candidates. Embedding weights are a dense matrix, since few of them are small.

use super::ClusterTree;
use super::lockstep::LockstepSolver;
use crate::config::RankerLoss;
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix, Matrix};

/// A term that more labels than this have a weight for is held by label.
const MAX_LABELS: usize = 1000;

/// A linear classifier per label over [bow/‖bow‖, φ/‖φ‖].
///
/// Invariants: every weight of a term is in one of the two matrices; `by_label`, `dense` and `intercepts` have one row
/// per label, `by_term` one per term; every value is finite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranker {
    loss: RankerLoss,
    /// L×V, terms of many labels.
    by_label: CsrMatrix,
    /// V×L, terms of few labels.
    by_term: CsrMatrix,
    steps: Option<Vec<f32>>,
    dense: Matrix,
    intercepts: Vec<f32>,
    clusters: Option<ClusterTree>,
}

/// The parts of a ranker, as they are trained and stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankerParts {
    /// The loss it was trained with, which determines how a margin becomes a probability.
    pub loss: RankerLoss,
    /// Weights of terms, L×V.
    pub words: CsrMatrix,
    /// The number that the weights of each label are multiples of, L, if they are rounded.
    pub steps: Option<Vec<f32>>,
    /// Embedding weights, L×d; d is 0 for a ranker over words only.
    pub dense: Matrix,
    /// Intercepts, L.
    pub intercepts: Vec<f32>,
    /// The levels above the labels, if their negatives come from clusters.
    pub clusters: Option<ClusterTree>,
}

impl Ranker {
    /// Bytes of so many word weights, and of embedding weights of this size.
    pub(crate) fn n_bytes(n_labels: usize, n_weights: usize, n_dense: usize) -> usize {
        8 * n_weights + 4 * n_labels * n_dense
    }

    /// Bytes of the points of each label and of each cluster while it is trained, with so many labels of points.
    pub(crate) fn n_point_bytes(n_label_entries: usize) -> usize {
        24 * n_label_entries
    }

    /// Bytes of a thread that trains the highest clusters, which have all points.
    pub(crate) fn n_scratch_bytes(n_points: usize, n_words: usize) -> usize {
        LockstepSolver::n_bytes(n_points, n_words)
    }

    /// A ranker from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if the parts do not fit together or a value is not finite.
    pub(crate) fn from_parts(parts: RankerParts) -> Result<Self> {
        Ranker::divided(parts, MAX_LABELS)
    }

    /// The same, with terms of more labels than `max_labels` held by label.
    pub(super) fn divided(parts: RankerParts, max_labels: usize) -> Result<Self> {
        let n_labels = parts.words.n_rows();
        for (what, count) in [
            ("embedding rows", parts.dense.n_rows()),
            ("intercepts", parts.intercepts.len()),
            ("steps", parts.steps.as_ref().map_or(n_labels, Vec::len)),
        ] {
            if count != n_labels {
                return Err(Error::InvalidModel(format!(
                    "the ranker has {count} {what} for {n_labels} word rows"
                )));
            }
        }
        if let Some(tree) = &parts.clusters
            && (tree.cluster_of().len(), tree.weights().n_rows())
                != (n_labels, parts.words.n_cols())
        {
            return Err(Error::InvalidModel(format!(
                "the ranker has clusters of {} labels and {} words, not of {n_labels} and {}",
                tree.cluster_of().len(),
                tree.weights().n_rows(),
                parts.words.n_cols()
            )));
        }
        let finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
        if !finite(parts.dense.values()) || !finite(&parts.intercepts) {
            return Err(Error::InvalidModel(
                "the ranker has a weight that is not finite".into(),
            ));
        }
        let (by_label, by_term) = divide(&parts.words, max_labels)?;
        Ok(Ranker {
            loss: parts.loss,
            by_label,
            by_term,
            steps: parts.steps,
            dense: parts.dense,
            intercepts: parts.intercepts,
            clusters: parts.clusters,
        })
    }

    /// The loss it was trained with.
    pub(crate) fn loss(&self) -> RankerLoss {
        self.loss
    }

    /// Weights of terms, L×V.
    pub(crate) fn words(&self) -> CsrMatrix {
        let few = self.by_term.transpose();
        let mut words = CsrBuilder::with_capacity(self.n_labels(), few.nnz() + self.by_label.nnz());
        let mut row: Vec<(u32, f32)> = Vec::new();
        for label_idx in 0..self.n_labels() {
            row.clear();
            row.extend(entries(&few, label_idx).chain(entries(&self.by_label, label_idx)));
            row.sort_unstable_by_key(|entry| entry.0);
            words.push_row(row.iter().copied());
        }
        words.finish(self.n_words()).expect("terms are distinct")
    }

    /// The number that the weights of each label are multiples of, L, if they are rounded.
    pub(crate) fn steps(&self) -> Option<&[f32]> {
        self.steps.as_deref()
    }

    /// The weights of one label's terms, ascending by term.
    pub(crate) fn words_of(&self, label: LabelId) -> Vec<(u32, f32)> {
        let held_by_term = (0..self.n_words() as u32).filter_map(|term| {
            let (labels, weights) = self.by_term.row(term as usize);
            let place = labels.binary_search(&label.0).ok()?;
            Some((term, weights[place]))
        });
        let mut words: Vec<(u32, f32)> = held_by_term.collect();
        words.extend(entries(&self.by_label, label.idx()));
        words.sort_unstable_by_key(|entry| entry.0);
        words
    }

    /// The weight of a term for a label, if there is one.
    pub(super) fn weight(&self, term: u32, label: LabelId) -> Option<f32> {
        let of = |(keys, weights): (&[u32], &[f32]), key: u32| {
            let place = keys.binary_search(&key).ok()?;
            Some(weights[place])
        };
        if self.n_words() <= term as usize {
            return None;
        }
        let of_term = of(self.by_term.row(term as usize), label.0);
        of_term.or_else(|| of(self.by_label.row(label.idx()), term))
    }

    /// Embedding weights, L×d.
    pub(crate) fn dense(&self) -> &Matrix {
        &self.dense
    }

    /// Intercepts, L.
    pub(crate) fn intercepts(&self) -> &[f32] {
        &self.intercepts
    }

    /// Weights of terms of few labels, V×L.
    pub(super) fn by_term(&self) -> &CsrMatrix {
        &self.by_term
    }

    /// Weights of terms of many labels, L×V.
    pub(super) fn by_label(&self) -> &CsrMatrix {
        &self.by_label
    }

    /// The levels above the labels, if there are any.
    pub(crate) fn clusters(&self) -> Option<&ClusterTree> {
        self.clusters.as_ref()
    }

    /// Number of labels, L.
    pub(crate) fn n_labels(&self) -> usize {
        self.by_label.n_rows()
    }

    /// Number of terms, V.
    pub(crate) fn n_words(&self) -> usize {
        self.by_label.n_cols()
    }

    /// Embedding size, d; 0 for a ranker over words only.
    pub(crate) fn n_dense(&self) -> usize {
        self.dense.n_cols()
    }

    /// The score q of a margin z, between 0 and 1.
    ///
    /// Logistic loss: σ(z), as in the paper. Squared hinge: exp(−max(0, 1 − z)³), as in the released code; it is 1
    /// for margins of 1 and above, so q orders candidates only together with p.
    #[inline]
    pub(crate) fn probability(&self, margin: f32) -> f32 {
        match self.loss {
            RankerLoss::SquaredHinge => self.log_probability(margin).exp(),
            RankerLoss::Logistic => 1.0 / (1.0 + (-margin).exp()),
        }
    }

    /// ln q of a margin, which still tells scores apart that are too small for a float.
    #[inline]
    pub(crate) fn log_probability(&self, margin: f32) -> f32 {
        match self.loss {
            RankerLoss::SquaredHinge => -(1.0 - margin).max(0.0).powi(3),
            RankerLoss::Logistic => margin.min(0.0) - (-margin.abs()).exp().ln_1p(),
        }
    }
}

/// Weights of terms that many labels have, by label, and of the others, by term.
fn divide(words: &CsrMatrix, max_labels: usize) -> Result<(CsrMatrix, CsrMatrix)> {
    let mut n_labels_of = vec![0usize; words.n_cols()];
    for &term in words.indices() {
        n_labels_of[term as usize] += 1;
    }
    let has_many = |term: u32| max_labels < n_labels_of[term as usize];
    let n_many = n_labels_of
        .iter()
        .filter(|&&count| max_labels < count)
        .sum();
    let mut many = CsrBuilder::with_capacity(words.n_rows(), n_many);
    for label_idx in 0..words.n_rows() {
        many.push_row(entries(words, label_idx).filter(|entry| has_many(entry.0)));
    }
    let few = words.transpose_if(words.n_rows(), |term| !has_many(term));
    Ok((many.finish(words.n_cols())?, few))
}

fn entries(matrix: &CsrMatrix, row: usize) -> impl Iterator<Item = (u32, f32)> {
    let (columns, values) = matrix.row(row);
    columns.iter().copied().zip(values.iter().copied())
}
