//! Reading and writing: finding files, recognising their format, reading line by line and writing atomically.

pub(super) mod filter;
mod formula;
pub(super) mod inputs;
pub(super) mod label_file;
pub(super) mod label_list;
pub(super) mod layout;
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
pub use inputs::{InputId, TextInput, TextInputs};
pub use label_file::{LabelFile, read_label_file};
pub use label_list::{label_list_of, probabilities_of, read_label_list, write_label_list};
pub use layout::parts;
pub use missing::missing;
pub use prediction_writer::{PredictionFormat, PredictionWriter, Probability};
pub use predictions::{PredictionShape, has_numbered_labels, read_predictions};
pub use pretrained::{Pretrained, TokenizerSource};
pub use read::{ReadOptions, read, read_bytes};
pub use sink::{Sink, remove_unfinished_files};
pub use write::{ConversionLoss, Written, write};
