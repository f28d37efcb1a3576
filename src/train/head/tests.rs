//! The fast step and the reference against golden values, and against each other on random heads.
//!
//! The goldens were computed in float64 by automatic differentiation of the paper's equations.

use proptest::prelude::*;
use serde_json::Value;

use super::cases::{floats, rows};
use super::*;
use crate::reference::{Gradients, Step};

/// Agreement of two arrays, relative to the largest entry.
fn check(what: &str, got: &[Vec<f64>], expected: &[Vec<f64>], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let largest = expected
        .iter()
        .flatten()
        .fold(1e-3f64, |m, x| m.max(x.abs()));
    for (row, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.len(), expected.len(), "{what} row {row}");
        for (got, expected) in got.iter().zip(expected) {
            assert!(
                (got - expected).abs() <= tolerance * largest,
                "{what} row {row}: {got} instead of {expected}"
            );
        }
    }
}

pub(super) fn check_gradients(
    got: &Gradients,
    expected: &Gradients,
    is_learned: bool,
    tolerance: f64,
) {
    check("phi", &got.phi, &expected.phi, tolerance);
    check(
        "W_C",
        &got.cluster_weights,
        &expected.cluster_weights,
        tolerance,
    );
    check(
        "b_C",
        std::slice::from_ref(&got.cluster_bias),
        std::slice::from_ref(&expected.cluster_bias),
        tolerance,
    );
    check(
        "W_L",
        &got.label_weights,
        &expected.label_weights,
        tolerance,
    );
    check(
        "b_L",
        std::slice::from_ref(&got.label_bias),
        std::slice::from_ref(&expected.label_bias),
        tolerance,
    );
    if is_learned {
        check("a", &got.a, &expected.a, tolerance);
    }
}

fn goldens() -> Vec<(String, Value)> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/goldens");
    let directory = std::env::var("ELIAS_GOLDENS").unwrap_or_else(|_| own.into());
    let mut goldens = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("head_") && name.ends_with(".json") {
            goldens.push((
                name,
                serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(),
            ));
        }
    }
    assert!(!goldens.is_empty(), "no head_*.json in {directory}");
    goldens
}

pub(super) fn golden_gradients(expected: &Value) -> Gradients {
    Gradients {
        phi: rows(&expected["phi"]),
        cluster_weights: rows(&expected["WC"]),
        cluster_bias: floats(&expected["bC"]),
        label_weights: rows(&expected["WL"]),
        label_bias: floats(&expected["bL"]),
        a: if expected["a"].is_array() {
            rows(&expected["a"])
        } else {
            Vec::new()
        },
    }
}

#[test]
fn losses_and_gradients_agree_with_the_goldens() {
    for (name, golden) in goldens() {
        let case = Step::from_golden(&golden);
        for (key, classification, shortlist) in [
            ("grad_classification", 1.0, 0.0),
            ("grad_shortlist", 0.0, 1.0),
        ] {
            let expected = golden_gradients(&golden["expected"][key]);
            let slow = case.outcome(classification, shortlist);
            check_gradients(&slow.gradients, &expected, case.beta.is_some(), 1e-8);
            let weights = LossWeights {
                classification: classification as f32,
                shortlist: shortlist as f32,
            };
            let (loss, gradients) = case.fast(weights);
            check_gradients(&gradients, &expected, case.beta.is_some(), 1e-5);
            for (got, key) in [
                (loss.classification, "classification_loss_sum"),
                (loss.shortlist, "shortlist_loss_sum"),
            ] {
                let expected = golden["expected"][key].as_f64().unwrap();
                assert!(
                    (got - expected).abs() <= 1e-5 * expected.abs(),
                    "{name} {key}: {got} instead of {expected}"
                );
            }
        }
    }
}

