//! Measures a model on the test part of a data set.
//!
//! `cargo run --release --example evaluate -- MODEL [DATA]`

#![allow(clippy::print_stdout)] // a program may print, the library may not

use elias::data::{Part, ReadOptions};
use elias::{Evaluation, Predictor};

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
    let (test, _) = options.read(data)?;

    let metrics = predictor.evaluate(&test, &Evaluation::default())?.metrics;
    for (name, percent) in [
        ("p@1", metrics.precision(1)),
        ("p@5", metrics.precision(5)),
        ("r@10", metrics.recall(10)),
        ("r@100", metrics.recall(100)),
    ] {
        if let Some(percent) = percent {
            println!("{name} {percent:.2} %");
        }
    }
    Ok(())
}
