//! What the command line needs besides the main types: models on disk and plans.

pub use crate::checkpoint::{
    CheckedFile, Description, FileRecord, FileState, FilesCheck, check_files, describe,
    is_unfinished, verify,
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
    /// Learns the words of texts.
    ///
    /// # Errors
    /// [`Error::CannotTrain`](crate::Error::CannotTrain) if no text has a word.
    pub fn fit(texts: &Texts) -> Result<Self> {
        Vectorizer::fit(texts, &FeaturesConfig::default()).map(TfIdf)
    }

    /// The features of texts, one row per text, of length 1.
    pub fn transform(&self, texts: &Texts) -> CsrMatrix {
        self.0.transform(texts)
    }
}
