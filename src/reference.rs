//! The head as the paper writes it, in f64 and without any trick: the oracle of the fast step.

use std::collections::BTreeMap;

/// A head and a batch.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) alpha: f64,
    /// `None`: fixed edges of score 1.
    pub(super) beta: Option<f64>,
    pub(super) beam_size: usize,
    pub(super) shortlist_size: usize,
    /// Whether all positives are in L_c, or those among the K best.
    pub(super) keeps_positives: bool,
    pub(super) n_labels: usize,
    pub(super) edges: Vec<Vec<usize>>,
    pub(super) a: Vec<Vec<f64>>,
    pub(super) phi: Vec<Vec<f64>>,
    pub(super) cluster_weights: Vec<Vec<f64>>,
    pub(super) cluster_bias: Vec<f64>,
    pub(super) label_weights: Vec<Vec<f64>>,
    pub(super) label_bias: Vec<f64>,
    pub(super) positives: Vec<Vec<usize>>,
}

/// A shortlisted label: its winning cluster and scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortlisted {
    pub(super) label: usize,
    pub(super) via_cluster: usize,
    pub(super) shortlist_score: f64,
    pub(super) score: f64,
}

/// Gradients of one loss.
#[derive(Clone, Debug)]
pub(super) struct Gradients {
    pub(super) phi: Vec<Vec<f64>>,
    pub(super) cluster_weights: Vec<Vec<f64>>,
    pub(super) cluster_bias: Vec<f64>,
    pub(super) label_weights: Vec<Vec<f64>>,
    pub(super) label_bias: Vec<f64>,
    pub(super) a: Vec<Vec<f64>>,
}

/// Losses as sums, and the gradient of `classification·L_c + shortlist·L_s`.
pub(super) struct Outcome {
    pub(super) classification_loss: f64,
    pub(super) shortlist_loss: f64,
    pub(super) gradients: Gradients,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, from)| *to += factor * from);
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = logits.iter().map(|x| (x - highest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|x| x / sum).collect()
}

/// Indices by descending value, ties to the lower.
fn descending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]).then(i.cmp(&j)));
    order
}

impl Case {
    pub(super) fn n_clusters(&self) -> usize {
        self.cluster_bias.len()
    }

    /// softmax(W_C φ + b_C) of a point.
    pub(super) fn cluster_probabilities(&self, point: usize) -> Vec<f64> {
        let logits: Vec<f64> = (0..self.n_clusters())
            .map(|c| dot(&self.cluster_weights[c], &self.phi[point]) + self.cluster_bias[c])
            .collect();
        softmax(&logits)
    }

    /// ŝ(c,ℓ) of the edges of a cluster.
    fn edge_scores(&self, cluster: usize) -> Vec<f64> {
        match self.beta {
            None => vec![1.0; self.edges[cluster].len()],
            Some(beta) => softmax(&self.a[cluster])
                .iter()
                .map(|s| (beta * s).min(1.0))
                .collect(),
        }
    }

    fn parent(&self, label: usize) -> Option<usize> {
        let score = |c: usize| {
            self.edges[c]
                .iter()
                .position(|&l| l == label)
                .map(|at| self.edge_scores(c)[at])
        };
        let linked = (0..self.n_clusters()).filter_map(|c| score(c).map(|s| (c, s)));
        linked
            .fold(None, |best: Option<(usize, f64)>, (c, s)| {
                if best.is_none_or(|b| b.1 < s) {
                    Some((c, s))
                } else {
                    best
                }
            })
            .map(|b| b.0)
    }

    /// Selected clusters of a point: the beam, then in training the parents of its positives.
    pub(super) fn selected(&self, point: usize, training: bool) -> Vec<usize> {
        let score = |probability: &f64| (self.alpha * probability).min(1.0);
        let scores: Vec<f64> = self
            .cluster_probabilities(point)
            .iter()
            .map(score)
            .collect();
        let mut selected = descending(&scores);
        selected.truncate(self.beam_size);
        if training {
            for &positive in &self.positives[point] {
                if let Some(parent) = self
                    .parent(positive)
                    .filter(|parent| !selected.contains(parent))
                {
                    selected.push(parent);
                }
            }
        }
        selected
    }

