//! The fast step and the reference against golden values, and against each other on random heads.
//!
//! The goldens were computed in float64 by automatic differentiation of the paper's equations.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::communicator::{MIN_SHARED_CLUSTERS, SingleProcess};
use crate::ids::LabelRow;
use crate::index::{self, Edges};
use crate::matrix::CsrBuilder;
use crate::random::Random;
use crate::reference::{Gradients, Step};

fn floats(value: &Value) -> Vec<f64> {
    let values = value.as_array().unwrap().iter();
    values.map(|x| x.as_f64().unwrap()).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(floats).collect()
}

fn lists(value: &Value) -> Vec<Vec<usize>> {
    rows(value)
        .iter()
        .map(|row| row.iter().map(|&x| x as usize).collect())
        .collect()
}

impl Step {
    pub(super) fn from_golden(golden: &Value) -> Self {
        let count = |key: &str| golden[key].as_u64().unwrap() as usize;
        let is_learned = golden["stage"] == "learned";
        let edges = lists(&golden["edges"]);
        Step {
            alpha: golden["alpha"].as_f64().unwrap(),
            beta: is_learned.then(|| golden["beta"].as_f64().unwrap()),
            beam_size: count("beam_size"),
            shortlist_size: count("shortlist_size"),
            keeps_positives: false,
            score_floor: 0.0,
            gradient_floor: 0.0,
            a: if is_learned {
                rows(&golden["a"])
            } else {
                edges.iter().map(|row| vec![0.0; row.len()]).collect()
            },
            edges,
            phi: rows(&golden["phi"]),
            cluster_weights: rows(&golden["WC"]),
            cluster_bias: floats(&golden["bC"]),
            label_weights: rows(&golden["WL"]),
            label_bias: floats(&golden["bL"]),
            positives: lists(&golden["positives"]),
            searched: Vec::new(),
        }
    }

    pub(super) fn random(seed: u64, dim: usize, is_learned: bool) -> Self {
        let mut random = Random::new(seed, "head case", 0);
        // With fewer clusters or points ∂W_C may vanish by chance, and errors are measured by its largest entry.
        // Some have so many that processes would share them.
        let n_clusters = MIN_SHARED_CLUSTERS * usize::from(seed % 3 == 2) + 3 + random.below(6);
        let n_labels = 3 + random.below(40);
        let n_points = 4 + random.below(SHARD);
        // Logits of about 1 and α from 2: where a wrong label has σ(z)·ŷ → 1, or one cluster all of the softmax but
        // ŝ_c < 1, f32 has too few digits for the comparison. Training leads away from the first, α ≈ 1 is not used.
        let scale = (dim as f64).sqrt().recip();
        let table = |random: &mut Random, n: usize, scale: f64| -> Vec<Vec<f64>> {
            let mut row = || {
                (0..dim)
                    .map(|_| scale * f64::from(random.normal()))
                    .collect()
            };
            (0..n).map(|_| row()).collect()
        };
        let mut edges = vec![Vec::new(); n_clusters];
        for label in 0..n_labels {
            edges[random.below(n_clusters)].push(label);
        }
        if is_learned {
            for row in &mut edges {
                row.extend((0..n_labels).filter(|_| random.below(4) == 0));
                row.sort_unstable();
                row.dedup();
            }
        }
        let largest = if is_learned { 2.0 } else { 0.0 };
        Step {
            alpha: 2.0 + 4.0 * f64::from(random.f32()),
            beta: is_learned.then(|| 1.0 + 6.0 * f64::from(random.f32())),
            beam_size: 1 + random.below(n_clusters),
            shortlist_size: 1 + random.below(n_labels + 3),
            keeps_positives: seed.is_multiple_of(2),
            score_floor: 0.0,
            gradient_floor: 0.0,
            a: edges
                .iter()
                .map(|row| {
                    row.iter()
                        .map(|_| largest * f64::from(random.f32()))
                        .collect()
                })
                .collect(),
            edges,
            phi: table(&mut random, n_points, 1.0),
            cluster_weights: table(&mut random, n_clusters, scale),
            cluster_bias: (0..n_clusters)
                .map(|_| f64::from(random.normal()))
                .collect(),
            label_weights: table(&mut random, n_labels, scale),
            label_bias: (0..n_labels).map(|_| f64::from(random.normal())).collect(),
            positives: (0..n_points)
                .map(|_| (0..n_labels).filter(|_| random.below(9) == 0).collect())
                .collect(),
            searched: Vec::new(),
        }
    }

    fn clusters(&self) -> ClusterClassifiers {
        let bias = self.cluster_bias.iter().map(|&x| x as f32).collect();
        ClusterClassifiers {
            weights: matrix(&self.cluster_weights),
            bias,
            alpha: self.alpha as f32,
        }
    }

    fn adjacency(&self) -> Adjacency {
        let as_labels =
            |row: &Vec<usize>| row.iter().map(|&label| LabelRow(label as u32)).collect();
        let edges =
            Edges::from_lists(self.edges.iter().map(as_labels).collect(), self.n_labels()).unwrap();
        match self.beta {
            None => Adjacency::fixed(edges),
            Some(beta) => {
                let weights = self.a.iter().flatten().map(|&x| x as f32).collect();
                Adjacency::learned(edges, weights, beta as f32).unwrap()
            }
        }
    }

    fn classifiers(&self) -> LabelClassifiers {
        let bias = self.label_bias.iter().map(|&x| x as f32).collect();
        LabelClassifiers {
            weights: matrix(&self.label_weights).into(),
            bias,
            coarse: None,
        }
    }

