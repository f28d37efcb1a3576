//! The values that no data could use.

use crate::config::Config;
use crate::error::{Error, Result};

impl Config {
    /// Checks every value that can be checked without data.
    ///
    /// # Errors
    /// [`Error::Config`] with the key of the first value that cannot be used.
    pub fn validate(&self) -> Result<()> {
        toml::Table::try_from(self).map_err(|error| Error::Config {
            key: "(TOML)".into(),
            found: error.to_string(),
            expected: format!("integers of at most {}", i64::MAX),
        })?;
        let positive = |key: &str, value: f64| {
            let is_usable = value > 0.0 && value.is_finite();
            check(is_usable, key, value, "a positive number")
        };
        let share = |key: &str, value: f64| {
            let is_usable = (0.0..1.0).contains(&value);
            check(is_usable, key, value, "a share from 0 to below 1")
        };
        let not_negative = |key: &str, value: f64| {
            let is_usable = value >= 0.0 && value.is_finite();
            check(is_usable, key, value, "0 or a positive number")
        };
        positive("encoder.dim", self.encoder.dim as f64)?;
        share("encoder.dropout", self.encoder.dropout.into())?;
        // Two tokens are added to each text.
        let max_len = self.encoder.max_len;
        check(max_len > 2, "encoder.max_len", max_len as f64, "at least 3")?;
        let projection = self.encoder.projection.unwrap_or(1);
        positive("encoder.projection", projection as f64)?;
        positive("features.ngrams", self.features.ngrams as f64)?;
        let n_clusters = self.index.n_clusters.unwrap_or(1);
        positive("index.n_clusters", n_clusters as f64)?;
        positive("index.alpha", self.index.alpha.into())?;
        positive("index.beta", self.index.beta.unwrap_or(1.0).into())?;
        positive("index.beta_factor", self.index.beta_factor.into())?;
        positive("index.kappa", self.index.kappa.unwrap_or(1) as f64)?;
        positive("index.beam_size", self.index.beam_size as f64)?;
        positive("index.shortlist_size", self.index.shortlist_size as f64)?;
        not_negative("loss.lambda", self.loss.lambda.into())?;
        not_negative("optim.weight_decay", self.optim.weight_decay.into())?;
        let decay = self.optim.weight_decay_index;
        not_negative("optim.weight_decay_index", decay.into())?;
        positive("optim.update_every", self.optim.update_every as f64)?;
        positive("ensemble.members", self.ensemble.members as f64)?;
        positive("ranker.cost", self.ranker.cost.into())?;
        positive("ranker.n_candidates", self.ranker.n_candidates as f64)?;
        let near_duplicates = self.calibration.hold_out.near_duplicates;
        let is_cosine = near_duplicates > 0.0;
        let key = "calibration.hold_out.near_duplicates";
        check(is_cosine, key, near_duplicates.into(), "a cosine above 0")?;
        let batch_size = self.train.batch_size;
        let is_usable = (1..usize::from(u16::MAX)).contains(&batch_size);
        check(
            is_usable,
            "train.batch_size",
            batch_size as f64,
            "1 to 65534",
        )?;
        for (name, stage) in [("stage1", &self.stage1), ("stage2", &self.stage2)] {
            let rates = &stage.rates;
            positive(&format!("{name}.rates.encoder"), rates.encoder.into())?;
            positive(&format!("{name}.rates.labels"), rates.labels.into())?;
            positive(&format!("{name}.rates.clusters"), rates.clusters.into())?;
            let edges = rates.edges.unwrap_or(rates.labels);
            not_negative(&format!("{name}.rates.edges"), edges.into())?;
        }
        Ok(())
    }
}

/// Checks one value.
pub(super) fn check(is_usable: bool, key: &str, found: f64, expected: &str) -> Result<()> {
    if is_usable {
        Ok(())
    } else {
        Err(unusable(key, found, expected))
    }
}

/// The error of a value that cannot be used.
pub(super) fn unusable(key: &str, found: f64, expected: &str) -> Error {
    Error::Config {
        key: key.to_owned(),
        found: found.to_string(),
        expected: expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_values_are_named() {
        let config = Config::default().with_value("encoder.dropout=1.5").unwrap();
        let error = config.validate().unwrap_err().to_string();
        assert!(
            error.contains("encoder.dropout") && error.contains("1.5"),
            "{error}"
        );
    }
}
