//! The method as the paper writes it: one training step of index and classifiers, in f64, without any trick.
//!
//! Read this first. Everything that makes training fast (`src/train/head/`) computes the same numbers, and tests hold it
//! to that; nothing here runs in a training. Letters: φ embeds a point, c is a cluster, ℓ a label, d the dimensions of φ.
//!
//! 1. *Clusters.* ŝ_c = min(1, α·softmax(W_C φ + b_C)); the `beam_size` best clusters are searched, and in training the
//!    [parent](Step::parent) of each positive, so that it can be reached ([`Step::selected`]).
//! 2. *Edges.* Stage 1 has fixed edges of score 1. Stage 2 learns a(c,ℓ): ŝ(c,ℓ) = min(1, β·softmax of the row's own a)
//!    ([`Step::edge_scores`]).
//! 3. *Paths.* A label's ŷ is that of its best path, the highest ŝ_c·ŝ(c,ℓ); the K best labels are the shortlist
//!    ([`Step::reached`]).
//! 4. *Labels.* p = σ(w_ℓ·φ + b_ℓ)·ŷ ([`Step::predict`]).
//! 5. *Losses.* L_c = −Σ log p over positives − Σ log(1 − p) over negatives of the shortlist; L_s = −Σ log ŷ over the
//!    positives that were reached, before the cut at K. A step follows the gradient of L_c + λ·L_s ([`Step::outcome`]).
//!
//! A text becomes φ in `src/encoder/`, and its gradient goes on there. Clusters and edges come from
//! `src/clustering/` before stage 1 and from `src/train/adjacency.rs` before stage 2.
//!
//! ```
//! use elias::reference::Step;
//!
//! // Two clusters of two labels each; two points in two dimensions, with one label each.
//! let mut step = Step {
//!     alpha: 1.5,
//!     beta: Some(1.5),
//!     beam_size: 1,
//!     shortlist_size: 2,
//!     keeps_positives: true,
//!     score_floor: 0.0,
//!     gradient_floor: 0.0,
//!     edges: vec![vec![0, 1], vec![2, 3]],
//!     a: vec![vec![0.0; 2]; 2],
//!     cluster_weights: vec![vec![0.0; 2]; 2],
//!     cluster_bias: vec![0.0; 2],
//!     label_weights: vec![vec![0.0; 2]; 4],
//!     label_bias: vec![0.0; 4],
//!     phi: vec![vec![1.0, 0.2], vec![0.1, 1.0]],
//!     positives: vec![vec![0], vec![3]],
//!     rejected: Vec::new(),
//!     weights: Vec::new(),
//!     searched: Vec::new(),
//! };
//! let lambda = 0.05;
//! let before = step.outcome(1.0, lambda);
//! for _ in 0..500 {
//!     let outcome = step.outcome(1.0, lambda);
//!     step.descend(&outcome.gradients, 0.5);
//! }
//! let after = step.outcome(1.0, lambda);
//! assert!(after.classification_loss < 0.1 * before.classification_loss);
//! assert_eq!((step.predict(0)[0].label, step.predict(1)[0].label), (0, 3));
//! ```

use std::collections::BTreeMap;

