//! Reading and writing: finding files, recognising their format, reading line by line and writing atomically.

pub(super) mod archive;
pub(super) mod config_file;
pub(super) mod filter;
mod formula;
pub(super) mod inputs;
pub(super) mod label_file;
pub(super) mod label_list;
pub(super) mod layout;
pub(super) mod machine;
pub(super) mod missing;
pub(super) mod prediction_writer;
pub(super) mod predictions;
pub(super) mod pretrained;
pub(super) mod read;
pub(super) mod recognise;
pub(super) mod sink;
pub(super) mod source;
pub(super) mod unknown;
pub(super) mod write;

pub use filter::read_filter_pairs;
pub use inputs::{InputColumns, InputId, TextInput, TextInputs};
pub use label_file::{LabelFile, read_others};
pub use label_list::{escape_label, read_label_names, read_label_renames, read_label_thresholds};
pub(crate) use machine::memory_of_machine;
pub(crate) use missing::missing;
pub use prediction_writer::{PredictionFormat, PredictionWriter};
pub use predictions::PredictionShape;
pub(crate) use pretrained::{Pretrained, TokenizerSource};
pub use read::ReadOptions;
pub use sink::Sink;
pub use write::{ConversionLoss, Written};
