//! The sparse ranker against optima computed independently in `f64`, by Newton's method.

mod prior;
mod problem;

use std::ops::{ControlFlow, Range};

use self::problem::*;
use crate::communicator::{Communicator, SingleProcess, threads};
use crate::config::{Precision, RankerLoss};
use crate::events::POINTS_PER_EVENT;
use crate::ids::{ClusterId, LabelId};
use crate::matrix::{CsrMatrix, Matrix};
use crate::on_threads;
use crate::ranker::{
    ClusterTree, ClusterTreeParts, Negatives, PointView, Ranker, RankerOptions, RankerParts,
    RankerProblem, RankerScratch,
};

/// The defaults in full precision, with embeddings in ψ as in the paper.
fn defaults() -> RankerOptions {
    RankerOptions {
        use_embedding: true,
        precision: Precision::Full,
        ..RankerOptions::default()
    }
}

fn check_near_optimum(config: &RankerOptions, allowed_excess: f64) {
    let problem = problem(120, 9, 1);
    let ranker = problem.train(config);
    for label_idx in 0..9 {
        let points = problem.training_points(label_idx as u32, config);
        let weights = dense_weights(&ranker, label_idx, config.bias);
        let reached = objective(&points, config.loss, &weights);
        let least = least_objective(&points, config.loss);
        assert!(
            reached <= least * (1.0 + allowed_excess),
            "label {label_idx}: reached {reached}, least {least}"
        );
        assert!(reached >= least * (1.0 - 1e-6), "the oracle is not optimal");
    }
}

fn exact(loss: RankerLoss) -> RankerOptions {
    RankerOptions {
        loss,
        tolerance: 0.001,
        max_iterations: 2000,
        threshold: 0.0,
        ..defaults()
    }
}

#[test]
fn both_losses_reach_the_optimum_within_a_thousandth() {
    for loss in [RankerLoss::SquaredHinge, RankerLoss::Logistic] {
        check_near_optimum(&exact(loss), 1e-3);
        // Costs and bias that make every part of the formula count.
        let uneven = RankerOptions {
            cost_positive: 5.0,
            cost_negative: 0.3,
            bias: 0.5,
            ..exact(loss)
        };
        check_near_optimum(&uneven, 1e-3);
    }
}

#[test]
fn the_default_tolerance_stays_within_two_percent_of_the_optimum() {
    for loss in [RankerLoss::SquaredHinge, RankerLoss::Logistic] {
        let config = RankerOptions {
            loss,
            threshold: 0.0,
            ..defaults()
        };
        check_near_optimum(&config, 0.02);
    }
}

#[test]
fn training_gives_the_same_weights_on_one_and_on_eight_threads() {
    let problem = problem(200, 30, 2);
    let train = || problem.train(&defaults());
    assert_eq!(on_threads(1, train), on_threads(8, train));
}

#[test]
fn scores_are_the_margins_of_dense_features() {
    let problem = problem(50, 9, 3);
    let config = exact(RankerLoss::SquaredHinge);
    let ranker = problem.train(&config);
    let candidates = [7, 0, 7, 3].map(LabelId);
    let mut scratch = RankerScratch::default();
    let mut margins = Vec::new();
    for point_idx in 0..50 {
        ranker.score(
            problem.point(point_idx),
            &candidates,
            &mut scratch,
            &mut margins,
        );
        let features = problem.features(point_idx, config.bias);
        for (label, &margin) in candidates.iter().zip(&margins) {
            let weights = dense_weights(&ranker, label.idx(), config.bias);
            let expected: f64 = features.iter().zip(&weights).map(|(x, w)| x * w).sum();
            assert!((f64::from(margin) - expected).abs() < 1e-4);
            let parts = ranker.explain(problem.point(point_idx), *label, N_WORDS);
            let sum =
                parts.words.iter().map(|word| word.1).sum::<f32>() + parts.dense + parts.intercept;
            assert!(
                (sum - margin).abs() < 1e-4,
                "explained {sum}, scored {margin}"
            );
        }
    }
}

