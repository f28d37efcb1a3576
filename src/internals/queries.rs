//! The work of a query: rows of W_L scored and bytes of parameters read.

use crate::candidates::{Knowledge, ScoreKind, Search, Walk, WalkScratch};
use crate::data::Dataset;
use crate::error::Result;
use crate::features::PointSet;
use crate::ids::Scored;
use crate::predict::{Predictor, Query};

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

/// The points of a data set, as the model reads them.
///
/// # Errors
/// [`Error::CannotPredict`](crate::Error::CannotPredict) if the data is not what the model was trained on.
pub fn points(predictor: &Predictor, data: &Dataset) -> Result<PointSet> {
    predictor.featurizer().points(data)
}

/// The best labels of points.
///
/// # Errors
/// As [`Predictor::predict_batch`].
pub fn predict_points(
    predictor: &Predictor,
    points: &PointSet,
    query: &Query,
) -> Result<Vec<Vec<Scored>>> {
    predictor.rank_points(points.points(), query)
}

/// Counts the work of queries for the `k` best labels of some of the points, in the first member's model.
///
/// # Errors
/// [`crate::Error::CannotPredict`] if a weight that is not finite was met.
pub fn query_work(predictor: &Predictor, points: &PointSet, k: usize) -> Result<QueryWork> {
    let features = &points.features;
    let plan = predictor.plan();
    let member = &predictor.members()[0];
    let model = &member.model;
    let walk = Walk {
        search: Search::of_best(plan, k),
        ..Walk::to_columns(member, ScoreKind::P, Knowledge::default(), plan)
    };
    let mut scratch = WalkScratch::new(model);
    let dim = plan.config().encoder.dim;
    let bytes_per_weight = model.classifiers.weights.n_value_bytes();
    let n_clusters = model.clusters.n_clusters();
    let stride = features.n_rows().div_ceil(MAX_QUERIES).max(1);
    let (mut n_rows, mut n_bytes, mut n_queries) = (0, 0, 0);
    for point_idx in (0..features.n_rows()).step_by(stride) {
        let point = (points.points(), &[point_idx as u32][..]);
        let searched = walk.map_columns(ScoreKind::P, point, &mut scratch, |_, candidates| {
            candidates.searched().clone()
        })?;
        let n_words = features.row(point_idx).0.len();
        n_queries += 1;
        for searched in searched {
            let edges = model.adjacency.edges();
            let clusters = searched.clusters.iter();
            let n_edges: usize = clusters.map(|c| edges.range(c.cluster).len()).sum();
            // One byte per value, and scale, error and bias.
            let coarse = match model.classifiers.bounds() {
                Some(_) => searched.n_shortlisted * (dim + 12),
                None => 0,
            };
            n_rows += searched.n_scored;
            // An edge is a row and a score.
            n_bytes += 4 * (n_words * dim + n_clusters * (dim + 1)) + 8 * n_edges;
            n_bytes += coarse + searched.n_scored * (bytes_per_weight * dim + 4);
        }
    }
    let mean = |sum: usize| sum as f64 / f64::from(n_queries.max(1));
    Ok(QueryWork {
        rows_scored: mean(n_rows),
        bytes_read: mean(n_bytes),
    })
}
