//! The search index: W_C finds clusters, A leads from clusters to labels, the best paths form the shortlist.
//!
//! Paper, Section 3.1 and 3.2. The index sees embeddings, not text, and does not know what a classifier is.

mod adjacency;
mod clusters;
mod pruning;
mod shortlist;

pub(crate) use adjacency::{Adjacency, Edges};
pub(crate) use adjacency::{edge_gradient, edge_scores};
pub(crate) use clusters::ClusterClassifiers;
pub(crate) use clusters::logit_gradient;
pub use pruning::{Cut, LostLabels};
pub(crate) use shortlist::{Path, Selection, ShortlistOptions, Shortlister};
