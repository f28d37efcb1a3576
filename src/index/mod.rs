//! The search index: W_C finds clusters, A leads from clusters to labels, the best paths form the shortlist.
//!
//! Paper, Section 3.1 and 3.2. The index sees embeddings, not text, and does not know what a classifier is.

mod adjacency;
mod clusters;
mod pruning;
mod row_sums;
mod shortlist;

pub(crate) use adjacency::{Adjacency, Edges};
pub(crate) use clusters::ClusterClassifiers;
pub(crate) use clusters::logit_gradient;
pub use pruning::{Cut, LostLabels, Pruning, RemovedShare};
pub(crate) use row_sums::{
    Norm, edge_gradient, edge_scores, exponentials, highest, passed_gradients, segments,
};
pub(crate) use shortlist::{Path, Selection, ShortlistOptions, Shortlister, descending_key};
