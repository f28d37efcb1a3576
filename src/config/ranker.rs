//! Settings of the sparse ranker.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What a label's linear classifier minimises besides ½‖w‖².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankerLoss {
    /// Σ C·max(0, 1 − y·z)², the loss of the authors' released code.
    #[default]
    SquaredHinge,
    /// Σ C·log(1 + exp(−y·z)), the loss of the paper.
    Logistic,
}

/// How the sparse ranker is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RankerConfig {
    /// Whether the best candidates are re-ranked at all.
    pub enabled: bool,
    /// Loss of the classifiers; squared hinge as in the released code, the paper names the logistic loss.
    pub loss: RankerLoss,
    /// C of points that have the label: the weight of their loss against ½‖w‖².
    pub cost_positive: f32,
    /// C of candidate points that do not have the label.
    pub cost_negative: f32,
    /// Largest violation of the optimality conditions at which a classifier counts as solved.
    pub tolerance: f32,
    /// Passes over a label's points after which its classifier is taken as it is.
    pub max_iterations: usize,
    /// Value of the constant feature that carries the intercept; 0 trains without an intercept.
    pub bias: f32,
    /// Word weights whose magnitude is below this are dropped after training.
    pub threshold: f32,
    /// How many of a point's best candidates count as training points of their labels.
    pub n_candidates: usize,
    /// Whether the embedding φ/‖φ‖ is a part of the features besides the words.
    pub use_embedding: bool,
}

impl Default for RankerConfig {
    fn default() -> Self {
        RankerConfig {
            enabled: true,
            loss: RankerLoss::SquaredHinge,
            cost_positive: 0.5,
            cost_negative: 0.5,
            tolerance: 0.1,
            max_iterations: 100,
            bias: 1.0,
            threshold: 0.1,
            n_candidates: 100,
            use_embedding: false,
        }
    }
}

impl RankerConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first key that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let positive = |value: f32| value.is_finite() && 0.0 < value;
        let not_negative = |value: f32| value.is_finite() && 0.0 <= value;
        let checks = [
            (
                "cost_positive",
                self.cost_positive,
                positive(self.cost_positive),
                "a positive number",
            ),
            (
                "cost_negative",
                self.cost_negative,
                positive(self.cost_negative),
                "a positive number",
            ),
            (
                "tolerance",
                self.tolerance,
                positive(self.tolerance),
                "a positive number",
            ),
            (
                "max_iterations",
                self.max_iterations as f32,
                0 < self.max_iterations,
                "at least 1",
            ),
            (
                "bias",
                self.bias,
                not_negative(self.bias),
                "zero or a positive number",
            ),
            (
                "threshold",
                self.threshold,
                not_negative(self.threshold),
                "zero or a positive number",
            ),
            (
                "n_candidates",
                self.n_candidates as f32,
                0 < self.n_candidates,
                "at least 1",
            ),
        ];
        match checks.into_iter().find(|(_, _, usable, _)| !usable) {
            None => Ok(()),
            Some((key, found, _, expected)) => Err(Error::Config {
                key: format!("ranker.{key}"),
                found: found.to_string(),
                expected: expected.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_toml() {
        let config = RankerConfig::default();
        config.validate().unwrap();
        let written = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<RankerConfig>(&written).unwrap(), config);
    }

    #[test]
    fn unknown_keys_and_unusable_values_are_errors() {
        assert!(toml::from_str::<RankerConfig>("costs = 1.0").is_err());
        let config: RankerConfig = toml::from_str("tolerance = 0.0").unwrap();
        let message = config.validate().unwrap_err().to_string();
        assert!(message.contains("ranker.tolerance"), "{message}");
    }
}
