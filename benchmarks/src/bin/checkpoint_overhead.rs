//! The cost of checkpoints: trainings with and without them by turns, in one process.
//!
//! `cargo run --release -p elias-benchmarks --bin checkpoint_overhead -- DATA ROUNDS SECONDS [KEY=VALUE]...`
//! prints the seconds of each training and the median of the ratios. SECONDS is the least time between checkpoints;
//! the cap on their share of the time, which the command has, is lifted. Both sides end with saving the model.

use std::time::{Duration, Instant};

use elias::internals::median;
use elias::{Config, Dataset, Trainer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, n_rounds, seconds, settings @ ..] = &arguments[..] else {
        return Err("expected DATA ROUNDS SECONDS [KEY=VALUE]...".into());
    };
    let mut config = Config::default();
    for setting in settings {
        config = config.with_value(setting)?;
    }
    let data = Dataset::read(data)?;
    let interval = Duration::from_secs(seconds.parse()?);
    let trainer = Trainer::new(config);
    let place = std::env::temp_dir().join(format!("checkpoint-overhead-{}", std::process::id()));
    let mut ratios = Vec::new();
    for round in 0..n_rounds.parse::<usize>()? {
        let begun = Instant::now();
        let predictor = trainer.train(&data)?;
        predictor.save(place.join(format!("without-{round}")))?;
        let alone = begun.elapsed().as_secs_f64();

        let checkpointing = trainer.clone().checkpoint_every(interval);
        let begun = Instant::now();
        checkpointing.train_to(place.join(format!("with-{round}")), &data)?;
        let with = begun.elapsed().as_secs_f64();
        println!(
            "without {alone:.2} s, with {with:.2} s, ratio {:.4}",
            with / alone
        );
        ratios.push(with / alone);
    }
    std::fs::remove_dir_all(&place)?;
    println!("median ratio {:.4}", median(&ratios));
    Ok(())
}
