//! The inputs of a batch: texts, sparse features, or a data set.

use std::borrow::Cow;

use crate::data::{Dataset, TextEmbeddings, Texts};
use crate::error::Result;
use crate::features::{Featurizer, PointSet};
use crate::matrix::CsrMatrix;

/// The inputs of a batch. A slice of strings, [`Texts`], a [`CsrMatrix`] and a [`Dataset`] convert into it.
pub enum Inputs<'a> {
    /// Texts.
    Texts(Cow<'a, Texts>),
    /// Sparse features, one row per point, for a model that was trained on such.
    Features(&'a CsrMatrix),
    /// Texts with their embeddings, for a model that was trained with such.
    Embedded(&'a Texts, &'a TextEmbeddings),
    /// The texts or the features of a data set, whichever the model was trained on.
    Dataset(&'a Dataset),
}

impl Inputs<'_> {
    /// The points of the inputs.
    pub(super) fn points(&self, featurizer: &Featurizer) -> Result<PointSet> {
        match self {
            Inputs::Texts(texts) => featurizer.points_of_texts(texts),
            Inputs::Embedded(texts, embeddings) => {
                featurizer.with_embeddings(featurizer.words_of_texts(texts)?, Some(embeddings))
            }
            Inputs::Features(features) => featurizer.points_of_features(features),
            Inputs::Dataset(data) => featurizer.points(data),
        }
    }
}

impl<'a, S: AsRef<str>> From<&'a [S]> for Inputs<'a> {
    fn from(texts: &'a [S]) -> Self {
        Inputs::Texts(Cow::Owned(texts.iter().map(AsRef::as_ref).collect()))
    }
}

impl<'a, S: AsRef<str>, const N: usize> From<&'a [S; N]> for Inputs<'a> {
    fn from(texts: &'a [S; N]) -> Self {
        texts.as_slice().into()
    }
}

impl<'a, S: AsRef<str>> From<&'a Vec<S>> for Inputs<'a> {
    fn from(texts: &'a Vec<S>) -> Self {
        texts.as_slice().into()
    }
}

impl<'a> From<&'a Texts> for Inputs<'a> {
    fn from(texts: &'a Texts) -> Self {
        Inputs::Texts(Cow::Borrowed(texts))
    }
}

impl<'a> From<&'a CsrMatrix> for Inputs<'a> {
    fn from(features: &'a CsrMatrix) -> Self {
        Inputs::Features(features)
    }
}

impl<'a> From<&'a Dataset> for Inputs<'a> {
    fn from(data: &'a Dataset) -> Self {
        Inputs::Dataset(data)
    }
}
