//! Training points with many of the same words as a text, and labels by their names.
//!
//! Both are found through an inverted index ([`Postings`]): a text adds up its cosine with every row it shares a word
//! with and keeps the best; no other row is touched. This module sees features and labels, not models.

mod forms;
mod names;
mod postings;
mod votes;

pub(crate) use forms::{FormMatch, Forms};
pub(crate) use names::{NameMatch, Names};
pub(crate) use postings::{NeighbourScratch, Postings};
pub(crate) use votes::{Neighbours, Vote};

#[cfg(test)]
mod tests;
