//! CPU seconds of every phase of a training on synthetic texts: one row of `benchmarks/growth/run.py`.
//!
//! `cargo run --release -p elias-benchmarks --bin growth -- N_POINTS N_LABELS MAX_STEPS [section.key=value ...]`
//!
//! Labels come in groups of fifty, each with words of its own; a text has five labels of a group, two words of each and
//! four common ones. Epochs end after MAX_STEPS steps. Prints JSON.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use elias::data::Dataset;
use elias::internals::train_cut;
use elias::{Config, Event, Observer, Phase, Trainer};
use serde_json::json;

use random::Random;

/// The library's own random numbers.
#[path = "../../../src/random.rs"]
#[allow(dead_code)] // not all of them
mod random;

const LABELS_PER_GROUP: usize = 50;
const LABELS_PER_POINT: usize = 5;
const WORDS_PER_LABEL: usize = 2;
const COMMON_WORDS_PER_POINT: usize = 4;
const N_COMMON_WORDS: usize = 5_000;
const N_WORDS: usize = 50_000;

/// CPU seconds of the phases, and the steps of the stages.
#[derive(Default)]
struct Watch(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    phase: &'static str,
    since: f64,
    seconds: BTreeMap<&'static str, f64>,
    n_steps: BTreeMap<&'static str, usize>,
}

impl Watch {
    /// Ends the present phase and starts another.
    fn start(&self, phase: &'static str) {
        let mut watched = self.0.lock().unwrap();
        let now = cpu_seconds();
        let (last, spent) = (watched.phase, now - watched.since);
        *watched.seconds.entry(last).or_default() += spent;
        (watched.phase, watched.since) = (phase, now);
    }
}

impl Observer for Watch {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        match event {
            Event::PhaseStarted { phase, .. } => self.start(phase.name()),
            Event::Step {
                phase: phase @ (Phase::Stage1 | Phase::Stage2),
                step,
                ..
            } => {
                let n_steps = &mut self.0.lock().unwrap().n_steps;
                n_steps.insert(phase.name(), *step);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// CPU seconds of this process, all threads together; Linux alone tells.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn synthetic(n_points: usize, n_labels: usize) -> Dataset {
    let mut random = Random::new(7, "synthetic", 0);
    let points = (0..n_points).map(|point| {
        let first = point * (LABELS_PER_POINT - 1) % n_labels;
        let group = first / LABELS_PER_GROUP * LABELS_PER_GROUP;
        let mut labels: Vec<usize> = (0..LABELS_PER_POINT - 1)
            .map(|offset| (first + offset) % n_labels)
            .collect();
        labels.push((group + random.below(LABELS_PER_GROUP)).min(n_labels - 1));
        labels.sort_unstable();
        labels.dedup();
        let mut text = String::new();
        for &label in &labels {
            let mut words = Random::new(7, "words of a label", label as u64);
            for _ in 0..WORDS_PER_LABEL {
                text += &format!("w{} ", words.below(N_WORDS));
            }
        }
        for _ in 0..COMMON_WORDS_PER_POINT {
            // Small numbers come more often.
            let at = (N_COMMON_WORDS as f64).powf(random.f64());
            text += &format!("common{} ", at as usize);
        }
        (text, labels.into_iter().map(|label| format!("l{label}")))
    });
    Dataset::from_texts(points)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> Result<usize, Box<dyn std::error::Error>> {
        let text = arguments.next().ok_or(format!("{name} is missing"))?;
        Ok(text.parse()?)
    };
    let (n_points, n_labels) = (number("N_POINTS")?, number("N_LABELS")?);
    let max_steps = number("MAX_STEPS")?;
    let mut config = Config::default();
    for assignment in arguments {
        config = config.with_value(&assignment)?;
    }
    let data = synthetic(n_points, n_labels);
    let watch = Watch::default();
    watch.start("");
    let trainer = Trainer::new(config).observer(&watch);
    let prepared = trainer.prepare(&data)?;
    let plan = prepared.plan().clone();
    let predictor = train_cut(prepared, max_steps)?;
    let model = std::env::temp_dir().join(format!("elias-growth-{}", std::process::id()));
    watch.start(Phase::Saving.name());
    predictor.save(&model)?;
    watch.start("");
    std::fs::remove_dir_all(&model)?;
    let mut watched = watch.0.into_inner()?;
    watched.seconds.remove("");
    let row = json!({
        "points": n_points,
        "labels": data.n_labels(),
        "clusters": plan.n_clusters(),
        "dim": plan.config().encoder.dim,
        "steps_per_epoch": n_points.div_ceil(plan.batch_size()),
        "steps": watched.n_steps,
        "seconds": watched.seconds,
    });
    println!("{row}");
    Ok(())
}
