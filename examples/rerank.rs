//! Fits ranker and calibration of a trained model anew and prints what each brings: the workbench of
//! `docs/experiments.md` for what stands on top of ELIAS.
//!
//! `cargo run --release --example rerank -- MODEL DATA [section.key=value ...]`

#![allow(clippy::print_stdout)] // a program, not the library

use std::path::Path;

use elias::checkpoint;
use elias::data::{Part, ReadOptions, read};
use elias::metrics::{MetricsOptions, Propensity, evaluate, inverse_propensities, label_counts};
use elias::pipeline::Trainer;
use elias::predict::Stage;
use elias::train::Silent;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().ok_or("MODEL is missing")?;
    let path = arguments.next().ok_or("DATA is missing")?;
    let predictor = checkpoint::load(Path::new(&model))?;
    let mut config = predictor.plan().config().clone();
    for assignment in arguments {
        config = config.with_value(&assignment)?;
    }
    let (train_set, _) = read(Path::new(&path), &ReadOptions::default())?;
    let known_labels = Some(train_set.label_set());
    let options = ReadOptions {
        part: Part::Test,
        known_labels,
        ..ReadOptions::default()
    };
    let (test_set, _) = read(Path::new(&path), &options)?;
    let start = std::time::Instant::now();
    let mut predictor = Trainer::new(config).rerank(predictor, &train_set, &Silent)?;
    println!("{:.1}s", start.elapsed().as_secs_f64());
    let counts = label_counts(train_set.labels());
    let propensities = inverse_propensities(&counts, train_set.n_points(), Propensity::default());
    for stage in [
        Stage::Ensemble,
        Stage::Calibrated,
        Stage::Ranker,
        Stage::Stage2,
    ] {
        predictor = predictor.at_stage(stage)?;
        let ranked = predictor.predict_dataset(&test_set, 100)?;
        let options = MetricsOptions {
            inverse_propensities: Some(propensities.clone()),
            ..MetricsOptions::default()
        };
        let metrics = evaluate(test_set.labels(), &ranked, options);
        let names = [
            "p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "r@10", "r@20", "r@100",
        ];
        let values = names.map(|name| format!("{:.2}", metrics.get(name).unwrap_or(f64::NAN)));
        println!("{:12} {}", stage.name(), values.join(" "));
    }
    Ok(())
}
