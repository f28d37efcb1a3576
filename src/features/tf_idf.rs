//! tf-idf features for data formats that hold features.

use super::Vectorizer;
use crate::config::FeaturesConfig;
use crate::data::Texts;
use crate::error::Result;
use crate::matrix::CsrMatrix;

/// tf-idf features with the default settings.
pub struct TfIdf(Vectorizer);

impl TfIdf {
    /// Learns the words of texts, and their features.
    ///
    /// # Errors
    /// [`Error::CannotTrain`](crate::Error::CannotTrain) if no text has a word.
    pub fn fit_transform(texts: &Texts) -> Result<(Self, CsrMatrix)> {
        let (words, features) = Vectorizer::fit_transform(texts, &FeaturesConfig::default())?;
        Ok((TfIdf(words), features))
    }

    /// The words, one per column.
    pub fn words(&self) -> &Texts {
        self.0.vocabulary()
    }

    /// The features of texts, one row per text, of length 1.
    pub fn transform(&self, texts: &Texts) -> CsrMatrix {
        self.0.transform(texts)
    }
}
