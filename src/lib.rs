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
//! # Concepts
//!
//! - A **point** is a text, or a row of sparse features. A [`Dataset`] has points with their labels;
//!   [`Dataset::read`] takes any common format.
//! - A **label** is one of the L classes: a name in a [`data::LabelSet`], and a number, [`LabelId`].
//! - A **cluster** ([`ClusterId`]) leads to labels by edges with learned weights, and a label can be in several. Clusters
//!   and edges are the search index; [`Predictor::inspect_cluster`] shows them.
//! - **Candidates** are the few labels of a point that are scored: those the index finds (the shortlist), and those of
//!   similar training points and matching names. [`Predictor::explain`] shows where an answer comes from.
//! - A **member** is one trained network of an ensemble, with its own index and ranker. [`Predictor::merge`] makes one
//!   model of several.
//! - A [`Level`] is a part of a model that can answer by itself: a stage of the network, the ranker, the calibrated
//!   member, or the whole.
//!
//! # Use cases
//!
//! [`Config`] has all settings, [`Config::preset`] those of the paper. [`Trainer::train_to`] writes checkpoints and can
//! be resumed; an [`Observer`] follows a training and can stop it. [`Predictor::predict`] and
//! [`Predictor::predict_batch`] answer a [`Query`]; [`Predictor::evaluate`] measures a model, [`Evaluation::measure`]
//! anyone's rankings ([`metrics`]). [`insight`] shows what a model learned: [`Predictor::explain`],
//! [`Predictor::inspect`], [`Predictor::report`]. [`reference`](mod@reference) is a step of the method in its plainest form.
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

mod evaluation;

mod store;

mod training;

pub mod insight;

#[doc(hidden)]
pub mod internals;

pub use communicator::Communicator;
pub use config::Config;
pub use data::Dataset;
pub use error::{Contents, Error, ReadOption, Result};
pub use evaluation::{Evaluation, Measurements, QueryTimes};
pub use events::{Event, Observer, Phase};
pub use features::TfIdf;
pub use ids::{ClusterId, LabelId, Prediction, Predictions, Scored};
pub use predict::{
    Correction, Embeddings, Inputs, LabelLists, LabelRef, LabelRules, Level, Predictor, Query,
    Uncalibrated,
};
pub use store::Learner;
pub use training::{GivenHoldOut, MemoryEstimate, PreparedTraining, Trainer, Updated, Workload};

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
