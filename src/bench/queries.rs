//! The work of a query: rows of W_L scored and bytes of parameters read.

use crate::classifiers::LabelWeights;
use crate::features::PointSet;
use crate::index::Shortlister;
use crate::matrix::Matrix;
use crate::model::RankScratch;
use crate::predict::{Predictor, Search};

/// Queries looked at, at most.
const MAX_QUERIES: usize = 2000;

/// The mean work of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryWork {
    /// Rows of W_L that are read in full.
    pub rows_scored: f64,
    /// Bytes of words, clusters, edges of the searched clusters, and label rows.
    pub bytes_read: f64,
}

/// Counts the work of queries for the `k` best labels of some of the points, in the first member's model.
pub fn query_work(predictor: &Predictor, points: &PointSet, k: usize) -> QueryWork {
    let features = &points.features;
    let plan = predictor.plan();
    let options = Search::new(plan, k, false).options;
    let member = &predictor.members()[0];
    let model = &member.model;
    let mut scratch = RankScratch::new(model);
    let mut searcher = Shortlister::new(model.classifiers.n_labels());
    let mut probabilities = vec![0.0; model.clusters.n_clusters()];
    let dim = plan.config().encoder.dim;
    let bytes_per_weight = match model.classifiers.weights {
        LabelWeights::Full(_) => 4,
        LabelWeights::Half(_) => 2,
    };
    let stride = features.n_rows().div_ceil(MAX_QUERIES).max(1);
    let (mut n_rows, mut n_bytes, mut n_queries) = (0, 0, 0);
    for point_idx in (0..features.n_rows()).step_by(stride) {
        let mut embedding = Matrix::default();
        let row = [point_idx as u32];
        member.encoder.encode(points.points(), &row, &mut embedding);
        model.rank(embedding.row(0), &options, k, &mut scratch);
        let clusters = &model.clusters;
        clusters.probabilities_of_one(embedding.row(0), &mut probabilities);
        searcher.search(clusters, &model.adjacency, &probabilities, &options);
        let selected = searcher.selected.iter();
        let n_edges: usize = selected
            .map(|selection| model.adjacency.edges().range(selection.cluster).len())
            .sum();
        let n_words = features.row(point_idx).0.len();
        n_queries += 1;
        n_rows += scratch.n_rows_scored;
        // One byte per value, and scale, error and bias.
        let coarse = match model.classifiers.coarse {
            Some(_) => searcher.paths.len() * (dim + 12),
            None => 0,
        };
        // An edge is a row and a score.
        n_bytes += 4 * (n_words * dim + clusters.n_clusters() * (dim + 1)) + 8 * n_edges;
        n_bytes += coarse + scratch.n_rows_scored * (bytes_per_weight * dim + 4);
    }
    let mean = |sum: usize| sum as f64 / f64::from(n_queries.max(1));
    QueryWork {
        rows_scored: mean(n_rows),
        bytes_read: mean(n_bytes),
    }
}
