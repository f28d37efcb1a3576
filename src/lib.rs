//! Extreme multi-label classification: given a text, find the right few among thousands to millions of labels.
//!
//! The crate implements ELIAS (End-to-End Learning to Index and Search in Large Output Spaces) and its
//! extension ELIAS++: an encoder φ, a learned cluster→label graph as search index, and label classifiers,
//! trained together.
//!
//! ```
//! use elias::{config::Config, data::Dataset, pipeline::Trainer, train::Silent};
//!
//! let texts = Dataset::from_texts([
//!     ("ripe red apple", vec!["fruit", "red"]),
//!     ("fast red car", vec!["vehicle", "red"]),
//!     ("ripe green pear", vec!["fruit", "green"]),
//!     ("fast green bike", vec!["vehicle", "green"]),
//! ]);
//! let config = Config::from_toml("stage1.epochs = 50")?; // few texts need many passes
//! let predictor = Trainer::new(config).train(&texts, None, &Silent)?;
//! let answers = predictor.predict("a ripe plum", 1)?;
//! assert_eq!(predictor.label_set().name(answers[0].label), "fruit");
//! # Ok::<(), elias::Error>(())
//! ```
//!
//! [`pipeline::Trainer`] reports through a [`train::Observer`]; [`predict::Predictor`] is `Send + Sync`.
//!
//! Modules stand in reading order; each may use only those above it.
//! The library never prints, reads the environment, exits, or configures a global thread pool: work runs on the
//! caller's rayon pool.

pub mod error;
pub mod ids;
mod pool;
pub mod random;

pub mod config;
pub mod kernels;
pub mod matrix;

pub mod data;
pub mod features;
pub mod metrics;

pub mod classifiers;
pub mod clustering;
pub mod encoder;
pub mod index;

pub mod loss;
pub mod model;
pub mod optim;

pub mod calibration;
pub mod ranker;
pub mod train;

pub mod ensemble;

pub mod predict;

pub mod insight;

pub mod checkpoint;

pub mod pipeline;

pub use error::{Error, Result};