#[test]
fn shortlists_agree_with_the_goldens() {
    for (name, golden) in goldens() {
        let case = Step::from_golden(&golden);
        let (clusters, adjacency, classifiers) =
            (case.clusters(), case.adjacency(), case.classifiers());
        let (labels, parents) = (case.targets(), adjacency.parents());
        let mut searcher = Shortlister::new(case.n_labels());
        let expected_scores = rows(&golden["expected"]["cluster_scores"]);
        for (mode, is_training) in [("training", true), ("prediction", false)] {
            for point in 0..case.phi.len() {
                let embedding: Vec<f32> = case.phi[point].iter().map(|&x| x as f32).collect();
                let mut probabilities = vec![0.0; case.n_clusters()];
                clusters.probabilities(&embedding, &mut probabilities);
                for (cluster, expected) in probabilities.iter().zip(&expected_scores[point]) {
                    assert!((f64::from(clusters.score(*cluster)) - expected).abs() < 1e-5);
                }
                if is_training {
                    let positives = labels.row(point).0;
                    let of_positives = positives.iter().filter_map(|&p| parents[p as usize]);
                    searcher.select(&clusters, &probabilities, case.beam_size, of_positives);
                    searcher.search_selected(&adjacency, &case.options(), labels.row(point));
                } else {
                    searcher.search(&clusters, &adjacency, &probabilities, &case.options());
                }
                searcher.sort();
                let expected = &golden["expected"][mode][point];
                let got: Vec<usize> = searcher.selected.iter().map(|s| s.cluster.idx()).collect();
                let as_ids = |key: &str| -> Vec<usize> {
                    let ids = floats(&expected[key]).into_iter();
                    ids.map(|x| x as usize).collect()
                };
                assert_eq!(got, as_ids("clusters"), "{name} {mode} {point}");
                let got: Vec<usize> = searcher.paths.iter().map(|path| path.row.idx()).collect();
                assert_eq!(got, as_ids("shortlist"), "{name} {mode} {point}");
                let via: Vec<usize> = searcher
                    .paths
                    .iter()
                    .map(|path| searcher.selected[path.slot as usize].cluster.idx())
                    .collect();
                assert_eq!(via, as_ids("via_cluster"), "{name} {mode} {point}");
                for (at, path) in searcher.paths.iter().enumerate() {
                    let z = classifiers.weights.dot(path.row.idx(), &embedding);
                    let score = crate::classifiers::sigmoid(z + classifiers.bias[path.row.idx()])
                        * path.score;
                    let close = |got: f32, key: &str| {
                        (f64::from(got) - floats(&expected[key])[at]).abs() < 1e-5
                    };
                    assert!(
                        close(path.score, "shortlist_score") && close(score, "score"),
                        "{name} {mode} {point}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_fast_step_agrees_with_the_reference(
        seed in 0u64..100_000, dim in 1usize..40, is_learned: bool, is_weighted: bool,
    ) {
        let case = Step::random(seed, dim, is_learned);
        let case = if is_weighted { case.weighted(seed) } else { case };
        let slow = case.outcome(0.7, 0.3);
        let (loss, gradients) = case.fast(LossWeights { classification: 0.7, shortlist: 0.3 });
        check_gradients(&gradients, &slow.gradients, is_learned, 2e-4);
        prop_assert!((loss.classification - slow.classification_loss).abs() <= 1e-4 * slow.classification_loss.abs() + 1e-6);
        prop_assert!((loss.shortlist - slow.shortlist_loss).abs() <= 1e-4 * slow.shortlist_loss.abs() + 1e-6);
    }
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    let case = Step::random(11, 5, true);
    let total = |case: &Step| {
        let outcome = case.outcome(1.0, 0.2);
        outcome.classification_loss + 0.2 * outcome.shortlist_loss
    };
    let gradients = case.outcome(1.0, 0.2).gradients;
    let step = 1e-6;
    let nudged = |change: &dyn Fn(&mut Step, f64)| {
        let (mut up, mut down) = (case.clone(), case.clone());
        change(&mut up, step);
        change(&mut down, -step);
        (total(&up) - total(&down)) / (2.0 * step)
    };
    let check = |got: f64, expected: f64| {
        assert!(
            (got - expected).abs() < 1e-4 * (1.0 + expected.abs()),
            "{got} {expected}"
        )
    };
    check(
        gradients.phi[0][1],
        nudged(&|case, step| case.phi[0][1] += step),
    );
    check(
        gradients.cluster_weights[1][2],
        nudged(&|case, step| case.cluster_weights[1][2] += step),
    );
    check(
        gradients.cluster_bias[0],
        nudged(&|case, step| case.cluster_bias[0] += step),
    );
    let label = case.positives.iter().flatten().next().copied().unwrap();
    check(
        gradients.label_weights[label][0],
        nudged(&|case, step| case.label_weights[label][0] += step),
    );
    check(
        gradients.label_bias[label],
        nudged(&|case, step| case.label_bias[label] += step),
    );
    check(
        gradients.a[0][0],
        nudged(&|case, step| case.a[0][0] += step),
    );
}
