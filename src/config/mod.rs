//! Configuration: what the user wrote ([`Config`]) and what will run ([`Plan`]).
//!
//! The defaults were chosen by the experiments in `docs/experiments.md`. Elements that make a training the paper's, the
//! released code's or our own are selected together, by the recipe; the others are keys of a section. Unknown keys are
//! errors. Values that are unset follow from the recipe, or from the data by [`Config::resolve`].

mod commented;
mod data;
mod elements;
mod encoder;
mod ensemble;
mod features;
mod final_score;
mod index;
mod plan;
mod presets;
mod ranker;
mod recipe;
mod stage;
mod validate;

pub use data::{DataConfig, PropensityModel};
pub use elements::{
    EdgeStart, LabelStart, Parents, Pooling, Positives, RankerLoss, RankerNegatives, Reduction,
    RowUpdates, Searched, SecondMoments, SizeRule,
};
pub use encoder::{EncoderConfig, EncoderKind};
pub use ensemble::EnsembleConfig;
pub use features::FeaturesConfig;
pub use final_score::{FinalScoreConfig, FinalScoreKind, HoldOutConfig, Refit};
pub use index::{IndexConfig, IndexMode};
#[doc(hidden)]
pub use plan::default_n_clusters;
pub use plan::{DataCounts, Plan};
pub(crate) use plan::{Decided, paper_n_clusters};
pub use ranker::RankerConfig;
pub use recipe::{Ablation, Recipe, RecipeName};
pub use stage::{
    LabelTexts, LearningRates, PerStage, Precision, RatesConfig, StageConfig, StagePlan,
    TrainConfig,
};
#[cfg(not(feature = "transformer"))]
pub(crate) use validate::no_transformers;

use std::collections::{BTreeMap, BTreeSet};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, in_plain_words};

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The recipe: everything that the method leaves open.
    pub recipe: RecipeName,
    /// The data set.
    pub data: DataConfig,
    /// tf-idf features.
    pub features: FeaturesConfig,
    /// φ: how texts become embeddings.
    pub encoder: EncoderConfig,
    /// The search index: clusters, edges, beam and shortlist.
    pub index: IndexConfig,
    /// Learning rates: one number, or [stage 1, stage 2].
    pub rates: RatesConfig,
    /// Stage 1: fixed clusters.
    pub stage1: StageConfig,
    /// Stage 2: everything is learned.
    pub stage2: StageConfig,
    /// Settings that both stages share.
    pub train: TrainConfig,
    /// The sparse ranker.
    pub ranker: RankerConfig,
    /// The final score, and the probability that goes with it.
    pub final_score: FinalScoreConfig,
    /// The training points that are held out, to fit the final score on.
    pub hold_out: HoldOutConfig,
    /// The ensemble.
    pub ensemble: EnsembleConfig,
    /// Single elements that differ from the recipe's, to measure what each is worth; unset: the recipe's.
    pub ablation: Ablation,
}

impl Config {
    /// Reads a configuration from TOML; keys that are left out keep their defaults.
    ///
    /// # Errors
    /// [`Error::Config`] for unknown keys and values of the wrong kind.
    pub fn from_toml(text: &str) -> Result<Self> {
        Config::default().with_toml(text)
    }

    /// This configuration with the keys of a TOML document laid over it.
    ///
    /// # Errors
    /// As [`Config::from_toml`].
    pub fn with_toml(&self, text: &str) -> Result<Self> {
        let broken = |error: toml::de::Error| Error::Config {
            key: "(TOML)".into(),
            found: found_by_parser(&error),
            expected: "a valid configuration".into(),
        };
        let overlay: toml::Table = toml::from_str(text).map_err(broken)?;
        let mut table = toml::Table::try_from(self).expect("a configuration is a TOML table");
        merge(&mut table, overlay);
        table.try_into().map_err(broken)
    }

    /// This configuration with one dotted key set, as `--set section.key=value` does.
    ///
    /// # Errors
    /// [`Error::Config`] if the key is unknown or the value does not fit.
    pub fn with_value(&self, assignment: &str) -> Result<Self> {
        let misused = |found: String| Error::Config {
            key: assignment.to_owned(),
            found,
            expected: "section.key=value with a known key".into(),
        };
        let (key, value) = assignment
            .split_once('=')
            .ok_or_else(|| misused("no `=`".into()))?;
        let (key, value) = (key.trim(), value.trim());
        // A bare word is a string: `--set encoder.kind=bag`.
        let quoted = toml::Value::String(value.to_owned());
        let as_written = format!("{key} = {value}");
        let is_toml = toml::from_str::<toml::Table>(&as_written).is_ok();
        let text = if is_toml {
            as_written
        } else {
            format!("{key} = {quoted}")
        };
        self.with_toml(&text).map_err(|error| match error {
            Error::Config { key, found, .. } if key == "(TOML)" => misused(found),
            error => error,
        })
    }

