//! The final score of a candidate: tree_weight·T(p, q, p·q, f) + product_weight·p·q.
//!
//! T has one value per leaf, so the second term orders the candidates within a leaf.

use crate::error::{Error, Result};

use super::tree::DecisionTree;
use super::tree_fit::TreeLimits;

/// The scores of one candidate of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CandidateScores {
    /// The model's score p.
    pub model: f32,
    /// The ranker's score q.
    pub ranker: f32,
    /// Number of training points of the label, f.
    pub frequency: f32,
}

impl CandidateScores {
    /// p·q.
    #[inline]
    pub(crate) fn product(&self) -> f32 {
        self.model * self.ranker
    }

    /// (p, q, p·q, f).
    #[inline]
    fn features(&self) -> [f32; 4] {
        [self.model, self.ranker, self.product(), self.frequency]
    }
}

/// How T is mixed with p and q.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mixing {
    /// Weight of T.
    pub tree_weight: f32,
    /// Weight of the product.
    pub product_weight: f32,
}

impl Mixing {
    /// T + p·q.
    pub(crate) const PAPER: Mixing = Mixing {
        tree_weight: 1.0,
        product_weight: 1.0,
    };
    /// 0.3·T + 0.7·p·q.
    pub(crate) const RELEASED: Mixing = Mixing {
        tree_weight: 0.3,
        product_weight: 0.7,
    };
}

/// Limits of the tree: the depth of the released code, as the paper does not give one.
pub(crate) const TREE_LIMITS: TreeLimits = TreeLimits {
    max_depth: 5,
    min_samples_leaf: 1,
};

/// A fitted tree and how it is mixed with p and q.
///
/// Invariants: the tree takes four features; weights are finite and not negative.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calibrator {
    tree: DecisionTree,
    mixing: Mixing,
}

impl Calibrator {
    /// Fits the tree on candidates of held-out points and whether each is relevant.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] without candidates, if the lengths differ,
    /// or if a score is not finite.
    pub(crate) fn fit(
        candidates: &[CandidateScores],
        relevant: &[bool],
        limits: TreeLimits,
        mixing: Mixing,
    ) -> Result<Self> {
        let mut columns: [Vec<f32>; 4] = Default::default();
        for candidate in candidates {
            for (column, value) in columns.iter_mut().zip(candidate.features()) {
                column.push(value);
            }
        }
        let tree = DecisionTree::fit(&columns.each_ref().map(Vec::as_slice), relevant, limits)?;
        Calibrator::from_parts(tree, mixing)
    }

    /// A calibrator from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_parts(tree: DecisionTree, mixing: Mixing) -> Result<Self> {
        if tree.n_features() != 4 {
            return Err(Error::InvalidModel(format!(
                "the calibration tree has {} features, expected 4",
                tree.n_features()
            )));
        }
        for number in [mixing.tree_weight, mixing.product_weight] {
            if !number.is_finite() || number < 0.0 {
                return Err(Error::InvalidModel(format!(
                    "a calibration weight is {number}, expected at least 0"
                )));
            }
        }
        Ok(Calibrator { tree, mixing })
    }

    /// T.
    pub(crate) fn tree(&self) -> &DecisionTree {
        &self.tree
    }

    /// How T is mixed with p and q.
    pub(crate) fn mixing(&self) -> Mixing {
        self.mixing
    }

    /// The final score.
    #[inline]
    pub(crate) fn score(&self, candidate: CandidateScores) -> f32 {
        let Mixing {
            tree_weight,
            product_weight,
        } = self.mixing;
        let tree = self.tree.predict(&candidate.features());
        tree_weight * tree + product_weight * candidate.product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::TreeNode;

    #[test]
    fn score_mixes_the_tree_and_the_product() {
        let candidate = |model, frequency| CandidateScores {
            model,
            ranker: 0.5,
            frequency,
        };
        let candidates = [
            candidate(0.2, 3.0),
            candidate(0.2, 3.0),
            candidate(0.8, 3.0),
            candidate(0.8, 3.0),
        ];
        let relevant = [false, false, true, false];
        let mixing = Mixing {
            tree_weight: 0.3,
            product_weight: 0.7,
        };
        let calibrator = Calibrator::fit(&candidates, &relevant, TREE_LIMITS, mixing).unwrap();
        let score = calibrator.score(candidate(0.9, 8.0));
        assert!((score - (0.3 * 0.5 + 0.7 * 0.45)).abs() < 1e-6, "{score}");
    }

    #[test]
    fn parts_that_do_not_fit_together_are_errors() {
        let leaf = vec![TreeNode::Leaf { probability: 0.5 }];
        let tree = |n_features| DecisionTree::from_nodes(leaf.clone(), n_features).unwrap();
        let mixing = |tree_weight, product_weight| Mixing {
            tree_weight,
            product_weight,
        };
        let is_ok = |n_features, mixing| Calibrator::from_parts(tree(n_features), mixing).is_ok();
        assert!(is_ok(4, mixing(0.0, 1.0)));
        assert!(!is_ok(3, mixing(1.0, 1.0)));
        assert!(!is_ok(4, mixing(f32::NAN, 1.0)));
        assert!(!is_ok(4, mixing(1.0, -1.0)));
        assert!(!is_ok(4, mixing(1.0, f32::INFINITY)));
    }
}
