//! Growing a decision tree: CART with the Gini impurity and exact splits, as scikit-learn's
//! `DecisionTreeClassifier` grows it.
//!
//! Every feature is sorted once; a split divides each sorted list, keeping its order, so a level of the tree costs
//! one pass over the examples per feature. Among equally good splits the lowest feature, then the lowest threshold
//! wins (scikit-learn chooses at random).

use rayon::prelude::*;

use crate::error::{Error, Result};

use super::tree::{DecisionTree, TreeNode};

/// Values closer than this are not split, as in scikit-learn.
const MIN_GAP: f32 = 1e-7;

/// When to stop growing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeLimits {
    /// Splits between the root and the deepest leaf.
    pub max_depth: usize,
    /// Fewest examples in a leaf.
    pub min_samples_leaf: usize,
}

impl DecisionTree {
    /// Fits a tree; `columns` has one slice per feature, with one value per example.
    ///
    /// Sorting and the search for splits run on the current rayon pool; the tree does not depend on its size.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] without examples, if the lengths differ, or if a value is not finite.
    pub(crate) fn fit(
        columns: &[&[f32]],
        relevant: &[bool],
        limits: TreeLimits,
    ) -> Result<DecisionTree> {
        let n_examples = relevant.len();
        if n_examples == 0 || n_examples >= u32::MAX as usize {
            return Err(Error::CannotTrain(format!(
                "a decision tree needs from 1 to 2^32 - 2 examples, found {n_examples}"
            )));
        }
        for (feature, column) in columns.iter().enumerate() {
            if column.len() != n_examples || column.iter().any(|value| !value.is_finite()) {
                return Err(Error::CannotTrain(format!(
                    "feature {feature} of the decision tree needs {n_examples} finite values"
                )));
            }
        }
        let sorted = columns
            .par_iter()
            .map(|column| {
                let mut order: Vec<u32> = (0..n_examples as u32).collect();
                order.sort_unstable_by(|&a, &b| {
                    column[a as usize]
                        .total_cmp(&column[b as usize])
                        .then(a.cmp(&b))
                });
                order
            })
            .collect();
        let mut growth = TreeGrowth {
            columns,
            relevant,
            limits,
            sorted,
            goes_left: vec![false; n_examples],
            nodes: Vec::new(),
        };
        let n_relevant = relevant.iter().filter(|relevant| **relevant).count();
        growth.grow(ExampleRange {
            start: 0,
            end: n_examples,
            n_relevant,
            depth: 0,
        });
        DecisionTree::from_nodes(growth.nodes, columns.len())
    }
}

/// A tree while it grows.
struct TreeGrowth<'a> {
    columns: &'a [&'a [f32]],
    relevant: &'a [bool],
    limits: TreeLimits,
    /// Per feature: the examples of each node so far, in ascending order of the feature.
    sorted: Vec<Vec<u32>>,
    /// Scratch: the side of every example of the current node.
    goes_left: Vec<bool>,
    nodes: Vec<TreeNode>,
}

/// The examples of one node: a range of every sorted list.
#[derive(Clone, Copy)]
struct ExampleRange {
    start: usize,
    end: usize,
    n_relevant: usize,
    depth: usize,
}

/// A way to divide the examples of a node.
#[derive(Clone, Copy)]
struct CandidateSplit {
    feature: usize,
    threshold: f64,
    n_left: usize,
    n_relevant_left: usize,
    gain: f64,
}

