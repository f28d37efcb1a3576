//! Data sets: texts or sparse features, and the labels of each point.
//!
//! Every reader returns a [`Dataset`], and every later stage takes one. Label ids are positions in its
//! [`LabelSet`]; a test set read against a training set's labels keeps their ids and appends labels never seen
//! in training behind them. [`read`] recognises the format by content and returns a [`Summary`];
//! [`write()`] writes any format and returns what it could not hold.

mod builder;
mod data_summary;
mod dataset;
mod format;
mod formats;
mod hold_out;
mod io;
mod label_set;
mod label_texts;
mod near_duplicates;
mod texts;

pub use data_summary::DataSummary;
pub use dataset::{Dataset, Summary};
pub use format::{Format, Part};
pub use formats::{Columns, read_npz, write_npz};
pub(crate) use hold_out::{Alone, HoldOut};
pub use io::{
    ConversionLoss, InputId, LabelFile, PredictionFormat, PredictionShape, PredictionWriter,
    Pretrained, Probability, ReadOptions, Sink, TextInput, TextInputs, TokenizerSource, Written,
    has_numbered_labels, label_list_of, missing, parts, probabilities_of, read, read_bytes,
    read_filter_pairs, read_label_file, read_label_list, read_predictions, remove_unfinished_files,
    write, write_label_list,
};
pub use label_set::LabelSet;
pub(crate) use label_texts::{names_are_informative, texts_of_names};
pub use texts::Texts;

pub use crate::matrix::{CsrBuilder, CsrMatrix};