/// As they were trained.
fn parts_of(ranker: &Ranker) -> RankerParts {
    RankerParts {
        loss: ranker.loss(),
        words: ranker.words(),
        steps: ranker.steps().map(<[f32]>::to_vec),
        dense: ranker.dense().clone(),
        intercepts: ranker.intercepts().to_vec(),
        clusters: ranker.clusters().cloned(),
    }
}

#[test]
fn scores_do_not_depend_on_what_is_held_by_term_and_what_by_label() {
    let problem = problem(120, 30, 5);
    let parts = parts_of(&problem.train(&defaults()));
    let by_term = parts.words.transpose();
    let mut counts: Vec<usize> = (0..N_WORDS).map(|word| by_term.row(word).0.len()).collect();
    counts.sort_unstable();
    let divided = |max_labels| Ranker::divided(parts.clone(), max_labels).unwrap();
    // All by label, all by term, and both.
    let rankers = [0, usize::MAX, counts[N_WORDS / 2]].map(divided);
    assert_eq!(rankers[0].by_term().nnz(), 0);
    assert_eq!(rankers[1].by_label().nnz(), 0);
    assert!(rankers[2].by_term().nnz() > 0 && rankers[2].by_label().nnz() > 0);
    let candidates = [7, 0, 7, 29].map(LabelId);
    let mut scratch = RankerScratch::default();
    let (mut margins, mut expected) = (Vec::new(), Vec::new());
    for point_idx in 0..120 {
        let point = problem.point(point_idx);
        rankers[0].score(point, &candidates, &mut scratch, &mut expected);
        for ranker in &rankers {
            ranker.score(point, &candidates, &mut scratch, &mut margins);
            let pairs = margins.iter().zip(&expected);
            assert!(
                pairs.clone().all(|(a, b)| (a - b).abs() < 1e-5),
                "{pairs:?}"
            );
            let explained = ranker.explain(point, LabelId(7), N_WORDS);
            assert_eq!(explained, rankers[0].explain(point, LabelId(7), N_WORDS));
        }
    }
    for ranker in &rankers {
        assert_eq!(ranker.words(), parts.words);
        let (words, weights) = parts.words.row(3);
        let row: Vec<(u32, f32)> = words.iter().copied().zip(weights.iter().copied()).collect();
        assert_eq!(ranker.words_of(LabelId(3)), row);
    }
}

#[test]
fn clusters_have_classifiers_of_their_own_against_their_group() {
    // Three clusters are one group.
    check_clusters(9, 3, &[(0..3, |label| label % 3, |_| 0)]);
    // 130 clusters are five groups, which are clusters themselves.
    let clusters: Level = (0..130, |label| label, |label| label / 32);
    let groups: Level = (130..135, |label| 130 + label / 32, |_| 0);
    check_clusters(130, 130, &[clusters, groups]);
}

/// The clusters of a level, and the cluster and the group of a label there.
type Level = (Range<u32>, fn(u32) -> u32, fn(u32) -> u32);

