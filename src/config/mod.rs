//! What a user may set, component by component.
//!
//! Every struct is plain: public fields, one doc line each, [`Default`] where the paper or a measurement says so.
//! Unknown keys are errors. Values are checked where they are used, with [`crate::Error::Config`].

mod clustering;
mod features;

pub use clustering::ClusteringConfig;
pub use features::{FeaturesConfig, TokenPattern};
