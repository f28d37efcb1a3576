//! Bounds of every number in a configuration, for settings of users and of stored models alike.
//!
//! The bounds refuse what nobody means and what counters and products of sizes could not hold; they are no advice.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::{Config, EncoderKind, PerStage};
use crate::error::{Error, Result};

/// Smallest number above 0.
pub(super) const POSITIVE: f32 = f32::MIN_POSITIVE;
/// Largest share below 1.
const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
/// Upper bound of what is counted in 32 bits: labels, clusters, points, words.
const MAX_COUNT: usize = u32::MAX as usize;
const MAX_EPOCHS: usize = 1_000_000;
const MAX_RATE: f32 = 1000.0;

impl Config {
    /// Checks every value, as far as that needs no data.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first key whose value cannot be used.
    pub fn validate(&self) -> Result<()> {
        let Config {
            features,
            encoder,
            index,
            rates,
            train,
            ranker,
            hold_out,
            ensemble,
            ablation,
            ..
        } = self;
        if encoder.kind == EncoderKind::Transformer && !cfg!(feature = "transformer") {
            return Err(no_transformers());
        }
        check("features.ngrams", features.ngrams, 1..=16)?;
        check("features.min_df", features.min_df, 1..=MAX_COUNT)?;
        check_set(
            "features.max_features",
            features.max_features,
            1..=MAX_COUNT,
        )?;
        check("encoder.dim", encoder.dim, 1..=1 << 30)?;
        check("encoder.dropout", encoder.dropout, 0.0..=BELOW_ONE)?;
        // Two tokens are added to each text.
        check("encoder.max_len", encoder.max_len, 3..=1 << 20)?;
        check_set("encoder.projection", encoder.projection, 1..=1 << 20)?;
        check_set("encoder.trained_layers", encoder.trained_layers, 0..=1000)?;
        check_set("index.n_clusters", index.n_clusters, 1..=MAX_COUNT)?;
        check("index.alpha", index.alpha, POSITIVE..=1e9)?;
        check_set("index.beta", index.beta, POSITIVE..=1e9)?;
        check_set("index.kappa", index.kappa, 1..=MAX_COUNT)?;
        check("index.beam_size", index.beam_size, 1..=MAX_COUNT)?;
        check("index.shortlist_size", index.shortlist_size, 1..=MAX_COUNT)?;
        check_rate("rates.encoder", rates.encoder, POSITIVE)?;
        check_rate("rates.labels", rates.labels, POSITIVE)?;
        check_rate("rates.clusters", rates.clusters, POSITIVE)?;
        check_rate("rates.edges", rates.edges.unwrap_or(rates.labels), 0.0)?;
        check_set("stage1.epochs", self.stage1.epochs, 0..=MAX_EPOCHS)?;
        check_set("stage2.epochs", self.stage2.epochs, 0..=MAX_EPOCHS)?;
        // TOML has no larger integers.
        check("train.seed", train.seed, 0..=i64::MAX as u64)?;
        // A step counts its points in 16 bits.
        check_stages("train.batch_size", train.batch_size, 1..=65_534)?;
        check_stages("train.lambda", train.lambda, 0.0..=1e6)?;
        check("ranker.n_candidates", ranker.n_candidates, 1..=MAX_COUNT)?;
        check("hold_out.n_points", hold_out.n_points, 0..=MAX_COUNT)?;
        check("hold_out.min_points", hold_out.min_points, 0..=MAX_COUNT)?;
        check_set("hold_out.folds", hold_out.folds, 0..=1000)?;
        let near_duplicates = hold_out.near_duplicates;
        check_set("hold_out.near_duplicates", near_duplicates, POSITIVE..=1e9)?;
        check("ensemble.members", ensemble.members, 1..=10_000)?;
        let decay = 0.0..=1000.0;
        check_set(
            "ablation.weight_decay",
            ablation.weight_decay,
            decay.clone(),
        )?;
        let key = "ablation.index_weight_decay";
        check_set(key, ablation.index_weight_decay, decay)?;
        let floor = 0.0..=1.0;
        check_set("ablation.score_floor", ablation.score_floor, floor.clone())?;
        check_set("ablation.gradient_floor", ablation.gradient_floor, floor)?;
        check_set(
            "ablation.update_every",
            ablation.update_every,
            1..=1_000_000,
        )?;
        let key = "ablation.warmup_epochs";
        check_set(key, ablation.warmup_epochs, 0..=MAX_EPOCHS)?;
        let key = "ablation.average_every";
        check_set(key, ablation.average_every, 0.0..=MAX_EPOCHS as f32)?;
        check_set("ablation.average_from", ablation.average_from, 0.0..=1.0)?;
        check_set("ablation.ranker_cost", ablation.ranker_cost, POSITIVE..=1e9)
    }
}

