//! Data sets: texts or sparse features, and the labels of each point.
//!
//! A [`Dataset`] is what every reader makes and every later stage takes. Label ids are positions in its
//! [`LabelSet`]; a test set read against a training set's labels keeps their ids and appends labels never seen
//! in training behind them. [`read`] recognises the format by content and [`Summary`] tells what it noticed;
//! [`write()`] writes any format and tells what it could not hold.

mod annif;
mod builder;
mod dataset;
mod fasttext;
mod filter;
mod format;
mod hold_out;
mod inputs;
mod jsonl;
mod label_set;
mod label_token;
mod layout;
mod libmultilabel;
mod line_text;
mod missing;
mod near_duplicates;
mod npy;
mod npz;
mod number;
mod predictions;
mod pretrained;
mod raw;
mod read;
mod recognise;
mod sink;
mod source;
mod sparse_text;
mod text2text;
mod texts;
mod write;
mod xc;
mod xc_json;

pub use dataset::{Dataset, Summary};
pub use filter::read_filter_pairs;
pub use format::{Format, Part};
pub use hold_out::HoldOut;
pub use inputs::{TextInput, TextInputs};
pub use label_set::LabelSet;
pub use layout::parts;
pub use missing::missing;
pub use npz::{read_npz, write_npz};
pub use predictions::{PredictionFormat, PredictionWriter, Probability, read_predictions};
pub use pretrained::{Pretrained, TokenizerSource};
pub use read::{ReadOptions, read, read_bytes};
pub use sink::Sink;
pub use texts::Texts;
pub use write::{Loss, Written, write};
