//! Extreme multi-label classification: given a text, find the right few among thousands to millions of labels.
//!
//! The crate implements ELIAS (End-to-End Learning to Index and Search in Large Output Spaces) and its extension
//! ELIAS++: an encoder φ, a learned cluster→label graph as search index, and label classifiers, trained together.
//!
//! ```
//! # let directory = tempfile::tempdir().unwrap();
//! # let model = directory.path().join("model");
//! use elias::{Config, Dataset, Predictor, Trainer};
//!
//! let data = Dataset::from_texts([
//!     ("ripe red apple", ["fruit", "red"]),
//!     ("fast red car", ["vehicle", "red"]),
//!     ("ripe green pear", ["fruit", "green"]),
//!     ("fast green bike", ["vehicle", "green"]),
//! ]);
//! let config = Config::from_toml("stage1.epochs = 50")?; // few texts need many passes
//! Trainer::new(config).train(&data)?.save(&model)?;
//!
//! let predictor = Predictor::load(&model)?;
//! assert_eq!(predictor.predict("a ripe plum", 1)?[0].label, "fruit");
//! # Ok::<(), elias::Error>(())
//! ```
//!
//! [`Trainer::train_to`] writes checkpoints and can be resumed; an [`Observer`] follows a training and can stop it.
//! [`reference`] is the method in its plainest form, [`data`] reads files in any common format, [`metrics`] measures rankings, [`insight`] shows what a model learned.
//!
//! The library never prints, reads the environment, exits, or configures a global thread pool: work runs on the
//! caller's rayon pool.

// In reading order: a module uses only those above it.
mod error;
mod events;
mod ids;
mod pool;
mod random;

mod communicator;
pub mod config;
mod kernels;
mod matrix;

pub mod data;
mod features;
pub mod metrics;

mod classifiers;
mod clustering;
mod encoder;
mod index;

mod loss;
mod model;
mod optim;
pub mod reference;

mod calibration;
mod neighbours;
mod ranker;
mod train;

mod candidates;

mod predict;

pub mod insight;

mod store;

mod training;

pub mod bench;
pub mod tools;

pub use config::Config;
pub use data::Dataset;
pub use error::{Error, Result};
pub use events::{Event, Observer, Phase};
pub use ids::{LabelId, Scored};
pub use predict::{Inputs, Level, Prediction, Predictor, Query};
pub use training::{PreparedTraining, Trainer};

#[cfg(test)]
#[path = "../tests/goldens.rs"]
mod goldens;

/// Runs the work on a pool of this many threads.
#[cfg(test)]
fn on_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
    pool.build().unwrap().install(work)
}

/// The Rust of the README compiles.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
