//! AdamW, its schedule and its state per parameter.
//!
//! Dense parameters are updated as in the paper. Rows of W_L, A and the word embeddings are updated all together, as in the
//! paper, or only in the steps that touch them ("lazy" AdamW): moments, decay and bias correction of a row count its own
//! updates.

mod adamw;
mod schedule;

pub(crate) use adamw::{DenseMoments, Moments, RowMoments, update_parameter};
pub(crate) use schedule::{Pace, Schedule, StepRates};
