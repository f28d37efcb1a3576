//! Training: every label's classifier, in parallel.
//!
//! Labels are independent problems; those of a cluster share their points and are solved in lockstep, up to sixteen at a
//! time. They run in blocks, the largest first, so that no thread is left with a large one at the end; each block has its
//! own random stream, so the result does not depend on the number of threads. Besides
//! the inverted candidate lists and the kept weights, memory is one scratch per thread. Each process trains its part of the
//! classifiers, and process 0 gets all of them.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::RankerOptions;
use crate::config::Precision;
use crate::error::{Error, Result};
use crate::kernels::LANES;
use crate::matrix::{CsrMatrix, Matrix};
use crate::random::Random;

use super::blocks::Blocks;
use super::clusters::ClusterTree;
use super::lockstep::LockstepSolver;
use super::problem::{Prior, RankerProblem};
use super::rows::{InverseNorms, LabelProblem, RowScratch};
use super::solver::Solver;
use super::training_points::{LabelPoints, Negatives, TrainingPoints};
use super::weights::{Ranker, RankerParts};

/// The intercept that a label without points has: it is wrong.
const UNKNOWN: f32 = -1.0;
/// The most bytes of copied rows per label; larger labels read the shared matrices.
const MAX_COPIED_BYTES: usize = 8 << 20;

/// The kept weights of one classifier.
struct TrainedLabel {
    words: Vec<(u32, f32)>,
    dense: Vec<f32>,
    intercept: f32,
}

impl TrainedLabel {
    fn new(mut words: Vec<(u32, f32)>, dense: Vec<f32>, intercept: f32) -> Self {
        words.sort_unstable_by_key(|&(column, _)| column);
        words.shrink_to_fit();
        TrainedLabel {
            words,
            dense,
            intercept,
        }
    }
}

/// The scratch memory of a thread.
struct LabelScratch {
    rows: RowScratch,
    solver: Solver,
    lockstep: LockstepSolver,
    points: Vec<u32>,
    positives: Vec<Vec<u32>>,
}

impl LabelScratch {
    fn new() -> Self {
        LabelScratch {
            rows: RowScratch::new(MAX_COPIED_BYTES),
            solver: Solver::default(),
            lockstep: LockstepSolver::default(),
            points: Vec::new(),
            positives: vec![Vec::new(); LANES],
        }
    }
}

/// A level in training.
struct Level<'a> {
    problem: &'a RankerProblem<'a>,
    config: &'a RankerOptions,
    norms: &'a InverseNorms,
    points: &'a LabelPoints<'a>,
}

impl Level<'_> {
    /// Trains one label.
    fn train_label(
        &self,
        label: u32,
        random: &mut Random,
        scratch: &mut LabelScratch,
    ) -> TrainedLabel {
        let points = self.points.get(label as usize, &mut scratch.points);
        let bias = self.config.bias;
        let prepared = scratch.rows.prepare(self.problem, self.norms, points, bias);
        let solver = &mut scratch.solver;
        train_label(label, self.problem, prepared, self.config, random, solver)
    }

    /// Trains labels of one cluster, at most [`LANES`].
    fn train_together(
        &self,
        labels: &[u32],
        random: &mut Random,
        scratch: &mut LabelScratch,
    ) -> Vec<TrainedLabel> {
        let points = self.points.of_cluster(labels[0] as usize);
        for (rows, &label) in scratch.positives.iter_mut().zip(labels) {
            rows.clear();
            let mut row = 0;
            for point in self.points.positives(label as usize) {
                // Both ascend, and every positive is a point of the cluster.
                row += points[row..].partition_point(|other| other < point);
                rows.push(row as u32);
            }
        }
        let points = TrainingPoints {
            points,
            n_positive: 0,
        };
        let bias = self.config.bias;
        let problem = scratch.rows.prepare(self.problem, self.norms, points, bias);
        let positives = scratch.positives[..labels.len()].iter().map(Vec::as_slice);
        let solver = &mut scratch.lockstep;
        solver.reset(problem.rows.len(), problem.weights.words.len(), positives);
        let position = |column| problem.position(column);
        let mut words: Vec<Vec<(u32, f32)>> = Vec::with_capacity(labels.len());
        for (lane, &label) in labels.iter().enumerate() {
            let set = |at: usize, value| solver.words[at][lane] = value;
            words.push(self.problem.take_prior(label, position, set));
            solver.bias[lane] = self.problem.prior_bias(label, bias);
            solver.shares[lane] = self.problem.share(label);
        }
        solver.solve(&problem.rows, self.config, random);
        for (position, weights) in solver.words.iter().enumerate() {
            let column = problem.shared(position);
            for (words, &weight) in words.iter_mut().zip(weights) {
                if self.config.keeps(weight) {
                    words.push((column, weight));
                }
            }
        }
        let intercepts = solver.bias.iter().map(|weight| bias * weight);
        words
            .into_iter()
            .zip(intercepts)
            .map(|(words, intercept)| TrainedLabel::new(words, Vec::new(), intercept))
            .collect()
    }
}

