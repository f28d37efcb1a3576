//! Points as encoders see them: features, tokens, and embeddings computed before training.

use super::TokenRows;
use crate::matrix::{CsrMatrix, Matrix};

/// The input of an encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points<'a> {
    /// tf-idf or given features, N×V, rows of length 1 in L2.
    pub features: &'a CsrMatrix,
    /// Token ids, for an encoder that reads texts.
    pub tokens: Option<&'a TokenRows>,
    /// Their embeddings before training, one per row, for an encoder that is not trained.
    pub embedded: Option<&'a Matrix>,
}

impl<'a> Points<'a> {
    /// Points with features only.
    pub(crate) fn of_features(features: &'a CsrMatrix) -> Self {
        Points {
            features,
            tokens: None,
            embedded: None,
        }
    }
}

/// Points as a model reads them; [`Predictor::points`](crate::Predictor::points) makes them.
#[derive(Clone, Debug)]
pub struct PointSet {
    pub(crate) features: CsrMatrix,
    pub(crate) tokens: Option<TokenRows>,
    pub(crate) embedded: Option<Matrix>,
}

impl PointSet {
    /// Points with features only.
    pub(crate) fn of_features(features: CsrMatrix) -> Self {
        PointSet {
            features,
            tokens: None,
            embedded: None,
        }
    }

    /// The points, borrowed.
    pub(crate) fn points(&self) -> Points<'_> {
        Points {
            features: &self.features,
            tokens: self.tokens.as_ref(),
            embedded: self.embedded.as_ref(),
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.features.n_rows()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of words, or features, over all points.
    pub fn n_words(&self) -> usize {
        self.features.nnz()
    }

    /// These points and others after them; they have the same parts.
    pub(crate) fn append(&mut self, other: &PointSet) {
        self.features.append(&other.features);
        if let Some((tokens, others)) = self.tokens.as_mut().zip(other.tokens.as_ref()) {
            (0..others.n_rows()).for_each(|row| tokens.push(others.row(row)));
        }
        if let Some((embedded, others)) = self.embedded.as_mut().zip(other.embedded.as_ref()) {
            let values = [embedded.values(), others.values()].concat();
            let n_rows = embedded.n_rows() + others.n_rows();
            *embedded = Matrix::from_vec(values, n_rows, others.n_cols());
        }
    }

    /// These points, in this order.
    pub fn select_rows(&self, rows: &[usize]) -> PointSet {
        let embedded = |all: &Matrix| {
            let values = rows.iter().flat_map(|&row| all.row(row)).copied();
            Matrix::from_vec(values.collect(), rows.len(), all.n_cols())
        };
        PointSet {
            features: self.features.select_rows(rows),
            tokens: self.tokens.as_ref().map(|tokens| tokens.select_rows(rows)),
            embedded: self.embedded.as_ref().map(embedded),
        }
    }
}
