//! Data sets: texts or sparse features, and the labels of each point.
//!
//! A [`Dataset`] is what every reader makes and every later stage takes. Label ids are positions in its
//! [`LabelSet`]; a test set read against a training set's labels keeps their ids and appends labels never seen
//! in training behind them. [`read`] recognises the format by content, and [`Summary`] tells what it noticed.

mod builder;
mod dataset;
mod format;
mod jsonl;
mod label_set;
mod layout;
mod number;
mod read;
mod recognise;
mod source;
mod sparse_text;
mod texts;
mod xc;

pub use dataset::{Dataset, Summary};
pub use format::{Format, Part};
pub use label_set::LabelSet;
pub use layout::parts;
pub use read::{ReadOptions, read, read_bytes};
pub use texts::Texts;
