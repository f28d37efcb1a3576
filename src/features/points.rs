//! Points as encoders and rankers see them: features, pairs of words, tokens, and embeddings computed before training.

use std::borrow::Cow;

use super::TokenRows;
use crate::matrix::{CsrBuilder, CsrMatrix, Matrix};

/// Length of a row of pairs beside a row of words.
const PAIR_LENGTH: f32 = 0.5;

/// The input of an encoder.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "transformer"), allow(dead_code))] // a bag reads neither tokens nor embeddings
pub(crate) struct Points<'a> {
    /// tf-idf or given features, N×V, rows of length 1 in L2.
    pub features: &'a CsrMatrix,
    /// tf-idf of pairs of words, rows of length 1 in L2, for the ranker.
    pub pairs: Option<&'a CsrMatrix>,
    /// Token ids, for an encoder that reads texts.
    pub tokens: Option<&'a TokenRows>,
    /// Their embeddings before training, one per row, for an encoder that is not trained.
    pub embedded: Option<&'a Matrix>,
    /// Parts of words that are not among the features, N×parts, where outside vectors know them.
    pub unseen: Option<&'a CsrMatrix>,
}

impl<'a> Points<'a> {
    /// Points with features only.
    #[cfg(feature = "transformer")]
    pub(crate) fn of_features(features: &'a CsrMatrix) -> Self {
        Points {
            features,
            pairs: None,
            tokens: None,
            embedded: None,
            unseen: None,
        }
    }
}

/// The buffer of a row of words and pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermRow {
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl<'a> Points<'a> {
    /// The words of a point, then its pairs; in the buffer, if there are pairs.
    pub(crate) fn terms<'r>(self, row: usize, buffer: &'r mut TermRow) -> (&'r [u32], &'r [f32])
    where
        'a: 'r,
    {
        let words = self.features.row(row);
        let Some(pairs) = self.pairs else {
            return words;
        };
        let TermRow { columns, values } = buffer;
        let (pairs, weights) = pairs.row(row);
        let n_words = self.features.n_cols() as u32;
        columns.clear();
        columns.extend_from_slice(words.0);
        columns.extend(pairs.iter().map(|pair| n_words + pair));
        values.clear();
        values.extend_from_slice(words.1);
        values.extend(weights.iter().map(|weight| PAIR_LENGTH * weight));
        (columns, values)
    }
}

/// Points as a model reads them.
#[derive(Clone, Debug)]
pub struct PointSet {
    pub(crate) features: CsrMatrix,
    pub(crate) pairs: Option<CsrMatrix>,
    pub(crate) tokens: Option<TokenRows>,
    pub(crate) embedded: Option<Matrix>,
    pub(crate) unseen: Option<CsrMatrix>,
}

impl PointSet {
    /// Points with features only.
    pub(crate) fn of_features(features: CsrMatrix) -> Self {
        PointSet {
            features,
            pairs: None,
            tokens: None,
            embedded: None,
            unseen: None,
        }
    }

    /// The points, borrowed.
    pub(crate) fn points(&self) -> Points<'_> {
        Points {
            features: &self.features,
            pairs: self.pairs.as_ref(),
            tokens: self.tokens.as_ref(),
            embedded: self.embedded.as_ref(),
            unseen: self.unseen.as_ref(),
        }
    }

    /// Words, then pairs: what the ranker reads, N×(V + pairs).
    pub(crate) fn terms(&self) -> Cow<'_, CsrMatrix> {
        let Some(pairs) = &self.pairs else {
            return Cow::Borrowed(&self.features);
        };
        let (mut builder, mut buffer) = (CsrBuilder::default(), TermRow::default());
        for row in 0..self.len() {
            let (columns, values) = self.points().terms(row, &mut buffer);
            builder.push_row(columns.iter().copied().zip(values.iter().copied()));
        }
        let n_columns = self.features.n_cols() + pairs.n_cols();
        Cow::Owned(builder.finish(n_columns).expect("columns ascend"))
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.features.n_rows()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a point has nothing that a model could know: no feature, no pair, no part of a word, and no token but the
    /// two around a text.
    pub(crate) fn is_blank(&self, row: usize) -> bool {
        let is_empty = |rows: &CsrMatrix| rows.row(row).0.is_empty();
        is_empty(&self.features)
            && self.pairs.as_ref().is_none_or(is_empty)
            && self.unseen.as_ref().is_none_or(is_empty)
            && self
                .tokens
                .as_ref()
                .is_none_or(|tokens| tokens.row(row).len() <= 2)
    }

    /// Number of words, or features, over all points.
    pub fn n_words(&self) -> usize {
        self.features.nnz()
    }

    /// These points and others after them; they have the same parts.
    pub(crate) fn append(&mut self, other: &PointSet) {
        self.features.append(&other.features);
        if let Some((pairs, others)) = self.pairs.as_mut().zip(other.pairs.as_ref()) {
            pairs.append(others);
        }
        if let Some((unseen, others)) = self.unseen.as_mut().zip(other.unseen.as_ref()) {
            unseen.append(others);
        }
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
            pairs: self.pairs.as_ref().map(|pairs| pairs.select_rows(rows)),
            tokens: self.tokens.as_ref().map(|tokens| tokens.select_rows(rows)),
            embedded: self.embedded.as_ref().map(embedded),
            unseen: self.unseen.as_ref().map(|unseen| unseen.select_rows(rows)),
        }
    }
}
