//! Models on disk: a loaded model is the one that was saved, and damaged files are refused.

mod hostile;
mod read_only;
mod recounting;
mod resume;
mod save_and_load;
mod settings;
mod transformer;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use elias::data::{CsrBuilder, CsrMatrix, DataSummary, Dataset, LabelSet, Texts};
use elias::{Config, Predictor, Trainer};

use crate::random::Random;

const N_LABELS: usize = 24;

/// Texts whose words determine their labels.
fn texts_and_labels(n_points: usize) -> (Texts, CsrMatrix) {
    let mut texts = Texts::default();
    let mut labels = CsrBuilder::default();
    for point in 0..n_points {
        let mut random = Random::new(7, "checkpoint test", point as u64);
        let first = point % N_LABELS;
        let second = random.u64() as usize % N_LABELS;
        let noise = random.u64() % 50;
        texts.push(&format!(
            "word{first} word{second} both{first} noise{noise}"
        ));
        let mut row = vec![(first as u32, 1.0), (second as u32, 1.0)];
        row.sort_by_key(|entry| entry.0);
        row.dedup();
        labels.push_row(row);
    }
    (texts, labels.finish(N_LABELS).unwrap())
}

/// Names that a careless format would break.
fn label_names() -> LabelSet {
    let name = |idx: usize| match idx {
        0 => "two\nlines".to_string(),
        1 => r"back\slash\n".to_string(),
        2 => String::new(),
        _ => format!("label {idx}"),
    };
    (0..N_LABELS).map(name).collect()
}

fn dataset(n_points: usize) -> Dataset {
    let (texts, labels) = texts_and_labels(n_points);
    Dataset::new(Some(texts), None, labels, label_names(), None).unwrap()
}

fn config() -> Config {
    let toml = "
        [ablation]
        ranker_embedding = true
        [hold_out]
        refit = 'nothing'
        n_points = 6
        near_duplicates = 2.0
        min_points = 5
        [encoder]
        dim = 8
        [index]
        n_clusters = 4
        beam_size = 2
        shortlist_size = 12
        [train]
        batch_size = 16
        precision = 'full'
        [stage1]
        epochs = 2
        [stage2]
        epochs = 2
    ";
    Config::from_toml(toml).unwrap()
}

fn train(data: &Dataset) -> Predictor {
    Trainer::new(config()).train(data).unwrap()
}

/// A directory that is removed in the end; in memory where there is such a place, since syncing hundreds of small
/// models to a disk takes seconds.
fn temporary() -> tempfile::TempDir {
    let in_memory = Path::new("/dev/shm");
    if in_memory.is_dir() {
        tempfile::tempdir_in(in_memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// A small model in a directory of its own.
fn saved_model() -> tempfile::TempDir {
    let directory = temporary();
    train(&dataset(120)).save(directory.path()).unwrap();
    directory
}

/// A small model with other settings, and with label texts.
fn saved_model_with(settings: &[&str]) -> tempfile::TempDir {
    let directory = temporary();
    let config = settings.iter().fold(config(), |config, setting| {
        config.with_value(setting).unwrap()
    });
    let label_texts = (0..N_LABELS).map(|label| format!("word{label}"));
    let data = dataset(120).with_label_texts(label_texts.collect());
    let predictor = Trainer::new(config).train(&data.unwrap()).unwrap();
    predictor.save(directory.path()).unwrap();
    directory
}

/// Every file of a directory by its name.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}
