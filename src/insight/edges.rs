//! The edges of a model's index: the labels of each cluster, and what pruning removes.

use super::health::assigning_score;
use crate::candidates::Member;
use crate::error::Result;
use crate::ids::ClusterId;
use crate::index::Pruning;
use crate::predict::Predictor;

/// Labels and clusters that are assigned to each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignments {
    /// The strongest labels of each cluster, the strongest first.
    pub strongest_labels: Vec<Vec<u32>>,
    /// The clusters of each label, the strongest first.
    pub clusters_of_label: Vec<Vec<u32>>,
}

/// The assignments of the first member, with at most `n_labels` labels per cluster.
pub(crate) fn assignments(predictor: &Predictor, n_labels: usize) -> Assignments {
    let model = &predictor.members()[0].model;
    let adjacency = &model.adjacency;
    let mut of_label: Vec<Vec<(f32, u32)>> = vec![Vec::new(); model.classifiers.n_labels()];
    let mut strongest_labels = Vec::new();
    let assigned_above = assigning_score(adjacency);
    for cluster_idx in 0..model.clusters.n_clusters() {
        let range = adjacency.edges().range(ClusterId(cluster_idx as u32));
        let mut row: Vec<(u32, f32, f32)> = range
            .map(|edge| {
                let label = model.numbering.label(adjacency.edges().rows()[edge]);
                let weight = adjacency.weights().map_or(0.0, |weights| weights[edge]);
                (label.0, adjacency.scores()[edge], weight)
            })
            .collect();
        // Saturated scores tie; the weights behind them do not.
        row.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.total_cmp(&a.2)));
        row.retain(|&(_, score, _)| score > assigned_above);
        for &(label, score, _) in &row {
            of_label[label as usize].push((score, cluster_idx as u32));
        }
        let first = row.iter().take(n_labels);
        strongest_labels.push(first.map(|&(label, _, _)| label).collect());
    }
    let clusters_of_label = of_label.into_iter().map(|mut clusters| {
        clusters.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        clusters.into_iter().map(|(_, cluster)| cluster).collect()
    });
    Assignments {
        strongest_labels,
        clusters_of_label: clusters_of_label.collect(),
    }
}

/// The result of pruning one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneFigures {
    /// Edges before.
    pub n_edges: usize,
    /// Edges removed.
    pub n_removed: usize,
    /// Labels that the cut alone would have made unreachable, and that kept their strongest edge.
    pub n_rescued: usize,
    /// Labels that no edge leads to afterwards.
    pub n_unreachable: usize,
}

impl Predictor {
    /// Removes weak edges from every member.
    ///
    /// # Errors
    /// [`Error::InvalidModel`](crate::Error::InvalidModel) if a weight cannot be represented.
    pub fn prune(&mut self, pruning: impl Into<Pruning>) -> Result<Vec<PruneFigures>> {
        prune(self.members_mut(), pruning.into())
    }
}

fn prune(members: &mut [Member], pruning: Pruning) -> Result<Vec<PruneFigures>> {
    let mut figures = Vec::new();
    for member in members {
        let adjacency = &mut member.model.adjacency;
        let n_edges = adjacency.edges().len();
        let pruned = adjacency.pruned(pruning)?;
        figures.push(PruneFigures {
            n_edges,
            n_removed: pruned.n_removed,
            n_rescued: pruned.n_rescued,
            n_unreachable: pruned.adjacency.edges().unreachable().len(),
        });
        *adjacency = pruned.adjacency;
    }
    Ok(figures)
}
