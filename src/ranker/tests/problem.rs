//! A random problem, and its optimum computed independently in `f64` by Newton's method.

use std::ops::ControlFlow;

use crate::communicator::SingleProcess;
use crate::config::RankerLoss;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix, Matrix};
use crate::random::Random;
use crate::ranker::{CandidateLists, Negatives, PointView, Ranker, RankerOptions, RankerProblem};

/// A random problem with a planted signal: label l likes word l.
pub(super) struct Problem {
    pub(super) bow: CsrMatrix,
    pub(super) dense: Matrix,
    pub(super) labels: CsrMatrix,
    pub(super) candidates: CandidateLists,
    pub(super) weights: Vec<f32>,
}

/// A training point of one label.
pub(super) struct TrainingPoint {
    pub(super) features: Vec<f64>,
    /// y: 1 or -1.
    pub(super) sign: f64,
    /// C.
    pub(super) cost: f64,
}

pub(super) const N_WORDS: usize = 40;
pub(super) const N_DENSE: usize = 5;

pub(super) fn problem(n_points: usize, n_labels: usize, seed: u64) -> Problem {
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
        weights: (0..n_points).map(|_| 0.2 + 2.0 * random.f32()).collect(),
    }
}

impl Problem {
    pub(super) fn view(&self) -> RankerProblem<'_> {
        RankerProblem {
            bow: &self.bow,
            dense: Some(&self.dense),
            labels: &self.labels,
            targets: None,
            point_weights: &self.weights,
            negatives: Negatives::Candidates(&self.candidates),
            prior: None,
            communicator: &SingleProcess,
        }
    }

    pub(super) fn train(&self, config: &RankerOptions) -> Ranker {
        let go_on = |_| ControlFlow::Continue(());
        let trained = Ranker::train(&self.view(), config, 42, go_on);
        trained.unwrap().unwrap()
    }

    pub(super) fn point(&self, point_idx: usize) -> PointView<'_> {
        PointView {
            bow: self.bow.row(point_idx),
            dense: self.dense.row(point_idx),
        }
    }

    /// [bow/‖bow‖, φ/‖φ‖, bias] of a point, dense.
    pub(super) fn features(&self, point_idx: usize, bias: f32) -> Vec<f64> {
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
    pub(super) fn word_features(&self, point_idx: usize, bias: f32) -> Vec<f64> {
        let mut features = self.features(point_idx, bias);
        features[N_WORDS..N_WORDS + N_DENSE].fill(0.0);
        features
    }

    /// Every training point of a label.
    pub(super) fn training_points(&self, label: u32, config: &RankerOptions) -> Vec<TrainingPoint> {
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
                    cost: f64::from(self.weights[point_idx] * cost),
                })
            })
            .collect()
    }
}

/// Loss of a signed margin, its slope and its curvature.
pub(super) fn loss_at(loss: RankerLoss, margin: f64) -> [f64; 3] {
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

pub(super) fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// ½‖w‖² + Σ C·loss.
pub(super) fn objective(points: &[TrainingPoint], loss: RankerLoss, weights: &[f64]) -> f64 {
    objective_from(&vec![0.0; weights.len()], points, loss, weights)
}

/// ½‖w − w₀‖² + Σ C·loss.
pub(super) fn objective_from(
    prior: &[f64],
    points: &[TrainingPoint],
    loss: RankerLoss,
    weights: &[f64],
) -> f64 {
    let moved: Vec<f64> = weights.iter().zip(prior).map(|(w, p)| w - p).collect();
    let losses = points
        .iter()
        .map(|point| point.cost * loss_at(loss, point.sign * inner(&point.features, weights))[0]);
    0.5 * inner(&moved, &moved) + losses.sum::<f64>()
}

/// The minimum of the objective.
pub(super) fn least_objective(points: &[TrainingPoint], loss: RankerLoss) -> f64 {
    least_objective_from(&[0.0; N_WORDS + N_DENSE + 1], points, loss)
}

/// The minimum of the objective with a prior, by Newton's method with step halving.
pub(super) fn least_objective_from(
    prior: &[f64],
    points: &[TrainingPoint],
    loss: RankerLoss,
) -> f64 {
    let n = prior.len();
    let mut weights = prior.to_vec();
    for _ in 0..100 {
        let moved = weights.iter().zip(prior);
        let mut gradient: Vec<f64> = moved.map(|(w, p)| w - p).collect();
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
        let value = objective_from(prior, points, loss, &weights);
        let mut step = 1.0;
        loop {
            let moved: Vec<f64> = std::iter::zip(&weights, &direction)
                .map(|(w, d)| w - step * d)
                .collect();
            if objective_from(prior, points, loss, &moved) <= value || step < 1e-9 {
                weights = moved;
                break;
            }
            step *= 0.5;
        }
    }
    objective_from(prior, points, loss, &weights)
}

/// x with matrix·x = right, for a positive definite matrix, by elimination.
pub(super) fn solve_linear(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
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
pub(super) fn dense_weights(ranker: &Ranker, label_idx: usize, bias: f32) -> Vec<f64> {
    let mut weights = vec![0.0; N_WORDS];
    for (column, value) in ranker.words_of(LabelId(label_idx as u32)) {
        weights[column as usize] = f64::from(value);
    }
    weights.extend(ranker.dense().row(label_idx).iter().map(|&w| f64::from(w)));
    weights.push(f64::from(ranker.intercepts()[label_idx] / bias));
    weights
}