    /// Every reached label of a point by its best path, best first, before the cut at K.
    pub(super) fn reached(&self, point: usize, training: bool) -> Vec<Shortlisted> {
        let probabilities = self.cluster_probabilities(point);
        let mut best: BTreeMap<usize, Shortlisted> = BTreeMap::new();
        for cluster in self.selected(point, training) {
            let cluster_score = (self.alpha * probabilities[cluster]).min(1.0);
            for (&label, edge_score) in self.edges[cluster].iter().zip(self.edge_scores(cluster)) {
                let shortlist_score = cluster_score * edge_score;
                if best
                    .get(&label)
                    .is_none_or(|known| known.shortlist_score < shortlist_score)
                {
                    let z =
                        dot(&self.label_weights[label], &self.phi[point]) + self.label_bias[label];
                    let score = shortlist_score / (1.0 + (-z).exp());
                    best.insert(
                        label,
                        Shortlisted {
                            label,
                            via_cluster: cluster,
                            shortlist_score,
                            score,
                        },
                    );
                }
            }
        }
        let mut reached: Vec<Shortlisted> = best.into_values().collect();
        reached.sort_by(|a, b| {
            b.shortlist_score
                .total_cmp(&a.shortlist_score)
                .then(a.label.cmp(&b.label))
        });
        reached
    }

    /// Losses and gradients of the batch.
    pub(super) fn outcome(&self, classification: f64, shortlist: f64) -> Outcome {
        let like = |m: &[Vec<f64>]| m.iter().map(|row| vec![0.0; row.len()]).collect::<Vec<_>>();
        let mut gradients = Gradients {
            phi: like(&self.phi),
            cluster_weights: like(&self.cluster_weights),
            cluster_bias: vec![0.0; self.n_clusters()],
            label_weights: like(&self.label_weights),
            label_bias: vec![0.0; self.n_labels],
            a: like(&self.a),
        };
        let (mut classification_loss, mut shortlist_loss) = (0.0, 0.0);
        for point in 0..self.phi.len() {
            let phi = &self.phi[point];
            for (process, label) in self.reached(point, true).into_iter().enumerate() {
                let is_positive = self.positives[point].contains(&label.label);
                let mut d_path = 0.0; // ∂L/∂ŷ
                if is_positive {
                    shortlist_loss -= label.shortlist_score.ln();
                    d_path -= shortlist / label.shortlist_score;
                }
                if process < self.shortlist_size || self.keeps_positives && is_positive {
                    let sigma = label.score / label.shortlist_score;
                    let (loss, d_score) = if is_positive {
                        (-label.score.ln(), -1.0 / label.score)
                    } else {
                        (-(1.0 - label.score).ln(), 1.0 / (1.0 - label.score))
                    };
                    classification_loss += loss;
                    d_path += classification * d_score * sigma;
                    let d_logit =
                        classification * d_score * label.shortlist_score * sigma * (1.0 - sigma);
                    add(&mut gradients.label_weights[label.label], d_logit, phi);
                    gradients.label_bias[label.label] += d_logit;
                    add(
                        &mut gradients.phi[point],
                        d_logit,
                        &self.label_weights[label.label],
                    );
                }
                self.through_path(point, &label, d_path, &mut gradients);
            }
        }
        Outcome {
            classification_loss,
            shortlist_loss,
            gradients,
        }
    }

    /// From ∂L/∂ŷ of one label to A, W_C and φ.
    fn through_path(
        &self,
        point: usize,
        label: &Shortlisted,
        d_path: f64,
        gradients: &mut Gradients,
    ) {
        let cluster = label.via_cluster;
        let probabilities = self.cluster_probabilities(point);
        let cluster_score = (self.alpha * probabilities[cluster]).min(1.0);
        let edge_scores = self.edge_scores(cluster);
        let edge = self.edges[cluster]
            .iter()
            .position(|&l| l == label.label)
            .unwrap();
        if self.alpha * probabilities[cluster] < 1.0 {
            let d_probability = d_path * edge_scores[edge] * self.alpha;
            for other in 0..self.n_clusters() {
                let delta = if other == cluster { 1.0 } else { 0.0 };
                let d_logit =
                    d_probability * probabilities[cluster] * (delta - probabilities[other]);
                add(
                    &mut gradients.cluster_weights[other],
                    d_logit,
                    &self.phi[point],
                );
                gradients.cluster_bias[other] += d_logit;
                add(
                    &mut gradients.phi[point],
                    d_logit,
                    &self.cluster_weights[other],
                );
            }
        }
        if let Some(beta) = self.beta {
            let normalised = softmax(&self.a[cluster]);
            if beta * normalised[edge] < 1.0 {
                let d_normalised = d_path * cluster_score * beta;
                for other in 0..normalised.len() {
                    let delta = if other == edge { 1.0 } else { 0.0 };
                    gradients.a[cluster][other] +=
                        d_normalised * normalised[edge] * (delta - normalised[other]);
                }
            }
        }
    }
}
