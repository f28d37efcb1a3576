//! The formats of data sets, one file each: reading points from lines or arrays, and writing them.
//!
//! No path is opened here: [`crate::data::io`] opens files and passes on their lines.

pub(super) mod annif;
pub(super) mod columns;
pub(super) mod fasttext;
pub(super) mod jsonl;
pub(super) mod label_cell;
pub(super) mod label_token;
pub(super) mod libmultilabel;
pub(super) mod line_text;
pub(super) mod npy;
pub(super) mod npz;
pub(super) mod number;
pub(super) mod raw;
pub(super) mod records;
pub(super) mod sparse_text;
pub(super) mod table;
pub(super) mod text2text;
pub(super) mod text_fields;
pub(super) mod xc;
pub(super) mod xc_json;

pub use columns::{Columns, LabelSeparator};
pub use npy::write_npy;
pub(super) use number::f16_to_f32;
