//! Sparse text features: words, their inverse document frequencies, and tf-idf rows.
//!
//! A [`Vectorizer`] learns a vocabulary from texts and turns texts into rows of L2 norm 1. Its formulas are those of
//! scikit-learn's `TfidfVectorizer`: `idf = ln((1 + N) / (1 + df)) + 1`, `tf` or `1 + ln tf`, rows divided by their
//! L2 norm. Columns are ordered by the bytes of their words. The result is the same on any number of threads.
//! [`WordPieces`] are for transformers: the token ids of each text, in [`TokenRows`].

mod counting;
mod expansion;
mod featurizer;
mod merging;
mod pairs;
mod points;
mod terms;
mod tf_idf;
mod token_rows;
mod token_table;
mod tokens;
mod unseen;
mod vectorizer;
mod vocabulary;
mod word_chars;
mod word_parts;
#[cfg(feature = "transformer")]
mod word_pieces;
#[cfg(not(feature = "transformer"))]
#[path = "without_word_pieces.rs"]
mod word_pieces;

pub(crate) use expansion::Expansion;
pub(crate) use featurizer::{FeatureScratch, Featurizer};
pub(crate) use pairs::Pairs;
pub use points::PointSet;
pub(crate) use points::{Points, TermRow};
pub use tf_idf::TfIdf;
pub(crate) use token_rows::TokenRows;
pub(crate) use vectorizer::Vectorizer;
pub(crate) use vocabulary::Vocabulary;

pub(crate) use word_parts::WordParts;

use terms::TokenScratch;
pub(crate) use word_pieces::WordPieces;

#[cfg(test)]
mod tests;
