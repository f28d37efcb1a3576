//! Settings: those in a manifest, and those of a user, by the same rules.
//!
//! An input has a line per setting, a key of `elias config` and a value in JSON: `features.ngrams 3`. A model with
//! settings that are taken must answer, however long the text.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use elias::internals::describe;
use elias::{Config, Dataset, Predictor, Trainer};
use serde_json::Value;

use super::model::{Forged, files, with_checksum};
use super::{checked, temporary};

/// Changes settings, of the stored model and of a user.
pub fn change(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text
        .lines()
        .take(20)
        .filter_map(|line| line.split_once(' '));
    let changes: Vec<(&str, Value)> = lines
        .filter_map(|(key, value)| Some((key, serde_json::from_str(value).ok()?)))
        .collect();
    thread_local! {
        static MODEL: OnceCell<Forged> = const { OnceCell::new() };
    }
    MODEL.with(|model| {
        let model = model.get_or_init(|| Forged::new(trained()));
        in_manifest(model, &changes);
    });
    let mut config = Config::default();
    for (key, value) in &changes {
        if let Some(changed) = checked(config.with_value(&format!("{key}={value}"))) {
            config = changed;
        }
    }
    checked(config.validate());
}

fn in_manifest(model: &Forged, changes: &[(&str, Value)]) {
    let mut manifest = model.manifest.clone();
    for (key, value) in changes {
        let mut place = &mut manifest["config"];
        for part in key.split('.').take(4) {
            if !place.is_object() {
                *place = Value::Object(serde_json::Map::new());
            }
            place = &mut place[part];
        }
        *place = value.clone();
    }
    let text = serde_json::to_string_pretty(&manifest).expect("it was JSON before");
    let body = text.trim_end_matches("\n}").as_bytes();
    model.with_manifest(&with_checksum(body), |directory| {
        let description = checked(describe(directory));
        if description.is_some()
            && let Some(predictor) = checked(Predictor::verify(directory))
        {
            let long = "word1 word2 noise3 ".repeat(2000);
            for text in [&long[..], ""] {
                if let Some(answers) = checked(predictor.predict(text, 5)) {
                    assert!(answers.iter().all(|answer| answer.score.is_finite()));
                }
            }
        }
    });
}

/// The files of a small model.
fn trained() -> BTreeMap<String, Vec<u8>> {
    let point = |number: usize| {
        let (first, second) = (number % 6, number / 6 % 6);
        let text = format!(
            "word{first} of{first} word{second} noise{}",
            number * 7 % 61
        );
        (
            text,
            vec![format!("label{first}"), format!("label{second}")],
        )
    };
    let config = Config::from_toml("train.batch_size = 16\nencoder.dim = 8\nindex.n_clusters = 3");
    let config = config.expect("these settings are in order");
    let model = Trainer::new(config).train(&Dataset::from_texts((0..120).map(point)));
    let directory = temporary();
    let path = directory.path().join("model");
    let saved = model.and_then(|model| model.save(&path));
    saved.expect("a small model can be trained and written");
    files(&path)
}

/// Settings that are in order, or nearly so.
pub fn seeds() -> Vec<Vec<u8>> {
    // Every key with its own value.
    let model = trained();
    let manifest: Value = serde_json::from_slice(&model["manifest.json"]).expect("it is JSON");
    let mut lines = Vec::new();
    flatten("", &manifest["config"], &mut lines);
    let huge = lines.iter().filter_map(|line: &String| {
        let (key, _) = line.split_once(' ')?;
        Some(format!("{key} 1125899906842624\n{key} -1"))
    });
    let odd = ["features.ngrams 16", "encoder.max_len 65536\nencoder.dim 8"];
    let odd = odd.into_iter().map(str::to_owned);
    let seeds: Vec<String> = huge.chain(odd).chain(lines.iter().cloned()).collect();
    seeds.into_iter().map(String::into_bytes).collect()
}

fn flatten(prefix: &str, value: &Value, lines: &mut Vec<String>) {
    match value.as_object() {
        Some(members) => {
            for (key, value) in members {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, lines);
            }
        }
        None => lines.push(format!("{prefix} {value}")),
    }
}
