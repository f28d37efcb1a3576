//! Matrices and the operations that several modules share.
//!
//! [`CsrMatrix`] holds sparse rows (features, labels), [`Matrix`] dense ones (weights, embeddings),
//! [`WeightRows`] those that may be kept in eight bits.
//! `top_k` orders scores; ties go to the lower id. Everything is `f32`; comments say where sums
//! use `f64` to keep their digits.

mod csr;
mod dense;
mod eight_bits;
mod group;
mod rounded;
mod top_k;
mod weight_rows;

pub(crate) use crate::kernels::{Output, View, product};
#[cfg(feature = "transformer")]
pub(crate) use crate::kernels::{ViewMut, product_into};
pub use csr::{CsrBuilder, CsrMatrix};
pub(crate) use dense::{Matrix, ranges_mut};
pub(crate) use eight_bits::EightBits;
pub(crate) use group::Groups;
pub(crate) use rounded::{columns_of, offsets_of, steps_of};
pub(crate) use top_k::{sort_descending, top_k};
pub(crate) use weight_rows::WeightRows;
