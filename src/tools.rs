//! What the command line needs besides the main types: models on disk and plans.

pub use crate::communicator::{Communicator, Counted, MAX_PROCESSES};
pub use crate::store::{
    CheckedFile, Description, FileRecord, FileState, FilesCheck, check_files, check_not_in_use,
    describe, is_unfinished, merge, verify,
};
pub use crate::training::{GivenHoldOut, MemoryEstimate, Workload, calibrate};

use crate::config::{Config, FeaturesConfig};
use crate::data::{Alone, Dataset, HoldOut, Texts};
use crate::error::Result;
use crate::features::{Featurizer, Vectorizer};
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

/// Cuts a validation part of at most `n_points`, and never more than a tenth, from training data.
///
/// Near duplicates of a validation point are in neither part, and every label keeps a training point. Both parts have
/// the labels of the whole. The same seed gives the same parts.
///
/// # Errors
/// [`Error::CannotTrain`](crate::Error::CannotTrain) if no text has a word.
pub fn cut_validation(data: &Dataset, n_points: usize, seed: u64) -> Result<[Dataset; 2]> {
    let mut config = Config::default();
    config.ranker.enabled = false;
    config.hold_out.n_points = n_points;
    config.train.seed = seed;
    let (_, points) = Featurizer::fit(data, &config, None)?;
    let chosen = HoldOut::choose(&points.features, data.labels(), &config, Alone::All);
    Ok([chosen.train, chosen.held_out].map(|points| data.select(&points)))
}
