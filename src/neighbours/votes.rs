//! The training points nearest to a text, and the labels they vote for: a neighbour with cosine c gives each of its
//! labels c².

use super::postings::{NeighbourScratch, Postings};
use crate::config::Precision;
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::CsrMatrix;

/// Neighbours that vote.
const N_NEIGHBOURS: usize = 30;

/// The training points by their words, with their labels.
///
/// Invariant: as many points as rows of labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neighbours {
    postings: Postings,
    /// Y, N×L.
    labels: CsrMatrix,
}

/// The votes of the neighbours for a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vote {
    /// The label.
    pub(crate) label: LabelId,
    /// Sum of the squared cosines of the neighbours that have it.
    pub(crate) score: f32,
    /// Cosine of the nearest of them.
    pub(crate) nearest: f32,
}

impl Neighbours {
    /// Bytes of the index of so many entries of features and labels.
    pub(crate) fn n_bytes(n_feature_entries: usize, n_label_entries: usize) -> usize {
        8 * (n_feature_entries + n_label_entries)
    }

    /// The first `n_points` of these points, with rows of length 1, and their labels.
    pub(crate) fn new(features: &CsrMatrix, labels: &CsrMatrix, n_points: usize) -> Self {
        let points: Vec<usize> = (0..n_points).collect();
        Neighbours {
            postings: Postings::new(features, n_points),
            labels: labels.select_rows(&points),
        }
    }

    /// Neighbours from their parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there are not as many points as rows of labels.
    pub(crate) fn from_parts(postings: Postings, labels: CsrMatrix) -> Result<Self> {
        let (n_points, n_labelled) = (postings.n_rows(), labels.n_rows());
        if n_points == n_labelled {
            return Ok(Neighbours { postings, labels });
        }
        let problem = format!("{n_points} neighbours with the labels of {n_labelled}");
        Err(Error::InvalidModel(problem))
    }

    /// The same points with their words' weights in this precision.
    pub(crate) fn narrowed(self, precision: Precision) -> Self {
        match precision {
            Precision::Full => self,
            Precision::Eight => Neighbours {
                postings: self.postings.rounded(),
                ..self
            },
        }
    }

    /// These points and others after them, with the labels of each, of which there are `n_labels`.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if there are more labels.
    pub(crate) fn with(
        &self,
        features: &CsrMatrix,
        labels: &CsrMatrix,
        n_labels: usize,
    ) -> Result<Self> {
        let mut all = self.labels.with_n_cols(n_labels)?;
        all.append(labels);
        Neighbours::from_parts(self.postings.with(features), all)
    }

    /// The points by their words.
    pub(crate) fn postings(&self) -> &Postings {
        &self.postings
    }

    /// The labels of a point.
    pub(crate) fn labels_of(&self, point: usize) -> Vec<LabelId> {
        let labels = self.labels.row(point).0.iter();
        labels.map(|&label| LabelId(label)).collect()
    }

    /// Y, N×L.
    pub(crate) fn labels(&self) -> &CsrMatrix {
        &self.labels
    }

    /// The votes of a text's nearest points, best first, ties to the lower label.
    pub(crate) fn votes(
        &self,
        bow: (&[u32], &[f32]),
        scratch: &mut NeighbourScratch,
        votes: &mut Vec<Vote>,
    ) {
        self.postings.nearest(bow, N_NEIGHBOURS, scratch);
        let NeighbourScratch { found, labels, .. } = scratch;
        labels.clear();
        for neighbour in found.iter() {
            let of_point = self.labels.row(neighbour.row as usize).0;
            labels.extend(of_point.iter().map(|&label| (label, neighbour.cosine)));
        }
        // Stable, so that the cosines of a label still descend: the sum has one order.
        labels.sort_by_key(|&(label, _)| label);
        votes.clear();
        votes.extend(labels.chunk_by(|a, b| a.0 == b.0).map(|of_label| Vote {
            label: LabelId(of_label[0].0),
            score: of_label.iter().map(|(_, cosine)| cosine * cosine).sum(),
            nearest: of_label[0].1,
        }));
        votes.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
    }
}