    /// The configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is a TOML table")
    }

    /// The keys whose values differ from an earlier configuration's, with both values, in words.
    pub fn differences(&self, later: &Config) -> Vec<String> {
        let changes = self.changes(later).into_iter();
        changes
            .map(|Change { key, before, after }| format!("{key} was {before} and is {after}"))
            .collect()
    }

    /// The keys whose values differ from an earlier configuration's, with both values; an element that is unset has the
    /// value of its recipe.
    pub(crate) fn changes(&self, later: &Config) -> Vec<Change> {
        let flat = |config: &Config| {
            // Not as TOML, which cannot hold every number that an earlier configuration may come with; through text,
            // so that 0.1 stays 0.1 and does not show what an f32 makes of it.
            let text = serde_json::to_string(config).expect("a configuration is a JSON object");
            let table = serde_json::from_str(&text).expect("it was JSON a moment ago");
            let mut values = BTreeMap::new();
            flatten("", &table, &mut values);
            let elements = Recipe::of(config).spelled().into_iter();
            values.extend(elements.map(|(key, value)| (key.to_owned(), value)));
            values
        };
        let (before, after) = (flat(self), flat(later));
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        let value = |values: &BTreeMap<String, String>, key| {
            values.get(key).map_or("unset".into(), String::clone)
        };
        keys.into_iter()
            .filter(|&key| before.get(key) != after.get(key))
            .map(|key| Change {
                key: key.clone(),
                before: value(&before, key),
                after: value(&after, key),
            })
            .collect()
    }
}

/// A key whose value differs between two configurations.
pub(crate) struct Change {
    pub(crate) key: String,
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The error in a document, and its key.
fn found_by_parser(error: &toml::de::Error) -> String {
    let found = in_plain_words(error.message());
    let message = error.to_string();
    let key = message.lines().find_map(|line| line.strip_prefix("in `"));
    match key {
        Some(key) => format!("{found} in {}", key.trim_end_matches('`')),
        None => found,
    }
}

fn flatten(prefix: &str, value: &serde_json::Value, values: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Null => {}
        serde_json::Value::Object(table) => {
            for (key, value) in table {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, values);
            }
        }
        value => {
            values.insert(prefix.to_owned(), value.to_string());
        }
    }
}

fn merge(table: &mut toml::Table, overlay: toml::Table) {
    for (key, value) in overlay {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(over)) => merge(inner, over),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_lays_over_the_defaults_and_unknown_keys_are_errors() {
        let config = Config::from_toml("[index]\nbeam_size = 7\n").unwrap();
        assert_eq!(config.index.beam_size, 7);
        assert_eq!(config.stage1, Config::default().stage1);
        let error = Config::from_toml("[index]\nbeam = 7\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("beam"), "{error}");
    }

    #[test]
    fn single_values_are_set_by_dotted_key() {
        let config = Config::default().with_value("rates.labels=0.125").unwrap();
        assert_eq!(config.rates.labels, PerStage::Both(0.125));
        let config = config.with_value("index.mode=ova").unwrap();
        assert_eq!(config.index.mode, IndexMode::Ova);
        assert_eq!(
            config
                .with_value("index.n_clusters = 64")
                .unwrap()
                .index
                .n_clusters,
            Some(64)
        );
        assert!(config.with_value("index.mode=tree").is_err());
        assert!(config.with_value("index.beam_size").is_err());
    }

    #[test]
    fn differences_name_the_key_and_both_values() {
        let before = Config::default().with_value("index.kappa=5").unwrap();
        let after = before.with_value("stage1.epochs=77").unwrap();
        assert_eq!(before.differences(&before), [""; 0]);
        let expected = "stage1.epochs was unset and is 77";
        assert_eq!(before.differences(&after), [expected]);
        let lambda = before.with_value("train.lambda=0.1").unwrap();
        let [was, _] = before.train.lambda.values();
        let expected = format!("train.lambda was {was} and is 0.1");
        assert_eq!(before.differences(&lambda), [expected]);
        let unset = Config::default().differences(&before);
        assert_eq!(unset, ["index.kappa was unset and is 5"]);
    }

    #[test]
    fn a_configuration_survives_its_own_toml() {
        let config = Config::default().with_value("index.kappa=5").unwrap();
        assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config);
    }
}
