//! Trains a model and saves it.
//!
//! `cargo run --release --example train_and_save -- [DATA] [MODEL] [KEY=VALUE]...`

#![allow(clippy::print_stdout)] // a program may print, the library may not

use elias::{Config, Dataset, Trainer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default| arguments.get(at).map_or(default, String::as_str);
    let data = Dataset::read(argument(0, "data/debian-small"))?;

    let mut config = Config::default();
    for setting in arguments.iter().skip(2) {
        config = config.with_value(setting)?; // for example stage1.epochs=3
    }
    let predictor = Trainer::new(config).train(&data)?;
    predictor.save(argument(1, "my-model"))?;

    let (n_points, n_labels) = (data.n_points(), data.n_labels());
    println!("trained on {n_points} texts with {n_labels} labels");
    Ok(())
}
