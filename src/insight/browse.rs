//! Labels, clusters and the words of a text as a model knows them, for browsing.
//!
//! Edges and words are those of the first member. Each lookup reads the model as it is; nothing is indexed.

use serde::{Deserialize, Serialize};

use crate::features::PointSet;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::predict::Predictor;

/// Words that stand for a training point.
const N_EXAMPLE_WORDS: usize = 12;

/// A label as a model knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelDetails {
    /// The clusters that lead to it, the strongest edge first.
    pub clusters: Vec<ClusterEdge>,
    /// The words that the ranker weighs most for it, by magnitude; none without a ranker.
    pub words: Vec<(String, f32)>,
    /// Training points that have it, the first ones; none if the model does not keep them.
    pub examples: Vec<LabelExample>,
}

/// A training point of a label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelExample {
    /// Its number in the training data.
    pub point: usize,
    /// Its words of the highest tf-idf weights; the model keeps no texts, and no words that many points have.
    pub words: Vec<String>,
}

/// An edge of the index, seen from its label.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterEdge {
    /// The cluster.
    pub cluster: ClusterId,
    /// ŝ(c,ℓ).
    pub edge_score: f32,
}

/// The labels that a cluster leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterDetails {
    /// How many there are.
    pub n_labels: usize,
    /// The strongest of them with ŝ(c,ℓ), the strongest first.
    pub labels: Vec<Scored>,
}

impl Predictor {
    /// Clusters, words and training points of a label, at most `n` of each; `None` if it has no such label.
    pub fn inspect_label(&self, label: LabelId, n: usize) -> Option<LabelDetails> {
        label_details(self, label, n)
    }

    /// The labels of a cluster, at most `n` of them; `None` if it has no such cluster.
    pub fn inspect_cluster(&self, cluster: ClusterId, n: usize) -> Option<ClusterDetails> {
        cluster_details(self, cluster, n)
    }

    /// Number of clusters of the first member.
    pub fn n_clusters(&self) -> usize {
        self.members()[0].model.clusters.n_clusters()
    }
}

fn label_details(predictor: &Predictor, label: LabelId, n: usize) -> Option<LabelDetails> {
    if predictor.labels().len() <= label.idx() {
        return None;
    }
    if predictor.n_trained_labels() <= label.idx() {
        let examples = examples(predictor, label, n);
        return Some(LabelDetails {
            examples,
            ..LabelDetails::default()
        });
    }
    let member = &predictor.members()[0];
    let adjacency = &member.model.adjacency;
    let row = member.model.numbering.row(label);
    let mut clusters = Vec::new();
    for cluster_idx in 0..adjacency.edges().n_clusters() as u32 {
        let range = adjacency.edges().range(ClusterId(cluster_idx));
        let rows = &adjacency.edges().rows()[range.clone()];
        if let Ok(offset) = rows.binary_search(&row) {
            clusters.push(ClusterEdge {
                cluster: ClusterId(cluster_idx),
                edge_score: adjacency.scores()[range.start + offset],
            });
        }
    }
    clusters.sort_by(|a, b| b.edge_score.total_cmp(&a.edge_score));
    clusters.truncate(n);
    let ranker = member.ranker.as_ref();
    let words = ranker.map(|ranker| named(predictor, ranker.words_of(label), n));
    Some(LabelDetails {
        clusters,
        words: words.unwrap_or_default(),
        examples: examples(predictor, label, n),
    })
}

/// The first `n` training points of a label.
fn examples(predictor: &Predictor, label: LabelId, n: usize) -> Vec<LabelExample> {
    let Some(neighbours) = predictor.knowledge().neighbours else {
        return Vec::new();
    };
    let examples = neighbours.examples(label, n).into_iter();
    let examples = examples.map(|(point, words)| {
        let words = named(predictor, words, N_EXAMPLE_WORDS).into_iter();
        LabelExample {
            point,
            words: words.map(|(word, _)| word).collect(),
        }
    });
    examples.collect()
}

fn cluster_details(predictor: &Predictor, cluster: ClusterId, n: usize) -> Option<ClusterDetails> {
    if predictor.n_clusters() <= cluster.idx() {
        return None;
    }
    let model = &predictor.members()[0].model;
    let adjacency = &model.adjacency;
    let range = adjacency.edges().range(cluster);
    let n_labels = range.len();
    let mut edges: Vec<usize> = range.collect();
    // Saturated scores tie; the weights behind them do not.
    let weight = |edge: usize| adjacency.weights().map_or(0.0, |weights| weights[edge]);
    edges.sort_by(|&a, &b| {
        let scores = adjacency.scores();
        let by_score = scores[b].total_cmp(&scores[a]);
        by_score.then(weight(b).total_cmp(&weight(a)))
    });
    let labels = edges.iter().take(n).map(|&edge| Scored {
        label: model.numbering.label(adjacency.edges().rows()[edge]),
        score: adjacency.scores()[edge],
    });
    Some(ClusterDetails {
        n_labels,
        labels: labels.collect(),
    })
}

/// The words of the first of the points that the model knows, with their tf-idf weights, the heaviest first.
pub(crate) fn known_words(predictor: &Predictor, points: &PointSet) -> Vec<(String, f32)> {
    let (columns, values) = points.features.row(0);
    let weights = columns.iter().copied().zip(values.iter().copied());
    named(predictor, weights.collect(), usize::MAX)
}

/// The `n` columns of the largest weights by magnitude, with their words; ties to the lower column.
fn named(predictor: &Predictor, mut weights: Vec<(u32, f32)>, n: usize) -> Vec<(String, f32)> {
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    let name = |column| predictor.featurizer().name(column);
    let strongest = weights.into_iter().take(n);
    strongest.map(|(column, w)| (name(column), w)).collect()
}
