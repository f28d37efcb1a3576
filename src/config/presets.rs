//! Built-in configurations: the data sets of the paper, and transformers on a CPU.

use super::Config;
use crate::error::{Error, Result};

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

impl Config {
    /// The defaults with a preset applied on top.
    ///
    /// # Errors
    /// [`Error::Config`] with the names of the presets, if this is none.
    pub fn preset(name: &str) -> Result<Self> {
        let found = PRESETS.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| Error::Config {
            key: "preset".into(),
            found: format!("{name:?}"),
            expected: PRESETS.map(|(name, _)| name).join(", "),
        })?;
        Config::from_toml(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DataCounts, EncoderKind, IndexMode, Recipe, Reduction};

    #[test]
    fn every_preset_can_be_used() {
        for (name, _) in PRESETS {
            let counts = DataCounts {
                n_points: 1_000_000,
                n_labels: 500_000,
                n_features: 100_000,
                n_pairs: 0,
            };
            let plan = Config::preset(name).unwrap().resolve(counts).unwrap();
            assert_eq!(
                plan.config().encoder.kind,
                EncoderKind::Transformer,
                "{name}"
            );
            let [first, second] = plan.config().rates.by_stage();
            assert!(first.encoder.max(second.encoder) <= 1e-3, "{name}");
        }
    }

    /// A row of the paper's table of hyperparameters; β is 150, κ 1000, λ 0.05, K 2000 and b 20 in all of them.
    struct Row {
        name: &'static str,
        max_len: usize,
        n_clusters: usize,
        alpha: f32,
        /// Of both stages.
        epochs: usize,
        /// LR_W and LR_φ.
        rates: [f32; 2],
        batch_size: usize,
    }

    const fn row(
        name: &'static str,
        [max_len, n_clusters, epochs, batch_size]: [usize; 4],
        [alpha, of_weights, of_encoder]: [f32; 3],
    ) -> Row {
        Row {
            name,
            max_len,
            n_clusters,
            alpha,
            epochs,
            rates: [of_weights, of_encoder],
            batch_size,
        }
    }

    const PAPER: [Row; 4] = [
        row(
            "lf-amazontitles-131k",
            [32, 2048, 60, 512],
            [10.0, 0.02, 1e-4],
        ),
        row("amazon-670k", [128, 8192, 60, 256], [10.0, 0.01, 1e-4]),
        row("wikipedia-500k", [128, 8192, 45, 256], [10.0, 0.005, 5e-5]),
        row("amazon-3m", [128, 32_768, 45, 64], [20.0, 0.002, 2e-5]),
    ];

    #[test]
    fn the_presets_of_the_paper_are_its_table_and_the_released_code() {
        for row in PAPER {
            let name = row.name;
            let config = Config::preset(name).unwrap();
            assert_eq!(config.encoder.max_len, row.max_len, "{name}");
            assert_eq!(config.index.n_clusters, Some(row.n_clusters), "{name}");
            assert_eq!(config.index.alpha, row.alpha, "{name}");
            let epochs = [&config.stage1, &config.stage2].map(|stage| stage.epochs.unwrap());
            assert_eq!(
                epochs,
                [row.epochs / 3, row.epochs - row.epochs / 3],
                "{name}"
            );
            for rates in config.rates.by_stage() {
                let found = [rates.labels, rates.clusters, rates.edges, rates.encoder];
                let expected = [row.rates[0], row.rates[0], row.rates[0], row.rates[1]];
                assert_eq!(found, expected, "{name}");
            }
            assert_eq!(config.train.batch_size, row.batch_size, "{name}");
            let index = &config.index;
            assert_eq!(
                (index.beta, index.kappa),
                (Some(150.0), Some(1000)),
                "{name}"
            );
            assert_eq!(
                (index.shortlist_size, index.beam_size),
                (2000, 20),
                "{name}"
            );
            assert_eq!(config.train.lambda, 0.05, "{name}");
            assert_eq!(config.encoder.dropout, 0.5, "{name}");
            assert_eq!(
                (config.hold_out.n_points, config.ensemble.members),
                (5000, 3)
            );
            let paper = Config::from_toml("recipe = \"paper\"").unwrap();
            let expected = Recipe {
                reduction: Reduction::Mean,
                ..Recipe::of(&paper)
            };
            assert_eq!(Recipe::of(&config), expected, "{name}");
            assert_eq!(config.index.mode, IndexMode::Learned, "{name}");
            assert_eq!(config.ranker, paper.ranker, "{name}");
        }
    }

    #[test]
    fn an_unknown_preset_lists_the_known_ones() {
        let message = Config::preset("amazon").unwrap_err().to_string();
        assert!(message.contains("amazon-670k"), "{message}");
    }
}
