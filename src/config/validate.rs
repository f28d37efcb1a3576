//! Bounds of the settings, the same for a user's and for those in a model's manifest.

use super::Config;
use crate::error::{Error, Result};

impl Config {
    /// Checks that no setting makes a text cost more than its length warrants.
    ///
    /// # Errors
    /// [`Error::Config`] for the first value that is out of bounds.
    pub fn validate(&self) -> Result<()> {
        let wide = u32::MAX as usize;
        for (key, found, max) in [
            ("features.ngrams", self.features.ngrams, 16),
            ("encoder.dim", self.encoder.dim, 1 << 16),
            ("encoder.max_len", self.encoder.max_len, 1 << 16),
            ("index.beam_size", self.index.beam_size, wide),
            ("index.shortlist_size", self.index.shortlist_size, wide),
            ("ranker.n_candidates", self.ranker.n_candidates, 1 << 20),
            ("ensemble.members", self.ensemble.members, 1024),
        ] {
            if !(1..=max).contains(&found) {
                return Err(Error::Config {
                    key: key.into(),
                    found: found.to_string(),
                    expected: format!("1 to {max}"),
                });
            }
        }
        Ok(())
    }
}
