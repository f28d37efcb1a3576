//! Built-in configurations: the data sets of the paper, and transformers on a CPU.

use elias::config::Config;

use crate::ui::console::Misuse;

const PRESETS: [(&str, &str); 6] = [
    ("amazon-3m", include_str!("../../configs/amazon-3m.toml")),
    (
        "amazon-670k",
        include_str!("../../configs/amazon-670k.toml"),
    ),
    ("frozen", include_str!("../../configs/frozen.toml")),
    (
        "lf-amazontitles-131k",
        include_str!("../../configs/lf-amazontitles-131k.toml"),
    ),
    (
        "transformer",
        include_str!("../../configs/transformer.toml"),
    ),
    (
        "wikipedia-500k",
        include_str!("../../configs/wikipedia-500k.toml"),
    ),
];

/// The defaults with the preset applied on top.
pub(crate) fn config(name: &str) -> anyhow::Result<Config> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    let Some((_, text)) = found else {
        let known = PRESETS.map(|(name, _)| name).join(", ");
        let problem = format!("unknown preset {name:?}; the presets are {known}");
        return Err(Misuse(problem).into());
    };
    Ok(Config::from_toml(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use elias::config::{DataCounts, EncoderKind};

    #[test]
    fn every_preset_can_be_used() {
        for (name, _) in PRESETS {
            let counts = DataCounts {
                n_points: 1_000_000,
                n_labels: 500_000,
                n_features: 100_000,
            };
            let plan = config(name).unwrap().resolve(counts).unwrap();
            let is_from_paper = !["frozen", "transformer"].contains(&name);
            if is_from_paper {
                assert_eq!((plan.kappa(), plan.beta()), (1000, 150.0), "{name}");
            }
            assert_eq!(
                plan.config().encoder.kind,
                EncoderKind::Transformer,
                "{name}"
            );
            assert!(plan.config().stage1.rates.encoder <= 1e-3, "{name}");
        }
    }

    #[test]
    fn an_unknown_preset_lists_the_known_ones() {
        let message = config("amazon").unwrap_err().to_string();
        assert!(message.contains("amazon-670k"), "{message}");
    }
}
