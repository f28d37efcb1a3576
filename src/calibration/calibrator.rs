//! The final score of a candidate: tree_weight·T(p, q, p·q, f) + product_weight·p·q.

use crate::config::CalibrationConfig;
use crate::error::{Error, Result};

use super::tree::DecisionTree;
use super::tree_fit::TreeLimits;

/// What calibration knows of one candidate of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateScores {
    /// The model's score p.
    pub model: f32,
    /// The ranker's score q.
    pub ranker: f32,
    /// Number of training points of the label, f.
    pub frequency: u32,
}

impl CandidateScores {
    /// p·q.
    #[inline]
    pub fn product(&self) -> f32 {
        self.model * self.ranker
    }

    /// (p, q, p·q, f).
    #[inline]
    fn features(&self) -> [f32; 4] {
        [
            self.model,
            self.ranker,
            self.product(),
            self.frequency as f32,
        ]
    }
}

/// A fitted tree and how it is mixed with p·q.
///
/// Invariants: the tree takes four features; the weights are finite and not negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrator {
    tree: DecisionTree,
    tree_weight: f32,
    product_weight: f32,
}

impl Calibrator {
    /// Fits the tree on candidates of held-out points and whether each is relevant.
    ///
    /// # Errors
    /// [`Error::Config`] for an unusable setting; [`Error::Untrainable`] without candidates, if the lengths differ,
    /// or if a score is not finite.
    pub fn fit(
        candidates: &[CandidateScores],
        relevant: &[bool],
        config: &CalibrationConfig,
    ) -> Result<Self> {
        config.validate()?;
        let mut columns: [Vec<f32>; 4] = Default::default();
        for candidate in candidates {
            for (column, value) in columns.iter_mut().zip(candidate.features()) {
                column.push(value);
            }
        }
        let limits = TreeLimits {
            max_depth: config.max_depth,
            min_samples_leaf: config.min_samples_leaf,
        };
        let tree = DecisionTree::fit(&columns.each_ref().map(Vec::as_slice), relevant, limits)?;
        Calibrator::from_parts(tree, config.tree_weight, config.product_weight)
    }

    /// A calibrator over these parts.
    ///
    /// # Errors
    /// [`Error::InvalidMatrix`] if an invariant does not hold.
    pub fn from_parts(tree: DecisionTree, tree_weight: f32, product_weight: f32) -> Result<Self> {
        if tree.n_features() != 4 {
            return Err(Error::InvalidMatrix(format!(
                "calibration tree over {} features, expected 4",
                tree.n_features()
            )));
        }
        for weight in [tree_weight, product_weight] {
            if !weight.is_finite() || weight < 0.0 {
                return Err(Error::InvalidMatrix(format!(
                    "calibration weight {weight}, expected zero or a positive number"
                )));
            }
        }
        Ok(Calibrator {
            tree,
            tree_weight,
            product_weight,
        })
    }

    /// T.
    pub fn tree(&self) -> &DecisionTree {
        &self.tree
    }

    /// The weights of T and of p·q.
    pub fn weights(&self) -> (f32, f32) {
        (self.tree_weight, self.product_weight)
    }

    /// The final score.
    #[inline]
    pub fn score(&self, candidate: CandidateScores) -> f32 {
        self.tree_weight * self.tree.predict(&candidate.features())
            + self.product_weight * candidate.product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::Node;

    #[test]
    fn score_mixes_the_tree_and_the_product() {
        let candidate = |model, frequency| CandidateScores {
            model,
            ranker: 0.5,
            frequency,
        };
        let candidates = [
            candidate(0.2, 3),
            candidate(0.2, 3),
            candidate(0.8, 3),
            candidate(0.8, 3),
        ];
        let relevant = [false, false, true, false];
        let config = CalibrationConfig {
            tree_weight: 0.3,
            product_weight: 0.7,
            ..CalibrationConfig::default()
        };
        let calibrator = Calibrator::fit(&candidates, &relevant, &config).unwrap();
        let score = calibrator.score(candidate(0.9, 8));
        assert!((score - (0.3 * 0.5 + 0.7 * 0.45)).abs() < 1e-6, "{score}");
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let leaf = vec![Node::Leaf { probability: 0.5 }];
        let tree = |n_features| DecisionTree::from_nodes(leaf.clone(), n_features).unwrap();
        assert!(Calibrator::from_parts(tree(3), 1.0, 1.0).is_err());
        assert!(Calibrator::from_parts(tree(4), f32::NAN, 1.0).is_err());
        assert!(Calibrator::from_parts(tree(4), 1.0, -1.0).is_err());
        assert!(Calibrator::from_parts(tree(4), 0.0, 1.0).is_ok());
    }
}
