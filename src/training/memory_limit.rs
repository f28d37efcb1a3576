//! Whether a training fits into memory.

use super::MemoryEstimate;
use crate::data::memory_of_machine;
use crate::error::{Error, Result};

impl MemoryEstimate {
    /// Checks that the training fits into so many bytes, or into the memory of the machine, as far as that is known.
    ///
    /// # Errors
    /// [`Error::TooLittleMemory`] with both sizes and the settings to change.
    pub fn check(&self, limit: Option<usize>) -> Result<()> {
        let (limit, whose) = match (limit, memory_of_machine()) {
            (Some(limit), _) => (limit, "the limit"),
            (None, Some(limit)) => (limit, "this machine's memory"),
            (None, None) => return Ok(()),
        };
        if self.total() <= limit {
            return Ok(());
        }
        Err(Error::TooLittleMemory {
            needed: size(self.total()),
            limit: format!("{whose} of {}", size(limit)),
            remedy: self.remedy(),
        })
    }

    /// Which keys to change to save memory, the most effective first.
    fn remedy(&self) -> &'static str {
        let training = self.parameters + self.moments + self.step;
        let parameters = self.parameters + self.moments;
        let ranker = self.parameters + self.ranker;
        if self.members > training {
            "train fewer members"
        } else if ranker > training.max(self.clustering) {
            "lower features.max_features, or turn the ranker off with ranker.enabled"
        } else if self.clustering > training {
            "lower features.max_features or raise features.min_df: clustering needs the most"
        } else if self.step > parameters {
            "lower train.batch_size or index.shortlist_size"
        } else {
            "lower encoder.dim, features.max_features or index.kappa, or raise features.min_df"
        }
    }
}

/// A size with a unit.
pub fn size(n_bytes: usize) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n_bytes < 1024 {
        return format!("{n_bytes} B");
    }
    let mut value = n_bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while value >= 1024.0
        && let Some(larger) = units.next()
    {
        value /= 1024.0;
        unit = Some(larger);
    }
    format!("{value:.2} {}", unit.unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_training_that_does_not_fit_names_sizes_and_settings() {
        let estimate = MemoryEstimate {
            parameters: 3 << 30,
            ..MemoryEstimate::default()
        };
        estimate.check(Some(estimate.total())).unwrap();
        let message = estimate.check(Some(1 << 20)).unwrap_err().to_string();
        assert!(
            message.contains("the limit of 1.00 MiB; lower"),
            "{message}"
        );
        assert_eq!([size(5), size(1536)], ["5 B", "1.50 KiB"]);
    }
}
