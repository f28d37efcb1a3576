//! Calibration against scikit-learn, by `tests/fixtures/calibration.json`, which `make_calibration.py` beside it wrote.

use crate::calibration::isotonic::pool;
use crate::calibration::{
    Calibrator, CandidateScores, DecisionTree, Isotonic, Mixing, TreeLimits, TreeNode,
};
use crate::on_threads;
use serde_json::Value;

fn fixture() -> Value {
    serde_json::from_str(include_str!("../../tests/fixtures/calibration.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

fn candidates(fixture: &Value) -> (Vec<CandidateScores>, Vec<bool>) {
    let (model, ranker) = (numbers(&fixture["model"]), numbers(&fixture["ranker"]));
    let frequency = numbers(&fixture["frequency"]);
    let candidates = (0..model.len())
        .map(|at| CandidateScores {
            model: model[at] as f32,
            ranker: ranker[at] as f32,
            frequency: frequency[at] as f32,
        })
        .collect();
    let relevant = fixture["relevant"].as_array().unwrap();
    (
        candidates,
        relevant.iter().map(|x| x.as_bool().unwrap()).collect(),
    )
}

/// The tree with these limits, and its Brier score on the training examples.
fn fit(fixture: &Value, limits: &Value) -> (DecisionTree, f64) {
    let (candidates, relevant) = candidates(fixture);
    let limits = TreeLimits {
        max_depth: limits["max_depth"].as_u64().unwrap() as usize,
        min_samples_leaf: limits["min_samples_leaf"].as_u64().unwrap() as usize,
    };
    let tree_alone = Mixing {
        tree_weight: 1.0,
        product_weight: 0.0,
    };
    let calibrator = Calibrator::fit(&candidates, &relevant, limits, tree_alone).unwrap();
    let errors = candidates
        .iter()
        .zip(&relevant)
        .map(|(candidate, &relevant)| {
            (f64::from(calibrator.score(*candidate)) - f64::from(relevant)).powi(2)
        });
    let brier = errors.sum::<f64>() / relevant.len() as f64;
    (calibrator.tree().clone(), brier)
}

#[test]
fn trees_split_like_scikit_learns_where_no_two_splits_are_equally_good() {
    let fixture = fixture();
    for expected in fixture["trees"].as_array().unwrap() {
        let (tree, brier) = fit(&fixture, expected);
        // scikit-learn also numbers nodes in preorder; it marks leaves by the feature -2.
        let features = numbers(&expected["features"]);
        let thresholds = numbers(&expected["thresholds"]);
        assert_eq!(tree.nodes().len(), features.len());
        for (position, node) in tree.nodes().iter().enumerate() {
            match *node {
                TreeNode::Leaf { .. } => assert_eq!(features[position], -2.0, "node {position}"),
                TreeNode::Split {
                    feature, threshold, ..
                } => {
                    assert_eq!(f64::from(feature), features[position], "node {position}");
                    assert!((threshold - thresholds[position]).abs() < 1e-9);
                }
            }
        }
        assert!(
            (brier - expected["brier"].as_f64().unwrap()).abs() < 1e-6,
            "{brier}"
        );
    }
}

#[test]
fn trees_with_equally_good_splits_score_within_the_range_of_scikit_learns() {
    let fixture = fixture();
    for expected in fixture["tied_trees"].as_array().unwrap() {
        let (_, brier) = fit(&fixture, expected);
        let range = numbers(&expected["brier_range"]);
        assert!(
            range[0] - 1e-6 <= brier && brier <= range[1] + 1e-6,
            "{brier} {range:?}"
        );
    }
}

#[test]
fn isotonic_regression_predicts_like_scikit_learns() {
    let fixture = fixture();
    let scores: Vec<f32> = numbers(&fixture["scores"])
        .iter()
        .map(|&x| x as f32)
        .collect();
    // scikit-learn's function is constant within a pool.
    let pools = pool(&scores, &candidates(&fixture).1);
    let mut ascending = scores.clone();
    ascending.sort_by(f32::total_cmp);
    let (mut knots, mut shares) = (Vec::new(), Vec::new());
    for pool in &pools {
        let of_pool: Vec<f32> = ascending.drain(..pool.n_examples as usize).collect();
        let mut ends = vec![of_pool[0], of_pool[of_pool.len() - 1]];
        ends.dedup();
        shares.extend(ends.iter().map(|_| pool.share() as f32));
        knots.extend(ends);
    }
    let fitted = Isotonic::from_parts(knots, shares).unwrap();
    for (query, expected) in numbers(&fixture["queries"])
        .iter()
        .zip(numbers(&fixture["isotonic"]))
    {
        let found = f64::from(fitted.predict(*query as f32));
        assert!(
            (found - expected).abs() < 1e-5,
            "{query}: {found}, expected {expected}"
        );
    }
}

#[test]
fn the_tree_is_the_same_on_one_and_on_eight_threads() {
    let (candidates, relevant) = candidates(&fixture());
    let column: Vec<f32> = candidates.iter().map(|candidate| candidate.model).collect();
    let other: Vec<f32> = candidates
        .iter()
        .map(|candidate| candidate.ranker)
        .collect();
    let limits = TreeLimits {
        max_depth: 8,
        min_samples_leaf: 1,
    };
    let fit = || DecisionTree::fit(&[&column, &other], &relevant, limits).unwrap();
    assert_eq!(on_threads(1, fit), on_threads(8, fit));
}