/// A head, which is W_C, A and W_L with their settings, and a batch of points.
#[derive(Clone, Debug)]
pub struct Step {
    /// α: scale of the cluster scores.
    pub alpha: f64,
    /// β: scale of the edge scores; none in stage 1, whose edges have the score 1.
    pub beta: Option<f64>,
    /// b: clusters searched per point.
    pub beam_size: usize,
    /// K: labels of the shortlist.
    pub shortlist_size: usize,
    /// Whether all positives are in L_c, or those among the K best.
    pub keeps_positives: bool,
    /// Negatives with a lower ŷ are not scored; 0 in the paper.
    pub score_floor: f64,
    /// Negatives whose ∂L_c/∂log ŷ = p/(1−p) is lower pass no gradient; 0 in the paper.
    pub gradient_floor: f64,
    /// The labels of each cluster.
    pub edges: Vec<Vec<usize>>,
    /// a(c,ℓ), one per edge; not read in stage 1.
    pub a: Vec<Vec<f64>>,
    /// W_C, C×d.
    pub cluster_weights: Vec<Vec<f64>>,
    /// b_C.
    pub cluster_bias: Vec<f64>,
    /// W_L, L×d.
    pub label_weights: Vec<Vec<f64>>,
    /// b_L.
    pub label_bias: Vec<f64>,
    /// φ of the points, B×d.
    pub phi: Vec<Vec<f64>>,
    /// The labels of each point.
    pub positives: Vec<Vec<usize>>,
    /// Labels that were rejected for each point: negatives that are always scored; empty where none was.
    pub rejected: Vec<Vec<usize>>,
    /// The factor of each point's losses in the gradient; empty: 1.
    pub weights: Vec<f64>,
    /// The clusters searched for each point where they were drawn, as in the released code; empty: beam and parents.
    pub searched: Vec<Vec<usize>>,
}

/// A label that a search reached.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The label.
    pub label: usize,
    /// The cluster of its best path.
    pub via_cluster: usize,
    /// ŷ.
    pub path_score: f64,
    /// p = σ(w·φ + b)·ŷ.
    pub score: f64,
}

/// Gradients of everything that learns, in the shapes of [`Step`].
#[derive(Clone, Debug)]
pub struct Gradients {
    /// ∂L/∂φ, which the encoder learns from.
    pub phi: Vec<Vec<f64>>,
    /// ∂L/∂W_C.
    pub cluster_weights: Vec<Vec<f64>>,
    /// ∂L/∂b_C.
    pub cluster_bias: Vec<f64>,
    /// ∂L/∂W_L.
    pub label_weights: Vec<Vec<f64>>,
    /// ∂L/∂b_L.
    pub label_bias: Vec<f64>,
    /// ∂L/∂a.
    pub a: Vec<Vec<f64>>,
}

/// Losses of a batch, and the gradient of their weighted sum.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// L_c, summed over the batch.
    pub classification_loss: f64,
    /// L_s, summed over the batch.
    pub shortlist_loss: f64,
    /// The gradient.
    pub gradients: Gradients,
}

impl Step {
    /// C.
    pub fn n_clusters(&self) -> usize {
        self.cluster_bias.len()
    }

    /// L.
    pub fn n_labels(&self) -> usize {
        self.label_bias.len()
    }

    /// softmax(W_C φ + b_C) of a point.
    pub fn cluster_probabilities(&self, point: usize) -> Vec<f64> {
        let logit =
            |c: usize| dot(&self.cluster_weights[c], &self.phi[point]) + self.cluster_bias[c];
        softmax(&(0..self.n_clusters()).map(logit).collect::<Vec<_>>())
    }

    /// ŝ_c of a point.
    pub fn cluster_scores(&self, point: usize) -> Vec<f64> {
        let probabilities = self.cluster_probabilities(point).into_iter();
        probabilities.map(|p| (self.alpha * p).min(1.0)).collect()
    }

    /// ŝ(c,ℓ) of the edges of a cluster.
    pub fn edge_scores(&self, cluster: usize) -> Vec<f64> {
        let Some(beta) = self.beta else {
            return vec![1.0; self.edges[cluster].len()];
        };
        let shares = softmax(&self.a[cluster]).into_iter();
        shares.map(|share| (beta * share).min(1.0)).collect()
    }

