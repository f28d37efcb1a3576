//! A binary decision tree that estimates a probability.

use crate::error::{Error, Result};

/// One node of a [`DecisionTree`]; the left child of a split is the next node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TreeNode {
    /// Goes left if the feature is at most the threshold, right otherwise.
    Split {
        /// Which feature.
        feature: u32,
        /// Halfway between two neighbouring values; `f64` so that it lies between them even if they are next to
        /// each other in `f32`.
        threshold: f64,
        /// Position of the right child.
        right: u32,
    },
    /// The share of relevant examples in this leaf.
    Leaf {
        /// Between 0 and 1.
        probability: f32,
    },
}

/// A decision tree in preorder.
///
/// Invariants: nodes form one tree in preorder (a node, its left subtree, its right subtree); features are below
/// `n_features`; thresholds are finite; probabilities lie in 0..=1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DecisionTree {
    nodes: Vec<TreeNode>,
    n_features: usize,
}

impl DecisionTree {
    /// A tree from its nodes.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_nodes(nodes: Vec<TreeNode>, n_features: usize) -> Result<Self> {
        let invalid =
            |problem: String| Err(Error::InvalidModel(format!("decision tree: {problem}")));
        // The expected positions of the right subtrees of enclosing splits, innermost last.
        let mut pending: Vec<usize> = Vec::new();
        let mut complete = false;
        for (position, node) in nodes.iter().enumerate() {
            if complete {
                return invalid(format!("node {position} is after the end of the tree"));
            }
            match *node {
                TreeNode::Split {
                    feature,
                    threshold,
                    right,
                } => {
                    if feature as usize >= n_features || !threshold.is_finite() {
                        return invalid(format!(
                            "node {position} splits feature {feature} of {n_features} at {threshold}"
                        ));
                    }
                    pending.push(right as usize);
                }
                TreeNode::Leaf { probability } => {
                    if !(0.0..=1.0).contains(&probability) {
                        return invalid(format!("leaf {position} has probability {probability}"));
                    }
                    match pending.pop() {
                        None => complete = true,
                        Some(right) if right == position + 1 => {}
                        Some(right) => {
                            return invalid(format!(
                                "a right child is at {right}, expected {}",
                                position + 1
                            ));
                        }
                    }
                }
            }
        }
        if !complete {
            return invalid(format!("{} nodes do not complete a tree", nodes.len()));
        }
        Ok(DecisionTree { nodes, n_features })
    }

    /// The nodes in preorder.
    pub(crate) fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// Number of features.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
    }

    /// The probability at the leaf these features lead to. NaN goes right.
    ///
    /// # Panics
    /// If there are fewer features than the tree's.
    #[inline]
    pub(crate) fn predict(&self, features: &[f32]) -> f32 {
        let mut position = 0;
        loop {
            match self.nodes[position] {
                TreeNode::Leaf { probability } => return probability,
                TreeNode::Split {
                    feature,
                    threshold,
                    right,
                } => {
                    position = if f64::from(features[feature as usize]) <= threshold {
                        position + 1
                    } else {
                        right as usize
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(feature: u32, right: u32) -> TreeNode {
        TreeNode::Split {
            feature,
            threshold: 0.5,
            right,
        }
    }

    fn leaf(probability: f32) -> TreeNode {
        TreeNode::Leaf { probability }
    }

    #[test]
    fn prediction_follows_the_splits() {
        let nodes = vec![split(0, 2), leaf(0.1), split(1, 4), leaf(0.2), leaf(0.3)];
        let tree = DecisionTree::from_nodes(nodes, 2).unwrap();
        assert_eq!(tree.predict(&[0.5, 9.0]), 0.1);
        assert_eq!(tree.predict(&[0.6, 0.0]), 0.2);
        assert_eq!(tree.predict(&[f32::NAN, f32::NAN]), 0.3);
    }

    #[test]
    fn nodes_that_do_not_form_a_tree_are_an_error() {
        let check = |nodes: &[TreeNode], part_of_message: &str| {
            let message = DecisionTree::from_nodes(nodes.to_vec(), 2)
                .unwrap_err()
                .to_string();
            assert!(message.contains(part_of_message), "{message}");
        };
        check(&[], "do not complete");
        check(&[split(0, 2), leaf(0.0)], "do not complete");
        check(&[leaf(0.0), leaf(0.0)], "after the end");
        check(&[split(2, 2), leaf(0.0), leaf(0.0)], "feature 2 of 2");
        check(
            &[split(0, 0), leaf(0.0), leaf(0.0)],
            "a right child is at 0",
        );
        check(
            &[split(0, 1), leaf(0.0), leaf(0.0)],
            "a right child is at 1",
        );
        check(
            &[split(0, 9), leaf(0.0), leaf(0.0)],
            "a right child is at 9",
        );
        check(&[leaf(f32::NAN)], "probability NaN");
    }
}
