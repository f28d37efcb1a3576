//! The sparse ranker against optima computed independently in `f64`, by Newton's method.

use std::ops::ControlFlow;

use crate::config::RankerLoss;
use crate::ids::{ClusterId, LabelId};
use crate::matrix::{CsrBuilder, CsrMatrix, Matrix};
use crate::on_threads;
use crate::random::Random;
use crate::ranker::{
    CandidateLists, ClusterLevel, Negatives, PointView, Ranker, RankerOptions, RankerParts,
    RankerProblem, RankerScratch,
};

/// A random problem with a planted signal: label l likes word l.
struct Problem {
    bow: CsrMatrix,
    dense: Matrix,
    labels: CsrMatrix,
    candidates: CandidateLists,
}

/// A training point of one label.
struct TrainingPoint {
    features: Vec<f64>,
    /// y: 1 or -1.
    sign: f64,
    /// C.
    cost: f64,
}

const N_WORDS: usize = 40;
const N_DENSE: usize = 5;

fn problem(n_points: usize, n_labels: usize, seed: u64) -> Problem {
    let mut random = Random::new(seed, "problem", 0);
    let mut bow = CsrBuilder::default();
    let mut labels = CsrBuilder::default();
    let mut dense = Matrix::zeros(n_points, N_DENSE);
    let mut candidates = CandidateLists::default();
    for point_idx in 0..n_points {
        let mut words: Vec<u32> = (0..random.below(12))
            .map(|_| random.below(N_WORDS) as u32)
            .collect();
        words.sort_unstable();
        words.dedup();
        let likes = |label: &u32, random: &mut Random| {
            let chance = if words.contains(label) { 0.7 } else { 0.15 };
            random.f32() < chance
        };
        let of_point: Vec<u32> = (0..n_labels as u32)
            .filter(|label| likes(label, &mut random))
            .collect();
        bow.push_row(words.iter().map(|&word| (word, 0.1 + random.f32())));
        labels.push_row(of_point.iter().map(|&label| (label, 1.0)));
        for value in dense.row_mut(point_idx) {
            *value = random.normal();
        }
        let mut ranked: Vec<LabelId> = (0..n_labels as u32).map(LabelId).collect();
        random.shuffle(&mut ranked);
        ranked.truncate(n_labels * 2 / 3);
        candidates.push(ranked);
    }
    Problem {
        bow: bow.finish(N_WORDS).unwrap(),
        dense,
        labels: labels.finish(n_labels).unwrap(),
        candidates,
    }
}

impl Problem {
    fn view(&self) -> RankerProblem<'_> {
        RankerProblem {
            bow: &self.bow,
            dense: Some(&self.dense),
            labels: &self.labels,
            negatives: Negatives::Candidates(&self.candidates),
        }
    }

    fn train(&self, config: &RankerOptions) -> Ranker {
        Ranker::train(&self.view(), config, 42, |_, _| ControlFlow::Continue(())).unwrap()
    }

    fn point(&self, point_idx: usize) -> PointView<'_> {
        PointView {
            bow: self.bow.row(point_idx),
            dense: self.dense.row(point_idx),
        }
    }

    /// [bow/‖bow‖, φ/‖φ‖, bias] of a point, dense.
    fn features(&self, point_idx: usize, bias: f32) -> Vec<f64> {
        let mut words = vec![0.0; N_WORDS];
        let (columns, values) = self.bow.row(point_idx);
        for (&column, &value) in columns.iter().zip(values) {
            words[column as usize] = f64::from(value);
        }
        let mut dense: Vec<f64> = self
            .dense
            .row(point_idx)
            .iter()
            .map(|&x| x.into())
            .collect();
        for part in [&mut words, &mut dense] {
            let norm = part.iter().map(|x| x * x).sum::<f64>().sqrt();
            part.iter_mut().for_each(|x| *x /= norm.max(1e-30));
        }
        words.extend(dense);
        words.push(bias.into());
        words
    }

    /// [bow/‖bow‖, 0, bias] of a point, dense.
    fn word_features(&self, point_idx: usize, bias: f32) -> Vec<f64> {
        let mut features = self.features(point_idx, bias);
        features[N_WORDS..N_WORDS + N_DENSE].fill(0.0);
        features
    }

    /// Every training point of a label.
    fn training_points(&self, label: u32, config: &RankerOptions) -> Vec<TrainingPoint> {
        (0..self.bow.n_rows())
            .filter_map(|point_idx| {
                let features = self.features(point_idx, config.bias);
                let is_positive = self.labels.row(point_idx).0.contains(&label);
                let is_candidate = self.candidates.get(point_idx).contains(&LabelId(label));
                let (sign, cost) = if is_positive {
                    (1.0, config.cost_positive)
                } else {
                    (-1.0, config.cost_negative)
                };
                (is_positive || is_candidate).then(|| TrainingPoint {
                    features,
                    sign,
                    cost: cost.into(),
                })
            })
            .collect()
    }
}

