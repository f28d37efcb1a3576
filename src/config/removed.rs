//! Keys of earlier versions: an old file with one of them gets an error that says so, an old model still loads.

use serde_json::Value;

use crate::error::{Error, Result};

/// What became of a key.
enum Fate {
    /// It is now a constant of this value, which predictions depend on.
    Fixed(&'static str),
    /// It is now a constant that only training depends on.
    Training,
    /// It is now another key.
    Moved(&'static str),
}

use Fate::{Fixed, Moved, Training};

/// Every key that is gone.
const REMOVED: [(&str, Fate); 48] = [
    ("features.tokens", Fixed("\"words\"")),
    ("features.sublinear_tf", Fixed("true")),
    ("features.stop_words", Fixed("[]")),
    ("clustering.n_starts", Training),
    ("clustering.max_iterations", Training),
    ("clustering.tolerance", Training),
    ("encoder.word_dropout", Training),
    ("encoder.embedding_scale", Training),
    ("encoder.embedding_rate", Training),
    ("encoder.activation", Fixed("\"linear\"")),
    ("encoder.projection_rate", Training),
    ("encoder.layer_dropout", Training),
    ("optim.beta1", Training),
    ("optim.beta2", Training),
    ("optim.epsilon", Training),
    ("optim.warmup", Training),
    ("optim.averaging", Training),
    ("optim.update_every_labels", Moved("optim.update_every")),
    ("optim.update_every_clusters", Moved("optim.update_every")),
    ("optim.update_every_encoder", Training),
    ("stage1.batch_size", Moved("train.batch_size")),
    ("stage2.batch_size", Moved("train.batch_size")),
    ("stage1.lambda", Moved("loss.lambda")),
    ("stage2.lambda", Moved("loss.lambda")),
    ("stage1.label_classifiers", Training),
    ("stage2.label_classifiers", Training),
    ("train.score_floor", Training),
    ("train.gradient_floor", Training),
    ("train.label_scale", Training),
    ("train.label_bias", Training),
    ("train.validation_points", Training),
    ("train.validate_every", Training),
    ("train.keep_best", Training),
    ("ranker.cost_positive", Moved("ranker.cost")),
    ("ranker.cost_negative", Moved("ranker.cost")),
    ("ranker.tolerance", Training),
    ("ranker.max_iterations", Training),
    ("ranker.bias", Training),
    ("ranker.threshold", Training),
    ("calibration.max_depth", Training),
    ("calibration.min_samples_leaf", Training),
    ("calibration.tree_weight", Moved("calibration.kind")),
    ("calibration.product_weight", Moved("calibration.kind")),
    ("calibration.model_power", Moved("calibration.kind")),
    ("calibration.ranker_power", Moved("calibration.kind")),
    ("calibration.mixing", Moved("calibration.kind")),
    ("calibration.hold_out.max_share", Training),
    ("calibration.hold_out.min_points_per_label", Training),
];

/// Refuses keys that are gone.
///
/// # Errors
/// [`Error::Config`] naming the key and what takes its place.
pub(super) fn check(overlay: &toml::Table) -> Result<()> {
    for (key, fate) in &REMOVED {
        let Some(found) = find(overlay, key) else {
            continue;
        };
        return Err(Error::Config {
            key: (*key).into(),
            found: found.to_string(),
            expected: match fate {
                Moved(other) => format!("{other}: this key is gone"),
                Fixed(_) | Training => "nothing: this key is gone, leave it out".into(),
            },
        });
    }
    Ok(())
}

fn find<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((section, rest)) => find(table.get(section)?.as_table()?, rest),
    }
}

/// The configuration of an old model, without the keys that are gone.
///
/// # Errors
/// A phrase, if the model needs what a key that is gone said.
pub(crate) fn migrate(config: &mut Value) -> Result<(), String> {
    for (key, fate) in &REMOVED {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let pointer = format!("/{}", section.replace('.', "/"));
        let table = config.pointer_mut(&pointer).and_then(Value::as_object_mut);
        let Some(value) = table.and_then(|table| table.remove(name)) else {
            continue;
        };
        match fate {
            Fixed(expected) if serde_json::from_str(expected).ok().as_ref() != Some(&value) => {
                return Err(format!(
                    "it was trained with {key} = {value}, which this version does not have: use the program that wrote it"
                ));
            }
            // What another section knows as a key of its own keeps the value of stage 2, the last one trained.
            Moved("train.batch_size") => config["train"]["batch_size"] = value,
            Moved("loss.lambda") => config["loss"]["lambda"] = value,
            Moved("ranker.cost") => config["ranker"]["cost"] = value,
            Moved("optim.update_every") => config["optim"]["update_every"] = value,
            // The model itself has the weights and powers.
            Moved("calibration.kind") => config["calibration"]["kind"] = "tree".into(),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn every_key_that_is_gone_is_refused_by_name_and_no_key_is_both_gone_and_there() {
        for (key, fate) in &REMOVED {
            let error = Config::default()
                .with_value(&format!("{key}=1"))
                .unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains(key) && message.contains("gone"),
                "{message}"
            );
            let now = toml::Table::try_from(Config::default()).unwrap();
            assert!(find(&now, key).is_none(), "{key}");
            if let Moved(other) = fate {
                assert!(find(&now, other).is_some(), "{other}");
            }
        }
    }

    #[test]
    fn an_old_model_keeps_its_values_and_one_that_needs_what_is_gone_is_refused() {
        let mut config = serde_json::to_value(Config::default()).unwrap();
        config["stage2"]["lambda"] = 0.5.into();
        config["stage2"]["batch_size"] = 17.into();
        config["features"]["tokens"] = "words".into();
        config["calibration"]["hold_out"]["max_share"] = 0.2.into();
        migrate(&mut config).unwrap();
        let config: Config = serde_json::from_value(config).unwrap();
        assert_eq!((config.loss.lambda, config.train.batch_size), (0.5, 17));

        let mut config = serde_json::to_value(Config::default()).unwrap();
        config["encoder"]["activation"] = "relu".into();
        let problem = migrate(&mut config).unwrap_err();
        assert!(problem.contains("encoder.activation"), "{problem}");
    }
}