    /// The cluster whose edge to a label is the strongest, the first of them on ties.
    pub fn parent(&self, label: usize) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for cluster in 0..self.n_clusters() {
            if let Some(edge) = self.edges[cluster].iter().position(|&l| l == label) {
                let score = self.edge_scores(cluster)[edge];
                if best.is_none_or(|(_, known)| known < score) {
                    best = Some((cluster, score));
                }
            }
        }
        best.map(|(cluster, _)| cluster)
    }

    /// The factor of a point's losses.
    pub fn weight(&self, point: usize) -> f64 {
        self.weights.get(point).copied().unwrap_or(1.0)
    }

    /// The labels that a point has or rejects, ascending.
    pub fn targets_of(&self, point: usize) -> Vec<usize> {
        let mut targets = self.positives[point].clone();
        targets.extend(self.rejected.get(point).into_iter().flatten());
        targets.sort_unstable();
        targets
    }

    /// The clusters that are searched for a point: the beam, then the parents of these targets.
    pub fn selected(&self, point: usize, targets: &[usize]) -> Vec<usize> {
        if let Some(drawn) = self.searched.get(point) {
            return drawn.clone();
        }
        let mut selected = descending(&self.cluster_scores(point));
        selected.truncate(self.beam_size);
        for &target in targets {
            if let Some(parent) = self.parent(target)
                && !selected.contains(&parent)
            {
                selected.push(parent);
            }
        }
        selected
    }

    /// Every label that the search of a point reaches, by its best path, best first, before the cut at K.
    ///
    /// Training gives the point's targets, prediction none. Ties go to the lower label.
    pub fn reached(&self, point: usize, targets: &[usize]) -> Vec<Reached> {
        let cluster_scores = self.cluster_scores(point);
        let mut best: BTreeMap<usize, Reached> = BTreeMap::new();
        for cluster in self.selected(point, targets) {
            for (&label, edge_score) in self.edges[cluster].iter().zip(self.edge_scores(cluster)) {
                let path_score = cluster_scores[cluster] * edge_score;
                let known = best.get(&label);
                if known.is_none_or(|known| known.path_score < path_score) {
                    let z =
                        dot(&self.label_weights[label], &self.phi[point]) + self.label_bias[label];
                    let reached = Reached {
                        label,
                        via_cluster: cluster,
                        path_score,
                        score: path_score / (1.0 + (-z).exp()),
                    };
                    best.insert(label, reached);
                }
            }
        }
        let is_scored = |reached: &Reached| {
            self.score_floor <= reached.path_score || targets.contains(&reached.label)
        };
        let mut reached: Vec<Reached> = best.into_values().filter(is_scored).collect();
        reached.sort_by(|a, b| b.path_score.total_cmp(&a.path_score));
        reached
    }

    /// The shortlist of a point by p, best first.
    pub fn predict(&self, point: usize) -> Vec<Reached> {
        let mut shortlist = self.reached(point, &[]);
        shortlist.truncate(self.shortlist_size);
        shortlist.sort_by(|a, b| b.score.total_cmp(&a.score));
        shortlist
    }

    /// L_c and L_s of the batch, and the gradient of `classification`·L_c + `shortlist`·L_s.
    pub fn outcome(&self, classification: f64, shortlist: f64) -> Outcome {
        let mut gradients = self.zeros();
        let (mut classification_loss, mut shortlist_loss) = (0.0, 0.0);
        for (point, phi) in self.phi.iter().enumerate() {
            let (positives, targets) = (&self.positives[point], self.targets_of(point));
            let (classification, shortlist) = (
                self.weight(point) * classification,
                self.weight(point) * shortlist,
            );
            for (place, reached) in self.reached(point, &targets).iter().enumerate() {
                let is_positive = positives.contains(&reached.label);
                let mut d_path = 0.0; // ∂L/∂ŷ
                if is_positive {
                    shortlist_loss -= reached.path_score.ln();
                    d_path -= shortlist / reached.path_score;
                }
                let is_kept = self.keeps_positives && targets.contains(&reached.label);
                if place < self.shortlist_size || is_kept {
                    let (loss, d_score) = if is_positive {
                        (-reached.score.ln(), -1.0 / reached.score)
                    } else {
                        (-(1.0 - reached.score).ln(), 1.0 / (1.0 - reached.score))
                    };
                    classification_loss += loss;
                    // p = σ(z)·ŷ:   ∂p/∂ŷ = σ   ∂p/∂z = ŷ·σ·(1 − σ)
                    let sigma = reached.score / reached.path_score;
                    let d_log_path = d_score * sigma * reached.path_score;
                    if !is_positive && d_log_path < self.gradient_floor {
                        continue;
                    }
                    d_path += classification * d_score * sigma;
                    let d_logit = classification * d_log_path * (1.0 - sigma);
                    let label = reached.label;
                    add(&mut gradients.label_weights[label], d_logit, phi);
                    gradients.label_bias[label] += d_logit;
                    add(
                        &mut gradients.phi[point],
                        d_logit,
                        &self.label_weights[label],
                    );
                }
                self.add_path(point, reached, d_path, &mut gradients);
            }
        }
        Outcome {
            classification_loss,
            shortlist_loss,
            gradients,
        }
    }

    /// From ∂L/∂ŷ of one label to W_C, φ and A: ŷ = ŝ_c·ŝ(c,ℓ), and a score that has reached 1 passes nothing.
    fn add_path(&self, point: usize, reached: &Reached, d_path: f64, gradients: &mut Gradients) {
        let cluster = reached.via_cluster;
        let probabilities = self.cluster_probabilities(point);
        let cluster_score = self.cluster_scores(point)[cluster];
        let mut labels = self.edges[cluster].iter();
        let edge = labels.position(|&label| label == reached.label);
        let edge = edge.expect("the path runs along an edge");
        if self.alpha * probabilities[cluster] < 1.0 {
            let d_probability = d_path * self.edge_scores(cluster)[edge] * self.alpha;
            for (other, slope) in softmax_slopes(&probabilities, cluster).enumerate() {
                let d_logit = d_probability * slope;
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
            let shares = softmax(&self.a[cluster]);
            if beta * shares[edge] < 1.0 {
                let d_share = d_path * cluster_score * beta;
                for (other, slope) in softmax_slopes(&shares, edge).enumerate() {
                    gradients.a[cluster][other] += d_share * slope;
                }
            }
        }
    }

    /// Follows the gradient of everything but φ by plain gradient descent.
    pub fn descend(&mut self, gradients: &Gradients, rate: f64) {
        let tables = [
            (&mut self.cluster_weights, &gradients.cluster_weights),
            (&mut self.label_weights, &gradients.label_weights),
            (&mut self.a, &gradients.a),
        ];
        for (values, gradient) in tables {
            let rows = values.iter_mut().zip(gradient);
            rows.for_each(|(values, gradient)| add(values, -rate, gradient));
        }
        add(&mut self.cluster_bias, -rate, &gradients.cluster_bias);
        add(&mut self.label_bias, -rate, &gradients.label_bias);
    }

    fn zeros(&self) -> Gradients {
        let like = |table: &[Vec<f64>]| table.iter().map(|row| vec![0.0; row.len()]).collect();
        Gradients {
            phi: like(&self.phi),
            cluster_weights: like(&self.cluster_weights),
            cluster_bias: vec![0.0; self.cluster_bias.len()],
            label_weights: like(&self.label_weights),
            label_bias: vec![0.0; self.label_bias.len()],
            a: like(&self.a),
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    let values = to.iter_mut().zip(from);
    values.for_each(|(to, from)| *to += factor * from);
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exponentials: Vec<f64> = logits.iter().map(|x| (x - highest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.iter().map(|x| x / sum).collect()
}

/// ∂s_i/∂logit_j = s_i·(δ_ij − s_j) of a softmax s, for every j.
fn softmax_slopes(shares: &[f64], i: usize) -> impl Iterator<Item = f64> {
    let delta = move |j: usize| if i == j { 1.0 } else { 0.0 };
    let shares_and_places = shares.iter().enumerate();
    shares_and_places.map(move |(j, share)| shares[i] * (delta(j) - share))
}

/// Indices by descending value, ties to the lower.
fn descending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    order
}
