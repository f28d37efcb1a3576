//! Matrices and the few operations on them that the method shares.
//!
//! [`CsrMatrix`] holds sparse rows (features, labels), [`Matrix`] dense ones (weights, embeddings).
//! `top_k` orders scores; ties go to the lower id. Everything is `f32`; sums that could lose digits say where
//! they use `f64`.

mod csr;
mod dense;
mod group;
mod product;
mod top_k;

pub use csr::{CsrBuilder, CsrMatrix};
pub(crate) use dense::Matrix;
pub(crate) use group::Groups;
pub(crate) use product::{Output, View, ViewMut, product, product_into};
pub(crate) use top_k::{sort_descending, top_k};