fn check_clusters(n_labels: u32, n_clusters: u32, levels: &[Level]) {
    let problem = problem(120, n_labels as usize, 3);
    let cluster_of: Vec<ClusterId> = (0..n_labels)
        .map(|label| ClusterId(label % n_clusters))
        .collect();
    let config = RankerOptions {
        use_embedding: false,
        ..exact(RankerLoss::SquaredHinge)
    };
    let view = RankerProblem {
        negatives: Negatives::Clusters(&cluster_of),
        ..problem.view()
    };
    let train = || {
        let trained = Ranker::train(&view, &config, 42, |_| ControlFlow::Continue(()));
        trained.unwrap().unwrap()
    };
    let ranker = on_threads(1, train);
    assert_eq!(ranker, on_threads(8, train));
    let clusters = ranker.clusters().unwrap();
    let (weights, intercepts) = (clusters.weights(), clusters.intercepts());
    assert_eq!(clusters.cluster_of(), cluster_of);
    let sizes = levels.iter().map(|(columns, ..)| columns.len());
    assert!(ClusterTree::level_sizes(n_clusters as usize).eq(sizes));
    for label in 0..n_labels {
        let above = levels
            .iter()
            .map(|(_, cluster, _)| ClusterId(cluster(label)));
        assert!(clusters.above(LabelId(label)).eq(above));
    }
    let by_cluster = weights.transpose();
    let mut margins = Vec::new();
    for (columns, cluster_of, group_of) in levels {
        for cluster in columns.clone() {
            let group = (0..n_labels).find(|&label| cluster_of(label) == cluster);
            let group = group.map(group_of);
            let has = |row: usize, wanted: &dyn Fn(u32) -> bool| {
                problem.labels.row(row).0.iter().any(|&label| wanted(label))
            };
            let rows = (0..120).filter(|&row| has(row, &|label| Some(group_of(label)) == group));
            let points: Vec<TrainingPoint> = rows
                .map(|row| TrainingPoint {
                    features: problem.word_features(row, config.bias),
                    sign: match has(row, &|label| cluster_of(label) == cluster) {
                        true => 1.0,
                        false => -1.0,
                    },
                    cost: f64::from(problem.weights[row] * config.cost_positive),
                })
                .collect();
            let mut dense = vec![0.0; N_WORDS + N_DENSE + 1];
            let (words, values) = by_cluster.row(cluster as usize);
            for (&word, &value) in words.iter().zip(values) {
                dense[word as usize] = value.into();
            }
            dense[N_WORDS + N_DENSE] = f64::from(intercepts[cluster as usize] / config.bias);
            let reached = objective(&points, config.loss, &dense);
            let least = least_objective(&points, config.loss);
            assert!(reached <= least * 1.001, "reached {reached}, least {least}");
            for row in 0..120 {
                clusters.score(problem.bow.row(row), &mut margins);
                let expected = inner(&problem.word_features(row, config.bias), &dense);
                assert!((f64::from(margins[cluster as usize]) - expected).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn unknown_words_and_empty_texts_score_by_the_intercept() {
    let problem = problem(50, 3, 4);
    let ranker = problem.train(&RankerOptions {
        use_embedding: false,
        ..exact(RankerLoss::Logistic)
    });
    assert_eq!(ranker.n_dense(), 0);
    let mut margins = Vec::new();
    for words in [&[][..], &[N_WORDS as u32, u32::MAX][..]] {
        let values = vec![1.0; words.len()];
        let point = PointView {
            bow: (words, &values),
            dense: &[],
        };
        ranker.score(
            point,
            &[LabelId(1)],
            &mut RankerScratch::default(),
            &mut margins,
        );
        assert_eq!(margins, [ranker.intercepts()[1]]);
    }
}

#[test]
fn training_stops_when_the_progress_callback_breaks() {
    let problem = problem(20, 3, 5);
    let config = defaults();
    let stopped = Ranker::train(&problem.view(), &config, 0, |n_trained| {
        assert_eq!(n_trained, 3);
        ControlFlow::Break(())
    });
    assert!(matches!(stopped, Err(crate::Error::Stopped)));

    let cluster_of = [0, 1, 1].map(ClusterId);
    let negatives = Negatives::Clusters(&cluster_of);
    let problem = RankerProblem {
        negatives,
        ..problem.view()
    };
    let mut calls = Vec::new();
    let stopped = Ranker::train(&problem, &config, 0, |n_trained| {
        calls.push(n_trained);
        match calls.len() {
            1 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    assert!(matches!(stopped, Err(crate::Error::Stopped)));
    assert_eq!(calls, [3, 2], "labels, then clusters");
}

#[test]
fn weights_below_the_threshold_are_dropped() {
    let problem = problem(80, 9, 6);
    let all = problem.train(&RankerOptions {
        threshold: 0.0,
        ..defaults()
    });
    let kept = problem.train(&defaults());
    assert!(kept.words().nnz() < all.words().nnz());
    for label_idx in 0..9 {
        let entries = |ranker: &Ranker| -> Vec<(u32, f32)> { ranker.words_of(LabelId(label_idx)) };
        let mut large = entries(&all);
        large.retain(|(_, weight)| weight.abs() >= 0.1);
        assert_eq!(entries(&kept), large);
    }
    assert_eq!(kept.dense(), all.dense());
    assert_eq!(kept.intercepts(), all.intercepts());
}

#[test]
fn parts_that_do_not_fit_together_are_errors() {
    let problem = problem(20, 3, 7);
    let good = parts_of(&problem.train(&defaults()));
    Ranker::from_parts(good.clone()).unwrap();
    let check = |change: fn(&mut RankerParts), part_of_message: &str| {
        let mut parts = good.clone();
        change(&mut parts);
        let message = Ranker::from_parts(parts).unwrap_err().to_string();
        assert!(message.starts_with("not a valid model: "), "{message}");
        assert!(message.contains(part_of_message), "{message}");
    };
    check(|parts| parts.intercepts.truncate(2), "2 intercepts");
    check(|parts| parts.steps = Some(vec![1.0; 2]), "2 steps");
    check(
        |parts| parts.dense = Matrix::zeros(2, 5),
        "2 embedding rows",
    );
    check(
        |parts| {
            let weights = CsrMatrix::new(vec![0], vec![], vec![], 0).unwrap();
            let no_clusters = ClusterTreeParts {
                cluster_of: vec![],
                parents: vec![],
                weights,
                steps: None,
                intercepts: vec![],
            };
            parts.clusters = ClusterTree::from_parts(no_clusters).ok();
        },
        "clusters of 0 labels",
    );
    check(|parts| parts.intercepts[1] = f32::NAN, "not finite");
    check(
        |parts| parts.dense.values_mut()[0] = f32::INFINITY,
        "not finite",
    );
}

#[test]
fn problems_whose_parts_do_not_fit_together_are_errors() {
    let good = problem(20, 3, 8);
    let other = problem(19, 3, 8);
    let config = defaults();
    let check = |problem: RankerProblem<'_>, part_of_message: &str| {
        let outcome = Ranker::train(&problem, &config, 0, |_| ControlFlow::Continue(()));
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(part_of_message), "{message}");
    };
    let view = good.view();
    check(
        RankerProblem {
            bow: &other.bow,
            ..view
        },
        "19 word rows",
    );
    check(
        RankerProblem {
            dense: Some(&other.dense),
            ..view
        },
        "19 embeddings",
    );
    check(
        RankerProblem {
            negatives: Negatives::Candidates(&other.candidates),
            ..view
        },
        "19 candidate lists",
    );
    check(
        RankerProblem {
            negatives: Negatives::Clusters(&[ClusterId(0)]),
            ..view
        },
        "clusters of 1 labels",
    );
}

#[test]
fn processes_train_the_ranker_of_one() {
    let problem = problem(120, 30, 9);
    let cluster_of: Vec<ClusterId> = (0..30).map(|label| ClusterId(label % 5)).collect();
    for negatives in [
        Negatives::Candidates(&problem.candidates),
        Negatives::Clusters(&cluster_of),
    ] {
        let train = |communicator: &dyn Communicator| {
            let view = RankerProblem {
                negatives,
                communicator,
                ..problem.view()
            };
            let trained = Ranker::train(&view, &defaults(), 42, |_| ControlFlow::Continue(()));
            trained.unwrap()
        };
        let alone = train(&SingleProcess);
        assert!(alone.is_some());
        for n_processes in [2, 3, 16] {
            let trained = threads::run(n_processes, train);
            assert_eq!(trained[0], alone, "{n_processes} processes");
            assert!(trained[1..].iter().all(Option::is_none));
        }
    }
}

#[test]
fn processes_stop_together_when_the_first_is_asked_to() {
    // Process 1 has a block more than process 0.
    let problem = problem(3, 2 * POINTS_PER_EVENT + 1, 10);
    let stopped = |asked: usize| {
        threads::run(2, |communicator| {
            let view = RankerProblem {
                communicator,
                ..problem.view()
            };
            let mut n_blocks = 0;
            let trained = Ranker::train(&view, &defaults(), 0, |_| {
                n_blocks += 1;
                let is_asked = communicator.process() == asked && n_blocks == 1;
                if communicator.first_says(is_asked) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            (matches!(trained, Err(crate::Error::Stopped)), n_blocks)
        })
    };
    assert_eq!(stopped(0), [(true, 1); 2]);
    assert_eq!(stopped(1), [(false, 2); 2]);
}
