//! Data sets: texts or sparse features, and the labels of each point.
//!
//! Every reader returns a [`Dataset`], and every later stage takes one. Label ids are positions in its
//! [`LabelSet`]; a test set read against a training set's labels keeps their ids and appends labels never seen
//! in training behind them. [`Dataset::read`] recognises the format by content, [`ReadOptions`] say more and
//! return a [`Summary`] of what was noticed; [`Dataset::write`] writes any format and returns what it could not hold.

mod builder;
mod data_summary;
mod dataset;
mod described;
mod format;
mod formats;
mod hold_out;
mod io;
mod label_set;
mod label_texts;
mod near_duplicates;
mod seen_texts;
mod synonyms;
mod text_embeddings;
mod texts;
mod word_vectors;

pub use data_summary::DataSummary;
pub use dataset::{Dataset, Summary};
pub use described::DescribedLabels;
pub use format::{Format, Part};
pub use formats::{Columns, LabelSeparator};
pub use io::{ConversionLoss, LabelFile, ReadOptions, Written, read_others};
// Streams of texts and files of predictions, as the command reads and writes them.
#[doc(hidden)]
pub use formats::write_npy;
#[doc(hidden)]
pub use io::{
    InputColumns, InputId, PredictionFormat, PredictionShape, PredictionWriter, Sink, TextInput,
    TextInputs, escape_label, read_filter_pairs, read_label_names, read_label_renames,
    read_label_thresholds,
};

pub(crate) use hold_out::{Alone, HoldOut, HoldOutRules};
pub(crate) use io::{Pretrained, TokenizerSource, memory_of_machine, missing};
pub(crate) use seen_texts::SeenTexts;

pub use label_set::LabelSet;
pub(crate) use label_texts::{names_are_informative, texts_of_names};
pub use synonyms::Synonyms;
pub use text_embeddings::{EmbeddingRows, TextEmbeddings};
pub use texts::Texts;
pub(crate) use word_vectors::Place;
pub use word_vectors::WordVectors;

pub use crate::matrix::{CsrBuilder, CsrMatrix};
