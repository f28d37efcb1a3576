//! More labels for a trained model: rows of W_L after its own, and edges that lead to them.

use super::{Model, Numbering};
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelId, LabelRow};
use crate::index::{Adjacency, Edges};
use crate::matrix::Matrix;

/// A label that a model gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewLabel {
    /// w, d.
    pub(crate) weights: Vec<f32>,
    /// b.
    pub(crate) bias: f32,
    /// The clusters that lead to it, each with a(c,ℓ); the first is its cluster of stage 1. At least one.
    pub(crate) edges: Vec<(ClusterId, f32)>,
}

impl Model {
    /// Adds labels after its own; W_L is kept in 32 bits afterwards, without its coarse rows.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an edge starts at no cluster of the model, or edges were removed from it.
    pub(crate) fn grow(&mut self, labels: &[NewLabel]) -> Result<()> {
        if self.adjacency.removed().is_some() {
            let problem = "edges were removed from it, so that none can be added";
            return Err(Error::InvalidModel(problem.into()));
        }
        let (n_before, dim) = (
            self.classifiers.n_labels(),
            self.classifiers.weights.n_cols(),
        );
        let n_labels = n_before + labels.len();
        let adjacency = &self.adjacency;
        let edges = grown(
            adjacency.edges(),
            labels.iter().map(|label| &label.edges[..]),
        )?;
        self.adjacency = match (adjacency.weights(), adjacency.beta()) {
            (Some(weights), Some(beta)) => {
                let weights = grown_weights(adjacency.edges(), weights, labels);
                Adjacency::learned(edges, weights, beta)?
            }
            _ => Adjacency::fixed(edges),
        };
        let classifiers = &mut self.classifiers;
        let mut weights = classifiers.weights.values_mut().to_vec();
        labels
            .iter()
            .for_each(|label| weights.extend_from_slice(&label.weights));
        classifiers.weights = Matrix::from_vec(weights, n_labels, dim).into();
        classifiers
            .bias
            .extend(labels.iter().map(|label| label.bias));
        classifiers.coarse = None;
        let mut label_of_row = self.numbering.labels().to_vec();
        label_of_row.extend((n_before..n_labels).map(|label| LabelId(label as u32)));
        self.numbering = Numbering::new(label_of_row)?;
        Ok(())
    }
}

/// Edges, and those from clusters to more labels, which come after the others.
///
/// # Errors
/// [`Error::InvalidModel`] if there is no such cluster.
pub(crate) fn grown<'e>(
    edges: &Edges,
    more: impl Iterator<Item = &'e [(ClusterId, f32)]>,
) -> Result<Edges> {
    let n_clusters = edges.n_clusters();
    let own = |cluster: usize| edges.rows()[edges.range(ClusterId(cluster as u32))].to_vec();
    let mut lists: Vec<Vec<LabelRow>> = (0..n_clusters).map(own).collect();
    let mut n_labels = edges.n_labels();
    for clusters in more {
        for (cluster, _) in clusters {
            let list = lists.get_mut(cluster.idx()).ok_or_else(|| {
                Error::InvalidModel(format!("no cluster {} leads to a label", cluster.0))
            })?;
            list.push(LabelRow(n_labels as u32));
        }
        n_labels += 1;
    }
    Edges::from_lists(lists, n_labels)
}

/// The weights of [`grown`] edges: those of the model, and in each cluster those of the new labels after them.
fn grown_weights(edges: &Edges, weights: &[f32], labels: &[NewLabel]) -> Vec<f32> {
    let mut more = vec![Vec::new(); edges.n_clusters()];
    for (cluster, weight) in labels.iter().flat_map(|label| &label.edges) {
        more[cluster.idx()].push(*weight);
    }
    let clusters = more.into_iter().enumerate();
    clusters
        .flat_map(|(cluster, more)| {
            let own = &weights[edges.range(ClusterId(cluster as u32))];
            own.iter().copied().chain(more)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifiers::LabelClassifiers;
    use crate::config::Precision;
    use crate::index::ClusterClassifiers;

    fn model() -> Model {
        let rows = |rows: &[u32]| rows.iter().map(|&row| LabelRow(row)).collect();
        let edges = Edges::from_lists(vec![rows(&[0, 1]), rows(&[1])], 2).unwrap();
        let classifiers = LabelClassifiers {
            weights: Matrix::from_vec(vec![1.0, 0.0, 0.0, 1.0], 2, 2).into(),
            bias: vec![0.5, -0.5],
            coarse: None,
        };
        Model {
            clusters: ClusterClassifiers {
                weights: Matrix::zeros(2, 2),
                bias: vec![0.0; 2],
                alpha: 2.0,
            },
            adjacency: Adjacency::learned(edges, vec![0.1, 0.2, 0.3], 3.0).unwrap(),
            classifiers: classifiers.into_inference(Precision::Eight),
            numbering: Numbering::new(vec![LabelId(1), LabelId(0)]).unwrap(),
        }
    }

    fn label(edges: &[(u32, f32)]) -> NewLabel {
        NewLabel {
            weights: vec![2.0, 3.0],
            bias: -1.0,
            edges: edges.iter().map(|&(c, a)| (ClusterId(c), a)).collect(),
        }
    }

    #[test]
    fn new_labels_come_after_the_others_everywhere() {
        let mut model = model();
        model
            .grow(&[label(&[(1, 0.7), (0, 0.8)]), label(&[(1, 0.9)])])
            .unwrap();
        let adjacency = &model.adjacency;
        let rows: Vec<u32> = adjacency.edges().rows().iter().map(|row| row.0).collect();
        assert_eq!(rows, [0, 1, 2, 1, 2, 3]);
        assert_eq!(adjacency.edges().indptr(), [0, 3, 6]);
        assert_eq!(adjacency.weights().unwrap(), [0.1, 0.2, 0.8, 0.3, 0.7, 0.9]);
        assert_eq!(model.logit(LabelId(3), &[1.0, 1.0]), 4.0);
        assert_eq!(model.logit(LabelId(1), &[1.0, 1.0]), 1.5);
        assert!(model.classifiers.coarse.is_none());
    }

    #[test]
    fn an_edge_from_no_cluster_is_an_error() {
        assert!(model().grow(&[label(&[(2, 0.0)])]).is_err());
    }
}
