//! Heads with a batch, golden or random, as the tests compare the fast step with the reference.

use serde_json::Value;

use super::*;
use crate::communicator::{MIN_SHARED_CLUSTERS, SingleProcess};
use crate::ids::LabelRow;
use crate::index::{self, Edges};
use crate::matrix::CsrBuilder;
use crate::random::Random;
use crate::reference::{Gradients, Step};

pub(super) fn floats(value: &Value) -> Vec<f64> {
    let values = value.as_array().unwrap().iter();
    values.map(|x| x.as_f64().unwrap()).collect()
}

pub(super) fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(floats).collect()
}

pub(super) fn lists(value: &Value) -> Vec<Vec<usize>> {
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
            rejected: Vec::new(),
            weights: Vec::new(),
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
            rejected: Vec::new(),
            weights: Vec::new(),
            searched: Vec::new(),
        }
    }

    /// The same with random weights of points and, where there are several labels, rejected ones.
    pub(super) fn weighted(mut self, seed: u64) -> Self {
        let mut random = Random::new(seed, "weights of points", 0);
        let n_labels = self.n_labels();
        self.weights = self
            .phi
            .iter()
            .map(|_| 3.0 * f64::from(random.f32()))
            .collect();
        let is_rejected = |positives: &Vec<usize>, random: &mut Random| -> Vec<usize> {
            let others = (0..n_labels).filter(|label| !positives.contains(label));
            others.filter(|_| random.below(6) == 0).collect()
        };
        let rejected = self.positives.iter();
        self.rejected = rejected.map(|of| is_rejected(of, &mut random)).collect();
        self
    }

    pub(super) fn clusters(&self) -> ClusterClassifiers {
        let bias = self.cluster_bias.iter().map(|&x| x as f32).collect();
        ClusterClassifiers {
            weights: matrix(&self.cluster_weights),
            bias,
            alpha: self.alpha as f32,
        }
    }

    pub(super) fn adjacency(&self) -> Adjacency {
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

    pub(super) fn classifiers(&self) -> LabelClassifiers {
        let bias = self.label_bias.iter().map(|&x| x as f32).collect();
        LabelClassifiers {
            weights: matrix(&self.label_weights).into(),
            bias,
            coarse: None,
        }
    }

    pub(super) fn targets(&self) -> CsrMatrix {
        let mut builder = CsrBuilder::default();
        for (point, positives) in self.positives.iter().enumerate() {
            let value = |label: &usize| if positives.contains(label) { 1.0 } else { -1.0 };
            let targets = self.targets_of(point).into_iter();
            builder.push_row(targets.map(|label| (label as u32, value(&label))));
        }
        builder.finish(self.n_labels()).unwrap()
    }

    pub(super) fn options(&self) -> ShortlistOptions {
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
        let (targets, embeddings) = (self.targets(), matrix(&self.phi));
        let weight = |point| self.weight(point) as f32;
        let point_weights: Vec<f32> = (0..self.phi.len()).map(weight).collect();
        let rows: Vec<u32> = (0..self.phi.len() as u32).collect();
        let batch = Batch {
            embeddings: &embeddings,
            targets: &targets,
            point_weights: &point_weights,
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
pub(super) fn edge_gradients(adjacency: &Adjacency, gradient: &mut [f32]) -> Vec<Vec<f64>> {
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

pub(super) fn wide(values: &[f32], width: usize) -> Vec<Vec<f64>> {
    values
        .chunks(width)
        .map(|row| row.iter().map(|&x| f64::from(x)).collect())
        .collect()
}

pub(super) fn matrix(rows: &[Vec<f64>]) -> Matrix {
    let values = rows.iter().flatten().map(|&x| x as f32).collect();
    Matrix::from_vec(values, rows.len(), rows[0].len())
}