/// The error of a build without transformers that is asked for one.
pub(crate) fn no_transformers() -> Error {
    Error::Config {
        key: "encoder.kind".into(),
        found: "transformer".into(),
        expected: "bag, or a build with the cargo feature `transformer`".into(),
    }
}

/// Checks that a value lies within bounds; a number that is none does not.
///
/// # Errors
/// [`Error::Config`].
pub(super) fn check<T: PartialOrd + Display>(
    key: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    Err(Error::Config {
        key: key.to_owned(),
        found: value.to_string(),
        expected: in_words(&bounds),
    })
}

/// Checks a value that may be unset.
fn check_set<T: PartialOrd + Display>(
    key: &str,
    value: Option<T>,
    bounds: RangeInclusive<T>,
) -> Result<()> {
    value.map_or(Ok(()), |value| check(key, value, bounds))
}

fn check_rate(key: &str, rate: PerStage<f32>, least: f32) -> Result<()> {
    check_stages(key, rate, least..=MAX_RATE)
}

/// Checks the values of both stages.
fn check_stages<T: Copy + PartialOrd + Display>(
    key: &str,
    value: PerStage<T>,
    bounds: RangeInclusive<T>,
) -> Result<()> {
    let [first, second] = value.values();
    check(key, first, bounds.clone())?;
    check(key, second, bounds)
}

fn in_words<T: Display>(bounds: &RangeInclusive<T>) -> String {
    let (least, most) = (bounds.start().to_string(), bounds.end().to_string());
    match (least, most) {
        (least, most) if least == POSITIVE.to_string() && most == f32::MAX.to_string() => {
            "a positive number".into()
        }
        (least, most) if least == POSITIVE.to_string() => {
            format!("a positive number of at most {most}")
        }
        (least, most) if most == BELOW_ONE.to_string() => {
            format!("a share from {least} to below 1")
        }
        (least, most) => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DataCounts;

    #[track_caller]
    fn check_refused(setting: &str, expected: &str) {
        let (key, found) = setting.split_once('=').unwrap();
        let config = Config::default().with_value(setting).unwrap();
        let message = config.validate().unwrap_err().to_string();
        for part in [key, found, expected] {
            assert!(message.contains(part), "{setting}: {message}");
        }
        let counts = DataCounts {
            n_points: 10,
            n_labels: 5,
            n_features: 10,
            n_pairs: 0,
            n_parts: 0,
            embedding_dim: 0,
        };
        assert!(config.resolve(counts).is_err(), "{setting}");
    }

    #[test]
    fn absurd_values_are_refused_with_key_found_and_expected() {
        check_refused("encoder.dropout=1.5", "a share from 0 to below 1");
        check_refused("encoder.dropout=-0.5", "a share from 0 to below 1");
        check_refused("features.ngrams=1125899906842624", "1 to 16");
        check_refused("index.alpha=0", "a positive number of at most 1000000000");
        check_refused("train.lambda=-1", "0 to 1000000");
        check_refused("train.batch_size=65535", "1 to 65534");
        check_refused("encoder.max_len=2", "3 to");
        check_refused("ensemble.members=0", "1 to");
    }

    /// Every number of the configuration, with those that are unset by default.
    fn numbers() -> Vec<String> {
        let unset = "
            index = { n_clusters = 1, beta = 1.0, kappa = 1 }
            features.max_features = 1
            encoder = { projection = 1, trained_layers = 1 }
            rates.edges = 1.0
            stage1.epochs = 1
            stage2.epochs = 1
            hold_out.near_duplicates = 1.0
            [ablation]
            weight_decay = 1.0
            index_weight_decay = 1.0
            score_floor = 1.0
            gradient_floor = 1.0
            update_every = 1
            warmup_epochs = 1
            average_every = 1.0
            average_from = 1.0
            ranker_cost = 1.0
        ";
        let config = Config::from_toml(unset).unwrap();
        config.validate().unwrap();
        let sections = toml::Table::try_from(config).unwrap();
        let keys = sections.iter().filter_map(|(section, keys)| {
            let keys = keys.as_table()?.iter();
            let numbers = keys.filter(|(_, value)| value.is_integer() || value.is_float());
            Some(numbers.map(move |(key, _)| format!("{section}.{key}")))
        });
        keys.flatten().collect()
    }

    #[test]
    fn every_number_has_bounds() {
        let numbers = numbers();
        assert_eq!(numbers.len(), 37, "{numbers:?}");
        for key in numbers {
            let absurd = ["-1e30", "1e30", "nan", "4611686018427387904", "-1"].iter();
            let refused = absurd.filter(|value| {
                let config = Config::default().with_value(&format!("{key}={value}"));
                config.and_then(|config| config.validate()).is_err()
            });
            let n_refused = refused.count();
            // Any integer from 0 is a seed.
            let expected = if key == "train.seed" { 4 } else { 5 };
            assert_eq!(n_refused, expected, "{key}");
        }
    }
}
