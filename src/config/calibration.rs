//! Settings of score calibration and of the hold-out it is fitted on.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How the decision tree T over (p, q, p·q, f) is grown and mixed into the final score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CalibrationConfig {
    /// Whether training points are held out and scores calibrated on them.
    pub enabled: bool,
    /// Splits between the root and the deepest leaf; 5 as in the released code, the paper does not say.
    pub max_depth: usize,
    /// Fewest examples a leaf may stand on.
    pub min_samples_leaf: usize,
    /// Weight of T(p, q, p·q, f) in the final score; 1 in the paper, 0.3 in the released code.
    pub tree_weight: f32,
    /// Weight of p·q in the final score; 1 in the paper, 0.7 in the released code.
    pub product_weight: f32,
    /// Power of p in that product; 1 in the paper.
    pub model_power: f32,
    /// Power of q in that product; 1 in the paper.
    pub ranker_power: f32,
    /// Whether members are trained again on all points once those held out have served; doubles the time.
    pub refit: bool,
    /// The training points that are held out for it.
    pub hold_out: HoldOutConfig,
}

/// Which training points are held out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HoldOutConfig {
    /// Points held out at most.
    pub n_points: usize,
    /// Share of all points held out at most.
    pub max_share: f32,
    /// Points that must have been found: with fewer, nothing is held out and nothing calibrated.
    pub min_points: usize,
    /// Training points that every label keeps, if it has them.
    pub min_points_per_label: usize,
    /// Cosine from which on points are near duplicates, of which none trains if one is held out; above 1 none are.
    pub near_duplicates: f32,
}

impl Default for CalibrationConfig {
    fn default() -> Self {
        CalibrationConfig {
            enabled: true,
            max_depth: 5,
            min_samples_leaf: 1,
            tree_weight: 1.0,
            product_weight: 1.0,
            model_power: 0.33,
            ranker_power: 0.17,
            refit: true,
            hold_out: HoldOutConfig::default(),
        }
    }
}

impl Default for HoldOutConfig {
    fn default() -> Self {
        HoldOutConfig {
            n_points: 5000,
            max_share: 0.1,
            min_points: 100,
            min_points_per_label: 1,
            near_duplicates: 0.6,
        }
    }
}

impl CalibrationConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first key that cannot be used.
    pub fn validate(&self) -> Result<()> {
        let problem = |key: &str, found: String, expected: &str| {
            Err(Error::Config {
                key: format!("calibration.{key}"),
                found,
                expected: expected.to_string(),
            })
        };
        // 2^20 leaves are more than any hold-out can fill; the bound keeps a tree from a typing error small.
        if 20 < self.max_depth {
            return problem("max_depth", self.max_depth.to_string(), "at most 20");
        }
        if self.min_samples_leaf == 0 {
            return problem("min_samples_leaf", "0".into(), "at least 1");
        }
        for (key, weight) in [
            ("tree_weight", self.tree_weight),
            ("product_weight", self.product_weight),
            ("model_power", self.model_power),
            ("ranker_power", self.ranker_power),
        ] {
            if !weight.is_finite() || weight < 0.0 {
                return problem(key, weight.to_string(), "zero or a positive number");
            }
        }
        if !(0.0..1.0).contains(&self.hold_out.max_share) {
            return problem(
                "hold_out.max_share",
                self.hold_out.max_share.to_string(),
                "a share from 0 to below 1",
            );
        }
        if self.hold_out.near_duplicates.is_nan() || self.hold_out.near_duplicates <= 0.0 {
            return problem(
                "hold_out.near_duplicates",
                self.hold_out.near_duplicates.to_string(),
                "a cosine above 0",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_survive_toml() {
        let config = CalibrationConfig::default();
        config.validate().unwrap();
        let written = toml::to_string(&config).unwrap();
        assert_eq!(
            toml::from_str::<CalibrationConfig>(&written).unwrap(),
            config
        );
    }

    #[test]
    fn unknown_keys_and_unusable_values_are_errors() {
        assert!(toml::from_str::<CalibrationConfig>("depth = 5").is_err());
        let config: CalibrationConfig = toml::from_str("hold_out.max_share = 1.0").unwrap();
        let message = config.validate().unwrap_err().to_string();
        assert!(message.contains("hold_out.max_share"), "{message}");
    }
}