    fn labels(&self) -> CsrMatrix {
        let mut builder = CsrBuilder::default();
        for row in &self.positives {
            builder.push_row(row.iter().map(|&label| (label as u32, 1.0)));
        }
        builder.finish(self.n_labels()).unwrap()
    }

    fn options(&self) -> ShortlistOptions {
        ShortlistOptions {
            beam_size: self.beam_size,
            shortlist_size: self.shortlist_size,
            score_floor: self.score_floor as f32,
            keeps_positives: self.keeps_positives,
        }
    }

    /// Losses and gradients by the fast step.
    pub(super) fn fast(&self, weights: LossWeights) -> (HeadLoss, Gradients) {
        self.fast_by(&|_| weights)
    }

    /// The same with multipliers that depend on the batch.
    pub(super) fn fast_by(
        &self,
        weights: &(dyn Fn(&BatchCounts) -> LossWeights + Sync),
    ) -> (HeadLoss, Gradients) {
        let (loss, gradients, _) = self.fast_filled(weights, None);
        (loss, gradients)
    }

    /// The same with random clusters; and the clusters that were searched for each point.
    pub(super) fn fast_filled(
        &self,
        weights: &(dyn Fn(&BatchCounts) -> LossWeights + Sync),
        filling: Option<Filling>,
    ) -> (HeadLoss, Gradients, Vec<Vec<usize>>) {
        let (clusters, adjacency, mut classifiers) =
            (self.clusters(), self.adjacency(), self.classifiers());
        let dim = self.phi[0].len();
        let (labels, embeddings) = (self.labels(), matrix(&self.phi));
        let rows: Vec<u32> = (0..self.phi.len() as u32).collect();
        let batch = Batch {
            embeddings: &embeddings,
            labels: &labels,
            rows: &rows,
            parents: &adjacency.parents(),
            filling,
        };
        let options = HeadOptions {
            shortlist: self.options(),
            gradient_floor: self.gradient_floor as f32,
            weights,
        };
        let mut head = Head::new(self.n_labels(), self.n_clusters(), &SingleProcess);
        let mut step = || {
            let mut sums = LabelGradients::new(self.n_labels(), dim);
            let mut edge_state = EdgeState::new(&adjacency);
            let parts = HeadMut {
                clusters: &clusters,
                adjacency: &adjacency,
                classifiers: &mut classifiers,
            };
            let mut label_state = LabelState::Collect(&mut sums);
            let edges = Some(&mut edge_state);
            let loss = head.step(parts, batch, &options, &mut label_state, edges);
            (loss, sums, edge_state)
        };
        // Twice: the second run must not see anything of the first.
        step();
        let (loss, sums, mut edge_state) = step();
        let searched = head.shards.iter().flat_map(|shard| {
            let ends = shard.selected_starts.windows(2);
            ends.map(|ends| {
                let selected = shard.selected[ends[0]..ends[1]].iter();
                selected.map(|selection| selection.cluster.idx()).collect()
            })
        });
        let searched = searched.collect();
        let HeadGradients {
            embeddings,
            cluster_weights,
            cluster_bias,
            ..
        } = head.gradients;
        let gradients = Gradients {
            phi: wide(embeddings.values(), dim),
            cluster_weights: wide(&cluster_weights, dim),
            cluster_bias: wide(&cluster_bias, cluster_bias.len()).concat(),
            label_weights: wide(&sums.weights, dim),
            label_bias: wide(&sums.bias, sums.bias.len()).concat(),
            a: edge_gradients(&adjacency, &mut edge_state.gradient),
        };
        (loss, gradients, searched)
    }
}

/// From ∂L/∂log ŝ(c,ℓ) to ∂L/∂a, where edges are learned.
fn edge_gradients(adjacency: &Adjacency, gradient: &mut [f32]) -> Vec<Vec<f64>> {
    let row = |cluster: usize| {
        let range = adjacency.edges().range(ClusterId(cluster as u32));
        let gradient = &mut gradient[range.clone()];
        if let Some(weights) = adjacency.weights() {
            let (weights, scores) = (&weights[range.clone()], &adjacency.scores()[range]);
            let highest = index::highest(weights);
            let sum = weights.iter().map(|a| (a - highest).exp()).sum();
            let whole = std::iter::once(0..weights.len());
            let total = index::passed_gradients(scores, gradient, whole).sum();
            let norm = index::Norm { highest, sum };
            index::edge_gradient(weights, norm, total, gradient, &mut Vec::new());
        }
        gradient.iter().map(|&x| f64::from(x)).collect()
    };
    (0..adjacency.edges().n_clusters()).map(row).collect()
}

fn wide(values: &[f32], width: usize) -> Vec<Vec<f64>> {
    values
        .chunks(width)
        .map(|row| row.iter().map(|&x| f64::from(x)).collect())
        .collect()
}

fn matrix(rows: &[Vec<f64>]) -> Matrix {
    let values = rows.iter().flatten().map(|&x| x as f32).collect();
    Matrix::from_vec(values, rows.len(), rows[0].len())
}

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
        let (labels, parents) = (case.labels(), adjacency.parents());
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
                    searcher.search_selected(&adjacency, &case.options(), positives);
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
    fn the_fast_step_agrees_with_the_reference(seed in 0u64..100_000, dim in 1usize..40, is_learned: bool) {
        let case = Step::random(seed, dim, is_learned);
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
