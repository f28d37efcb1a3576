//! The formats people bring, one file each: a line or an array in, a point out, and back.
//!
//! No path is opened here; [`crate::data::io`] does that and hands lines over.

pub(super) mod annif;
pub(super) mod fasttext;
pub(super) mod jsonl;
pub(super) mod label_token;
pub(super) mod libmultilabel;
pub(super) mod line_text;
pub(super) mod npy;
pub(super) mod npz;
pub(super) mod number;
pub(super) mod raw;
pub(super) mod sparse_text;
pub(super) mod text2text;
pub(super) mod xc;
pub(super) mod xc_json;

pub use npz::{read_npz, write_npz};
