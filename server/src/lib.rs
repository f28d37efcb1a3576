//! The HTTP service of elias: the only part that is async and speaks HTTP.
//!
//! [`run`] is the whole service. [`Service`] is its state, [`router`] its endpoints and [`serve`] its connections, for
//! tests and for programs that bring their own runtime. Everything it knows of models comes from the library's public
//! interface. `docs/serving.md` is the manual.

mod annif;
mod answers;
mod auth;
mod body;
mod clusters;
mod connections;
mod docs;
mod error;
mod explain;
mod gate;
mod guarded_body;
mod info;
mod json;
mod labels;
mod learn;
mod learning;
mod log;
mod memory;
mod metrics;
mod models;
mod openapi;
mod options;
mod page;
mod peers;
mod predict;
mod query;
mod queue;
mod router;
mod run;
mod service;
mod stalling;
mod time;

pub use connections::serve;
pub use log::Log;
pub use options::{ModelSource, Options};
pub use router::router;
pub use run::run;
pub use service::{ServeError, Service};

#[cfg(test)]
mod tests;
