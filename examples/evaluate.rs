//! Measures a model on the test part of a data set.
//!
//! `cargo run --release --example evaluate -- MODEL [DATA]`

#![allow(clippy::print_stdout)] // a program may print, the library may not

use std::path::Path;

use elias::Predictor;
use elias::data::{Part, ReadOptions, read};
use elias::metrics::{MetricsOptions, evaluate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or("my-model".into());
    let data = arguments.next().unwrap_or("data/debian-small".into());

    let predictor = Predictor::load(model)?;
    let options = ReadOptions {
        part: Part::Test,
        known_labels: Some(predictor.labels()), // the same numbers for the same labels
        ..ReadOptions::default()
    };
    let (test, _) = read(Path::new(&data), &options)?;

    let rankings = predictor.rank(&test, 100)?;
    let metrics = evaluate(test.labels(), &rankings, MetricsOptions::default());
    for name in ["p@1", "p@5", "r@10", "r@100"] {
        if let Some(percent) = metrics.get(name) {
            println!("{name} {percent:.2} %");
        }
    }
    Ok(())
}
