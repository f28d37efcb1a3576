//! Everything that users see: messages, progress, tables, plots, and Ctrl-C.

pub(crate) mod answers;
pub(crate) mod bus_error;
pub(crate) mod console;
pub(crate) mod count;
pub(crate) mod figures;
pub(crate) mod file_limit;
pub(crate) mod interrupt;
pub(crate) mod progress;
pub(crate) mod shortlist;
pub(crate) mod table;
pub(crate) mod time_left;
pub(crate) mod training;