impl TreeGrowth<'_> {
    /// Appends the subtree of these examples.
    fn grow(&mut self, part: ExampleRange) {
        let n_examples = part.end - part.start;
        let is_pure = part.n_relevant == 0 || part.n_relevant == n_examples;
        let is_deep = part.depth >= self.limits.max_depth;
        let is_small = n_examples < 2 * self.limits.min_samples_leaf.max(1);
        let split = if is_pure || is_deep || is_small {
            None
        } else {
            self.best_split(part)
        };
        let Some(split) = split else {
            let probability = (part.n_relevant as f64 / n_examples as f64) as f32;
            self.nodes.push(TreeNode::Leaf { probability });
            return;
        };
        self.divide(part, split);
        let middle = part.start + split.n_left;
        let position = self.nodes.len();
        self.nodes.push(TreeNode::Leaf { probability: 0.0 }); // replaced below, once its right child is known
        self.grow(ExampleRange {
            end: middle,
            n_relevant: split.n_relevant_left,
            depth: part.depth + 1,
            ..part
        });
        self.nodes[position] = TreeNode::Split {
            feature: split.feature as u32,
            threshold: split.threshold,
            right: self.nodes.len() as u32,
        };
        self.grow(ExampleRange {
            start: middle,
            n_relevant: part.n_relevant - split.n_relevant_left,
            depth: part.depth + 1,
            ..part
        });
    }

    fn best_split(&self, part: ExampleRange) -> Option<CandidateSplit> {
        let of_features: Vec<Option<CandidateSplit>> = (0..self.columns.len())
            .into_par_iter()
            .map(|feature| self.best_split_of(feature, part))
            .collect();
        let mut best: Option<CandidateSplit> = None;
        for split in of_features.into_iter().flatten() {
            if best.is_none_or(|best| split.gain > best.gain) {
                best = Some(split);
            }
        }
        best
    }

    /// The split of one feature that lowers the impurity most.
    fn best_split_of(&self, feature: usize, part: ExampleRange) -> Option<CandidateSplit> {
        let column = self.columns[feature];
        let order = &self.sorted[feature][part.start..part.end];
        let min_leaf = self.limits.min_samples_leaf.max(1);
        let mut best: Option<CandidateSplit> = None;
        let mut n_relevant_left = 0;
        for (before, pair) in order.windows(2).enumerate() {
            n_relevant_left += usize::from(self.relevant[pair[0] as usize]);
            let (low, high) = (column[pair[0] as usize], column[pair[1] as usize]);
            let n_left = before + 1;
            if high <= low + MIN_GAP || n_left < min_leaf || order.len() - n_left < min_leaf {
                continue;
            }
            let gain = purity(n_left, n_relevant_left)
                + purity(order.len() - n_left, part.n_relevant - n_relevant_left);
            if best.is_none_or(|best| gain > best.gain) {
                best = Some(CandidateSplit {
                    feature,
                    threshold: 0.5 * f64::from(low) + 0.5 * f64::from(high),
                    n_left,
                    n_relevant_left,
                    gain,
                });
            }
        }
        best
    }

    /// Puts the examples that go left before those that go right, in every sorted list.
    fn divide(&mut self, part: ExampleRange, split: CandidateSplit) {
        let by_feature = &self.sorted[split.feature][part.start..part.end];
        for (place, &example) in by_feature.iter().enumerate() {
            self.goes_left[example as usize] = place < split.n_left;
        }
        let goes_left = &self.goes_left;
        self.sorted.par_iter_mut().for_each(|sorted| {
            let list = &mut sorted[part.start..part.end];
            let right: Vec<u32> = list
                .iter()
                .copied()
                .filter(|&example| !goes_left[example as usize])
                .collect();
            let mut place = 0;
            for from in 0..list.len() {
                if goes_left[list[from] as usize] {
                    list[place] = list[from];
                    place += 1;
                }
            }
            list[place..].copy_from_slice(&right);
        });
    }
}

/// n·(1 − Gini impurity): the part of the gain that depends on the split.
fn purity(n_examples: usize, n_relevant: usize) -> f64 {
    let relevant = n_relevant as f64;
    let other = (n_examples - n_relevant) as f64;
    (relevant * relevant + other * other) / n_examples as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TreeLimits = TreeLimits {
        max_depth: 5,
        min_samples_leaf: 1,
    };

    #[test]
    fn a_clean_split_is_found_halfway() {
        let column = [0.1, 0.9, 0.2, 0.8];
        let tree =
            DecisionTree::fit(&[&[7.0; 4], &column], &[false, true, false, true], LIMITS).unwrap();
        let expected = [
            TreeNode::Split {
                feature: 1,
                threshold: 0.5 * f64::from(0.2f32) + 0.5 * f64::from(0.8f32),
                right: 2,
            },
            TreeNode::Leaf { probability: 0.0 },
            TreeNode::Leaf { probability: 1.0 },
        ];
        assert_eq!(tree.nodes(), expected);
    }

    #[test]
    fn small_leaves_depth_and_equal_values_stop_growth() {
        let column = [0.1, 0.2, 0.3, 0.4];
        let relevant = [true, false, false, false];
        let fit = |limits| DecisionTree::fit(&[&column], &relevant, limits).unwrap();
        let min_samples_leaf = TreeLimits {
            min_samples_leaf: 2,
            ..LIMITS
        };
        assert_eq!(fit(min_samples_leaf).predict(&[0.1]), 0.5);
        let max_depth = TreeLimits {
            max_depth: 0,
            ..LIMITS
        };
        assert_eq!(
            fit(max_depth).nodes(),
            [TreeNode::Leaf { probability: 0.25 }]
        );
        let equal = DecisionTree::fit(&[&[0.5; 4]], &relevant, LIMITS).unwrap();
        assert_eq!(equal.nodes(), [TreeNode::Leaf { probability: 0.25 }]);
    }

    #[test]
    fn invalid_examples_are_errors() {
        assert!(DecisionTree::fit(&[&[]], &[], LIMITS).is_err());
        assert!(DecisionTree::fit(&[&[1.0]], &[true, false], LIMITS).is_err());
        assert!(DecisionTree::fit(&[&[f32::NAN]], &[true], LIMITS).is_err());
    }
}
