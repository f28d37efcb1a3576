//! Data sets: texts or sparse features, and the labels of each point.
//!
//! A [`Dataset`] is what every reader makes and every later stage takes. Label ids are positions in its
//! [`LabelSet`]; a test set read against a training set's labels keeps their ids and appends labels never seen
//! in training behind them.

mod dataset;
mod hold_out;
mod label_set;
mod texts;

pub use dataset::{Dataset, Summary};
pub use hold_out::HoldOut;
pub use label_set::LabelSet;
pub use texts::Texts;
