//! Step time of stage 2 against the number of labels, on synthetic data: the table in `docs/performance.md`.
//!
//! `cargo run --release -p elias-benchmarks --bin scaling -- N_LABELS DIM [section.key=value ...]`
//!
//! Points come in groups of fifty labels.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use elias::data::{CsrBuilder, Dataset, LabelSet};
use elias::{Config, Event, Observer, Phase, Trainer};

use random::Random;

/// The library's own random numbers.
#[path = "../../../src/random.rs"]
#[allow(dead_code)] // not all of them
mod random;

const LABELS_PER_GROUP: usize = 50;
const LABELS_PER_POINT: usize = 5;
const WORDS_PER_POINT: usize = 30;
const N_WORDS: usize = 50_000;
const N_STEPS: usize = 60;

/// Keeps the times of the steps and stops after enough of them.
struct Stopwatch {
    last: Mutex<Instant>,
    times: Mutex<Vec<Duration>>,
}

impl Observer for Stopwatch {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        let now = Instant::now();
        let mut last = self.last.lock().unwrap();
        if let Event::Step {
            phase: Phase::Stage2,
            step,
            ..
        } = event
        {
            self.times.lock().unwrap().push(now - *last);
            if *step >= N_STEPS {
                return ControlFlow::Break(());
            }
        }
        *last = now;
        ControlFlow::Continue(())
    }
}

fn synthetic(n_labels: usize) -> elias::Result<Dataset> {
    let n_points = (n_labels / LABELS_PER_POINT).max(N_STEPS * 256);
    let n_groups = n_labels.div_ceil(LABELS_PER_GROUP);
    let mut random = Random::new(7, "synthetic", 0);
    let (mut features, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
    for point in 0..n_points {
        let group = random.below(n_groups);
        let first = (point * LABELS_PER_POINT) % n_labels;
        let mut row: Vec<u32> = (0..LABELS_PER_POINT)
            .map(|offset| ((first + offset) % n_labels) as u32)
            .collect();
        row.push(
            (group * LABELS_PER_GROUP + random.below(LABELS_PER_GROUP)).min(n_labels - 1) as u32,
        );
        row.sort_unstable();
        row.dedup();
        labels.push_row(row.iter().map(|&label| (label, 1.0)));
        let mut words = Random::new(7, "words of a group", (first / LABELS_PER_GROUP) as u64);
        let mut columns: Vec<u32> = (0..WORDS_PER_POINT)
            .map(|_| words.below(N_WORDS) as u32)
            .collect();
        columns.sort_unstable();
        columns.dedup();
        features.push_row(columns.iter().map(|&column| (column, 1.0)));
    }
    let names: LabelSet = (0..n_labels).map(|label| label.to_string()).collect();
    Dataset::new(
        None,
        Some(features.finish(N_WORDS)?),
        labels.finish(n_labels)?,
        names,
        None,
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let n_labels: usize = arguments.next().ok_or("N_LABELS is missing")?.parse()?;
    let dim = arguments.next().ok_or("DIM is missing")?;
    let mut config = Config::default();
    let fixed = ["stage1.epochs=0", "stage2.epochs=1"];
    for assignment in fixed
        .iter()
        .map(|text| (*text).to_owned())
        .chain([format!("encoder.dim={dim}")])
        .chain(arguments)
    {
        config = config.with_value(&assignment)?;
    }
    let data = synthetic(n_labels)?;
    let stopwatch = Stopwatch {
        last: Mutex::new(Instant::now()),
        times: Mutex::default(),
    };
    let outcome = Trainer::new(config).observer(&stopwatch).train(&data);
    if let Err(error) = outcome.map(|_| ()) {
        println!("({error} after {N_STEPS} steps)");
    }
    let mut times = stopwatch.times.into_inner()?.split_off(10);
    times.sort_unstable();
    println!(
        "L {n_labels}, d {dim}: median step {:.1} ms",
        times[times.len() / 2].as_secs_f64() * 1e3
    );
    Ok(())
}
