//! What checkpoints cost: trainings with and without them by turns, in one process.
//!
//! `cargo run --release --example checkpoint_overhead -- DATA ROUNDS SECONDS [KEY=VALUE]...`
//! prints the seconds of each training and the median of the ratios. SECONDS is the least time between checkpoints;
//! the cap on their share of the time, which the command has, is lifted. Both sides end with saving the model.

#![allow(clippy::print_stdout)] // a program, not the library

use std::path::Path;
use std::time::{Duration, Instant};

use elias::checkpoint::{DataSummary, Destination, Existing, SaveInfo, SnapshotPace, save};
use elias::config::Config;
use elias::data::{ReadOptions, read};
use elias::pipeline::Trainer;
use elias::train::Silent;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, n_rounds, seconds, settings @ ..] = &arguments[..] else {
        return Err("expected DATA ROUNDS SECONDS [KEY=VALUE]...".into());
    };
    let mut config = Config::default();
    for setting in settings {
        config = config.with_value(setting)?;
    }
    let (data, _) = read(Path::new(data), &ReadOptions::default())?;
    let trainer = Trainer::new(config);
    let place = std::env::temp_dir().join(format!("checkpoint-overhead-{}", std::process::id()));
    let mut ratios = Vec::new();
    for round in 0..n_rounds.parse::<usize>()? {
        let without = place.join(format!("without-{round}"));
        let begun = Instant::now();
        let predictor = trainer.train(&data, None, &Silent)?;
        let info = SaveInfo {
            history: Vec::new(),
            data: DataSummary::of(&data),
            existing: Existing::Keep,
        };
        save(&predictor, &without, &info)?;
        let alone = begun.elapsed().as_secs_f64();

        let destination = Destination {
            pace: SnapshotPace {
                interval: Duration::from_secs(seconds.parse()?),
                max_share: f64::INFINITY,
            },
            ..Destination::new(place.join(format!("with-{round}")))
        };
        let begun = Instant::now();
        trainer.train_to(&destination, &data, None, &Silent)?;
        let with = begun.elapsed().as_secs_f64();
        println!(
            "without {alone:.2} s, with {with:.2} s, ratio {:.4}",
            with / alone
        );
        ratios.push(with / alone);
    }
    std::fs::remove_dir_all(&place)?;
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.4}", ratios[ratios.len() / 2]);
    Ok(())
}
