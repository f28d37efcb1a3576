//! Makes the stored model that later versions must keep loading, and the answers they must keep giving.
//!
//! `cargo run --release -p elias-benchmarks --bin model_fixture -- tests/fixtures/model-v1`
//!
//! Made again only while a format version is not released yet; after that its files are never touched again.

use std::path::Path;

use elias::data::{CsrBuilder, Dataset, LabelSet, Texts};
use elias::internals::describe;
use elias::{Config, Trainer};

use random::Random;

/// The library's own random numbers.
#[path = "../../../src/random.rs"]
#[allow(dead_code)] // not all of them
mod random;

const N_LABELS: usize = 24;

/// Every part that a model can have: two members, learned edges, stage 1, rankers over words, pairs and
/// embeddings, neighbours, names, boosted scores.
const CONFIG: &str = "
    [hold_out]
    n_points = 12
    near_duplicates = 2.0
    min_points = 5
    [encoder]
    dim = 8
    [ensemble]
    members = 2
    [features]
    max_features = 120
    [index]
    n_clusters = 4
    beam_size = 2
    shortlist_size = 12
    [ablation]
    ranker_embedding = true
    [train]
    batch_size = 16
    keep_stage1 = true
    label_texts = 'on'
    [stage1]
    epochs = 3
    [stage2]
    epochs = 3
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory] = &arguments[..] else {
        return Err("expected DIRECTORY".into());
    };
    let directory = Path::new(directory);
    let data = dataset()?;
    let model = directory.join("model");
    let trainer = Trainer::new(Config::from_toml(CONFIG)?).overwrite();
    let predictor = trainer.train_to(&model, &data)?;
    let mut answers = String::new();
    for text in texts().iter().take(N_LABELS).chain(["", "none of these"]) {
        let labels: Vec<(&str, f32)> = predictor
            .predict(text, 5)?
            .iter()
            .map(|answer| (answer.label, answer.score))
            .collect();
        let line = serde_json::json!({"text": text, "labels": labels});
        answers.push_str(&format!("{line}\n"));
    }
    std::fs::write(directory.join("answers.jsonl"), answers)?;
    let files = describe(&model)?.files;
    let n_bytes: u64 = files.values().map(|file| file.bytes).sum();
    println!("{n_bytes} bytes, data {}", predictor.training_data().sha256);
    Ok(())
}

fn texts() -> Texts {
    (0..144)
        .map(|point| {
            let mut random = Random::new(1, "model fixture", point as u64);
            let (first, second) = (point % N_LABELS, random.below(N_LABELS));
            format!("word{first} word{second} noise{}", random.below(40))
        })
        .collect()
}

/// Texts whose words are their labels. One name has a line break, one a backslash, one is not ASCII.
fn dataset() -> elias::Result<Dataset> {
    let names: LabelSet = (0..N_LABELS)
        .map(|label| match label {
            0 => "two\nlines".to_string(),
            1 => r"back\slash".to_string(),
            2 => "größe 大小".to_string(),
            _ => format!("word{label}"),
        })
        .collect();
    let texts = texts();
    let mut labels = CsrBuilder::default();
    for text in texts.iter() {
        let words = text.split(' ').filter_map(|word| word.strip_prefix("word"));
        let mut row: Vec<(u32, f32)> = words
            .filter_map(|number| Some((number.parse().ok()?, 1.0)))
            .collect();
        row.sort_by_key(|entry| entry.0);
        row.dedup();
        labels.push_row(row);
    }
    Dataset::new(Some(texts), None, labels.finish(N_LABELS)?, names, None)
}