impl Ranker {
    /// Trains a classifier for every label, and for every cluster if negatives come from clusters, on the current
    /// rayon pool.
    ///
    /// `progress` gets the number of classifiers that this process trained since the last call, and may stop the training,
    /// on all processes or on none: they call it equally often. `seed` orders the solver's visits; the same seed gives the same weights on any number of
    /// threads and processes. A label without training points gets zero weights. Processes other than 0 get none.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if the parts of the problem do not fit each
    /// other, [`Error::Stopped`] if `progress` says so.
    pub(crate) fn train(
        problem: &RankerProblem<'_>,
        config: &RankerOptions,
        seed: u64,
        mut progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Ranker>> {
        let labels = Ranker::train_level(problem, config, seed, "ranker", &mut progress)?;
        let clusters = match problem.negatives {
            Negatives::Clusters(cluster_of) => {
                ClusterTree::train(problem, cluster_of, config, seed, progress)?
            }
            Negatives::Candidates(_) => None,
        };
        let ranker = labels.map(|labels| Ranker::from_parts(RankerParts { clusters, ..labels }));
        ranker.transpose()
    }

    /// This ranker after more points, and with more labels after its own: its weights are the prior, with the share of each
    /// label, and the levels above the labels stay as they are.
    ///
    /// # Errors
    /// As [`Ranker::train`].
    pub(crate) fn after(
        &self,
        problem: &RankerProblem<'_>,
        shares: &[f32],
        config: &RankerOptions,
        seed: u64,
        progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Ranker>> {
        let n_new = problem.labels.n_cols() - self.n_labels();
        let mut words = self.words();
        words.append(&CsrMatrix::new(vec![0; n_new + 1], vec![], vec![], 0)?);
        let mut intercepts = self.intercepts().to_vec();
        intercepts.resize(problem.labels.n_cols(), UNKNOWN);
        let n_dense = self.n_dense();
        let mut dense = self.dense().values().to_vec();
        dense.resize(problem.labels.n_cols() * n_dense, 0.0);
        let dense = Matrix::from_vec(dense, problem.labels.n_cols(), n_dense);
        let problem = RankerProblem {
            prior: Some(Prior {
                words: &words,
                dense: &dense,
                intercepts: &intercepts,
                shares,
            }),
            ..*problem
        };
        let labels = Ranker::train_level(&problem, config, seed, "ranker", progress)?;
        let clusters = match (self.clusters(), problem.negatives) {
            (Some(tree), Negatives::Clusters(cluster_of)) => {
                Some(tree.with_labels(cluster_of[self.n_labels()..].iter().copied())?)
            }
            _ => None,
        };
        let ranker = labels.map(|labels| Ranker::from_parts(RankerParts { clusters, ..labels }));
        ranker.transpose()
    }

    /// Trains a classifier for every column of the problem's labels, with random numbers of their own.
    pub(super) fn train_level(
        problem: &RankerProblem<'_>,
        config: &RankerOptions,
        seed: u64,
        stream: &str,
        mut progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<RankerParts>> {
        let problem = RankerProblem {
            dense: problem.dense.filter(|_| config.use_embedding),
            ..*problem
        };
        problem.validate()?;
        let norms = InverseNorms::new(problem.bow, problem.dense);
        let (n_labels, communicator) = (problem.labels.n_cols(), problem.communicator);
        let negatives = problem.negatives;
        negatives.check(n_labels)?;
        let blocks = Blocks::new(&problem, config);
        let own = communicator.own(blocks.len());
        let range = blocks.range(own.clone());
        let points = LabelPoints::new(&problem, range, config.n_candidates)?;
        let level = Level {
            problem: &problem,
            config,
            norms: &norms,
            points: &points,
        };
        let mut largest_first: Vec<usize> = own.clone().collect();
        largest_first
            .sort_by_key(|&block| std::cmp::Reverse(points.size(blocks.get(block)[0] as usize)));
        let mut trained: Vec<Vec<TrainedLabel>> = Vec::new();
        trained.resize_with(own.len(), Vec::new);
        let most = blocks.most_labels();
        for labels in communicator.own_blocks(blocks.len() * most, most) {
            let next = labels.start / most - own.start..labels.end / most - own.start;
            let next = &largest_first[next];
            let of_blocks: Vec<Vec<TrainedLabel>> = next
                .par_iter()
                .with_max_len(1)
                .map_init(LabelScratch::new, |scratch, &block| {
                    let labels = blocks.get(block);
                    let mut random = Random::new(seed, stream, u64::from(labels[0]));
                    if blocks.are_in_lockstep {
                        level.train_together(labels, &mut random, scratch)
                    } else {
                        vec![level.train_label(labels[0], &mut random, scratch)]
                    }
                })
                .collect();
            let n_trained = of_blocks.iter().map(Vec::len).sum();
            for (&block, rows) in next.iter().zip(of_blocks) {
                trained[block - own.start] = rows;
            }
            if progress(n_trained).is_break() {
                return Err(Error::Stopped);
            }
        }
        gather_rows(trained, &blocks.places(), &problem, config)
    }
}

/// Solves one label's problem and drops word weights below the threshold.
fn train_label(
    label: u32,
    ranker: &RankerProblem<'_>,
    mut problem: LabelProblem<'_>,
    config: &RankerOptions,
    random: &mut Random,
    solver: &mut Solver,
) -> TrainedLabel {
    let mut start = Vec::new();
    let set = |at, value| start.push((at, value));
    let mut words = ranker.take_prior(label, |column| problem.position(column), set);
    let weights = &mut problem.weights;
    for (at, value) in start {
        weights.words[at] = value;
    }
    weights.bias = ranker.prior_bias(label, config.bias);
    if let Some(prior) = ranker.prior {
        weights
            .dense
            .copy_from_slice(prior.dense.row(label as usize));
    }
    let share = ranker.share(label);
    let shared = RankerOptions {
        cost_positive: share * config.cost_positive,
        cost_negative: share * config.cost_negative,
        ..*config
    };
    solver.solve(&problem.rows, weights, &shared, random);
    let intercept = config.bias * weights.bias;
    let trained = problem.weights.words.iter().enumerate();
    let kept = trained.filter(|(_, weight)| config.keeps(**weight));
    words.extend(kept.map(|(position, &weight)| (problem.shared(position), weight)));
    TrainedLabel::new(words, problem.weights.dense.to_vec(), intercept)
}

/// Collects the rows of all processes on process 0, in the order of labels; `places` has the place of each in that of the
/// blocks.
fn gather_rows(
    trained: Vec<Vec<TrainedLabel>>,
    places: &[usize],
    problem: &RankerProblem<'_>,
    config: &RankerOptions,
) -> Result<Option<RankerParts>> {
    let (communicator, n_labels) = (problem.communicator, problem.labels.n_cols());
    let n_kept = trained.iter().flatten().map(|row| row.words.len()).sum();
    let (mut lengths, mut intercepts) = (Vec::new(), Vec::new());
    let (mut columns, mut weights) = (Vec::with_capacity(n_kept), Vec::with_capacity(n_kept));
    let mut dense = Vec::with_capacity(trained.len() * problem.n_dense());
    for row in trained.into_iter().flatten() {
        lengths.push(row.words.len() as u64);
        columns.extend(row.words.iter().map(|(column, _)| column));
        weights.extend(row.words.iter().map(|(_, weight)| weight));
        dense.extend_from_slice(&row.dense);
        intercepts.push(row.intercept);
    }
    let lengths = communicator.gather_to_first(lengths);
    let columns = communicator.gather_to_first(columns);
    let weights = communicator.gather_to_first(weights);
    let dense = communicator.gather_to_first(dense);
    let intercepts = communicator.gather_to_first(intercepts);
    if !communicator.is_first() {
        return Ok(None);
    }
    let mut indptr = Vec::with_capacity(n_labels + 1);
    indptr.push(0);
    for length in lengths {
        indptr.push(indptr[indptr.len() - 1] + length as usize);
    }
    let in_blocks = CsrMatrix::new(indptr, columns, weights, problem.bow.n_cols())?;
    let mut words = in_blocks.select_rows(places);
    let steps = match config.precision {
        Precision::Eight => Some(words.round_rows()),
        Precision::Full => None,
    };
    Ok(Some(RankerParts {
        loss: config.loss,
        words,
        steps,
        // Only where every label is a block, in their order.
        dense: Matrix::from_vec(dense, n_labels, problem.n_dense()),
        intercepts: places.iter().map(|&place| intercepts[place]).collect(),
        clusters: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::SingleProcess;
    use crate::matrix::CsrBuilder;

    /// The weights of label 0, words by shared column.
    fn solve(problem: &RankerProblem<'_>, max_copied_bytes: usize) -> TrainedLabel {
        let config = RankerOptions {
            threshold: 0.0,
            ..RankerOptions::default()
        };
        let label_points = LabelPoints::new(problem, 0..1, 100).unwrap();
        let mut buffer = Vec::new();
        let mut rows = RowScratch::new(max_copied_bytes);
        let norms = InverseNorms::new(problem.bow, problem.dense);
        let prepared = rows.prepare(
            problem,
            &norms,
            label_points.get(0, &mut buffer),
            config.bias,
        );
        let mut random = Random::new(1, "layouts", 0);
        let solver = &mut Solver::default();
        train_label(0, problem, prepared, &config, &mut random, solver)
    }

    #[test]
    fn copied_rows_and_rows_in_place_give_the_same_classifier() {
        let mut bow = CsrBuilder::default();
        let mut labels = CsrBuilder::default();
        let mut candidates = crate::ranker::CandidateLists::default();
        let mut dense = Matrix::zeros(30, 3);
        let mut random = Random::new(1, "problem", 0);
        for point_idx in 0..30 {
            bow.push_row(
                (0..20)
                    .filter_map(|word| (random.below(3) == 0).then_some((19 - word, 1.0)))
                    .rev()
                    .collect::<Vec<_>>(),
            );
            labels.push_row((random.below(3) == 0).then_some((0, 1.0)));
            candidates.push([crate::ids::LabelId(0)]);
            dense.row_mut(point_idx).fill_with(|| random.normal());
        }
        let (bow, labels) = (bow.finish(20).unwrap(), labels.finish(1).unwrap());
        let problem = RankerProblem {
            bow: &bow,
            dense: Some(&dense),
            labels: &labels,
            targets: None,
            point_weights: &[1.0; 30],
            negatives: Negatives::Candidates(&candidates),
            prior: None,
            communicator: &SingleProcess,
        };
        let (in_place, copied) = (solve(&problem, 0), solve(&problem, usize::MAX));
        assert!(!in_place.words.is_empty());
        assert_eq!(in_place.words, copied.words);
        assert_eq!(in_place.dense, copied.dense);
        assert_eq!(in_place.intercept, copied.intercept);
    }
}
