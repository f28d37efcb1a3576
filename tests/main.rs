//! All integration tests, one module per theme, in one binary.

mod data;
mod data_archives;
mod data_errors;
mod data_hostile;
mod data_npz;
mod data_predictions;
mod data_roundtrip;
mod data_tables;
mod embeddings;
mod ensemble;
mod examples;
mod fuzz;
mod labels;
mod merge;
mod store;
mod tidy;
mod training;
mod update;
mod weights;

/// The library's own random numbers.
#[path = "../src/random.rs"]
mod random;

/// Runs the work on a pool of this many threads.
fn on_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()
        .unwrap()
        .install(work)
}
