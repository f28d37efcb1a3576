//! The path of one point through one member: clusters, edges, classifiers.

use crate::features::PointSet;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::index::{Selection, Shortlister};
use crate::matrix::{Matrix, sort_descending};
use crate::predict::{Member, Search};

/// A path to a label through a searched cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PathStep {
    pub(super) cluster: ClusterId,
    pub(super) cluster_score: f32,
    pub(super) edge_score: f32,
}

/// One point in one member. Label ids are those of the data set.
pub(super) struct Trace<'a> {
    pub(super) member: &'a Member,
    pub(super) embedding: Vec<f32>,
    /// Searched clusters, best first.
    pub(super) selected: Vec<Selection>,
    /// Labels of the shortlist by p, best first.
    pub(super) ranked: Vec<Scored>,
}

impl<'a> Trace<'a> {
    /// Traces one point.
    pub(super) fn follow(member: &'a Member, points: &PointSet, row: u32, search: &Search) -> Self {
        let model = &member.model;
        let mut embeddings = Matrix::default();
        member
            .encoder
            .encode(points.points(), &[row], &mut embeddings);
        let embedding = embeddings.row(0).to_vec();
        let mut probabilities = vec![0.0; model.clusters.n_clusters()];
        model
            .clusters
            .probabilities_of_one(&embedding, &mut probabilities);
        let mut searcher = Shortlister::new(model.classifiers.n_labels());
        searcher.search(
            &model.clusters,
            &model.adjacency,
            &probabilities,
            &search.options,
        );
        let mut ranked: Vec<Scored> = searcher
            .paths
            .iter()
            .map(|path| Scored {
                label: model.numbering.label(path.row),
                score: path.score * model.classifiers.score(path.row, &embedding),
            })
            .collect();
        sort_descending(&mut ranked);
        Trace {
            member,
            embedding,
            selected: searcher.selected,
            ranked,
        }
    }

    /// Every path to a label through the searched clusters, best first.
    pub(super) fn paths_to(&self, label: LabelId) -> Vec<PathStep> {
        let adjacency = &self.member.model.adjacency;
        let row = self.member.model.numbering.row(label);
        let mut steps = Vec::new();
        for selection in &self.selected {
            let range = adjacency.edges().range(selection.cluster);
            let labels = &adjacency.edges().rows()[range.clone()];
            if let Ok(offset) = labels.binary_search(&row) {
                steps.push(PathStep {
                    cluster: selection.cluster,
                    cluster_score: selection.score,
                    edge_score: adjacency.scores()[range.start + offset],
                });
            }
        }
        let score = |step: &PathStep| step.cluster_score * step.edge_score;
        steps.sort_by(|a, b| score(b).total_cmp(&score(a)));
        steps
    }

    /// σ(w·φ + b) of a label.
    pub(super) fn relevance(&self, label: LabelId) -> f32 {
        let model = &self.member.model;
        let row = model.numbering.row(label);
        model.classifiers.score(row, &self.embedding)
    }

    /// The place of a label by p, from 0; `None` if it is not in the shortlist.
    pub(super) fn place(&self, label: LabelId) -> Option<usize> {
        self.ranked.iter().position(|scored| scored.label == label)
    }
}
