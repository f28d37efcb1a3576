//! What the command line needs besides the main types: models on disk and plans.

pub use crate::checkpoint::{
    CheckedFile, Description, FileRecord, FileState, FilesCheck, check_files, check_not_in_use,
    describe, is_unfinished, verify,
};
pub use crate::pipeline::MemoryEstimate;

use crate::config::FeaturesConfig;
use crate::data::Texts;
use crate::error::Result;
use crate::features::Vectorizer;
use crate::matrix::CsrMatrix;

/// tf-idf features with the default settings, for formats that hold features.
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