/// Loss of a signed margin, its slope and its curvature.
fn loss_at(loss: RankerLoss, margin: f64) -> [f64; 3] {
    match loss {
        RankerLoss::SquaredHinge => {
            let lack = (1.0 - margin).max(0.0);
            [
                lack * lack,
                -2.0 * lack,
                if margin < 1.0 { 2.0 } else { 0.0 },
            ]
        }
        RankerLoss::Logistic => {
            let sigmoid = 1.0 / (1.0 + (-margin).exp());
            [-sigmoid.ln(), sigmoid - 1.0, sigmoid * (1.0 - sigmoid)]
        }
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// ½‖w‖² + Σ C·loss.
fn objective(points: &[TrainingPoint], loss: RankerLoss, weights: &[f64]) -> f64 {
    let losses = points
        .iter()
        .map(|point| point.cost * loss_at(loss, point.sign * inner(&point.features, weights))[0]);
    0.5 * inner(weights, weights) + losses.sum::<f64>()
}

/// The minimum of the objective, by Newton's method with step halving.
fn least_objective(points: &[TrainingPoint], loss: RankerLoss) -> f64 {
    let n = N_WORDS + N_DENSE + 1;
    let mut weights = vec![0.0; n];
    for _ in 0..100 {
        let mut gradient = weights.clone();
        let mut hessian = vec![vec![0.0; n]; n];
        (0..n).for_each(|i| hessian[i][i] = 1.0);
        for TrainingPoint {
            features,
            sign,
            cost,
        } in points
        {
            let [_, slope, curvature] = loss_at(loss, sign * inner(features, &weights));
            for i in 0..n {
                gradient[i] += cost * slope * sign * features[i];
                for j in 0..n {
                    hessian[i][j] += cost * curvature * features[i] * features[j];
                }
            }
        }
        if inner(&gradient, &gradient) < 1e-20 {
            break;
        }
        let direction = solve_linear(hessian, gradient);
        let value = objective(points, loss, &weights);
        let mut step = 1.0;
        loop {
            let moved: Vec<f64> = std::iter::zip(&weights, &direction)
                .map(|(w, d)| w - step * d)
                .collect();
            if objective(points, loss, &moved) <= value || step < 1e-9 {
                weights = moved;
                break;
            }
            step *= 0.5;
        }
    }
    objective(points, loss, &weights)
}

/// x with matrix·x = right, for a positive definite matrix, by elimination.
fn solve_linear(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for pivot in 0..n {
        let (above, below) = matrix.split_at_mut(pivot + 1);
        for (offset, row) in below.iter_mut().enumerate() {
            let factor = row[pivot] / above[pivot][pivot];
            (pivot..n).for_each(|j| row[j] -= factor * above[pivot][j]);
            right[pivot + 1 + offset] -= factor * right[pivot];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|j| matrix[row][j] * right[j]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

/// A label's weights, dense; that of the constant feature last.
fn dense_weights(ranker: &Ranker, label_idx: usize, bias: f32) -> Vec<f64> {
    let parts = ranker.parts();
    let mut weights = vec![0.0; N_WORDS];
    let (columns, values) = parts.words.row(label_idx);
    for (&column, &value) in columns.iter().zip(values) {
        weights[column as usize] = f64::from(value);
    }
    weights.extend(parts.dense.row(label_idx).iter().map(|&w| f64::from(w)));
    weights.push(f64::from(parts.intercepts[label_idx] / bias));
    weights
}

/// The defaults, with embeddings in ψ as in the paper.
fn defaults() -> RankerOptions {
    RankerOptions {
        use_embedding: true,
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

#[test]
fn clusters_have_classifiers_of_their_own_against_all_points() {
    let problem = problem(120, 9, 3);
    let cluster_of = [0, 1, 2, 0, 1, 2, 0, 1, 2].map(ClusterId);
    let config = RankerOptions {
        use_embedding: false,
        ..exact(RankerLoss::SquaredHinge)
    };
    let view = RankerProblem {
        negatives: Negatives::Clusters(&cluster_of),
        ..problem.view()
    };
    let train = || Ranker::train(&view, &config, 42, |_, _| ControlFlow::Continue(())).unwrap();
    let ranker = on_threads(1, train);
    assert_eq!(ranker, on_threads(8, train));
    let clusters = ranker.clusters().unwrap();
    let (of_labels, weights, intercepts) = clusters.parts();
    assert_eq!(of_labels, cluster_of);
    let by_cluster = weights.transpose();
    let mut margins = Vec::new();
    for cluster in 0..3 {
        let has = |row: usize, wanted: fn(u32, u32) -> bool| {
            let labels = problem.labels.row(row).0;
            labels.iter().any(|&label| wanted(label % 3, cluster))
        };
        let rows = (0..120).filter(|&row| has(row, |_, _| true));
        let points: Vec<TrainingPoint> = rows
            .map(|row| TrainingPoint {
                features: problem.word_features(row, config.bias),
                sign: if has(row, |of, wanted| of == wanted) {
                    1.0
                } else {
                    -1.0
                },
                cost: config.cost_positive.into(),
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
        assert_eq!(margins, [ranker.parts().intercepts[1]]);
    }
}

#[test]
fn training_stops_when_the_progress_callback_breaks() {
    let problem = problem(20, 3, 5);
    let config = defaults();
    let stopped = Ranker::train(&problem.view(), &config, 0, |done, total| {
        assert_eq!((done, total), (3, 3));
        ControlFlow::Break(())
    });
    assert!(matches!(stopped, Err(crate::Error::Stopped)));
}

#[test]
fn weights_below_the_threshold_are_dropped() {
    let problem = problem(80, 9, 6);
    let all = problem.train(&RankerOptions {
        threshold: 0.0,
        ..defaults()
    });
    let kept = problem.train(&defaults());
    assert!(kept.parts().words.nnz() < all.parts().words.nnz());
    for label_idx in 0..9 {
        let entries = |ranker: &Ranker| -> Vec<(u32, f32)> {
            let (columns, weights) = ranker.parts().words.row(label_idx);
            std::iter::zip(columns.iter().copied(), weights.iter().copied()).collect()
        };
        let mut large = entries(&all);
        large.retain(|(_, weight)| weight.abs() >= 0.1);
        assert_eq!(entries(&kept), large);
    }
    assert_eq!(kept.parts().dense, all.parts().dense);
    assert_eq!(kept.parts().intercepts, all.parts().intercepts);
}

#[test]
fn parts_that_do_not_fit_together_are_errors() {
    let problem = problem(20, 3, 7);
    let good = problem.train(&defaults()).parts().clone();
    Ranker::from_parts(good.clone()).unwrap();
    let check = |change: fn(&mut RankerParts), part_of_message: &str| {
        let mut parts = good.clone();
        change(&mut parts);
        let message = Ranker::from_parts(parts).unwrap_err().to_string();
        assert!(message.starts_with("not a valid model: "), "{message}");
        assert!(message.contains(part_of_message), "{message}");
    };
    check(|parts| parts.intercepts.truncate(2), "2 intercepts");
    check(
        |parts| parts.dense = Matrix::zeros(2, 5),
        "2 embedding rows",
    );
    check(
        |parts| {
            let weights = CsrMatrix::new(vec![0], vec![], vec![], 0).unwrap();
            parts.clusters = ClusterLevel::from_parts(vec![], weights, vec![]).ok();
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
        let outcome = Ranker::train(&problem, &config, 0, |_, _| ControlFlow::Continue(()));
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
