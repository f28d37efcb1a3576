//! Built-in configurations: less and more time than the default, transformers on a CPU, the data sets of the paper.

use super::Config;
use crate::error::{Error, Result};

const PRESETS: [(&str, &str); 10] = [
    ("amazon-3m", include_str!("../../configs/amazon-3m.toml")),
    (
        "amazon-670k",
        include_str!("../../configs/amazon-670k.toml"),
    ),
    (
        "amazon-670k-released",
        include_str!("../../configs/amazon-670k-released.toml"),
    ),
    ("best", include_str!("../../configs/best.toml")),
    ("fast", include_str!("../../configs/fast.toml")),
    ("frozen", include_str!("../../configs/frozen.toml")),
    (
        "lf-amazontitles-131k",
        include_str!("../../configs/lf-amazontitles-131k.toml"),
    ),
    (
        "lf-amazontitles-131k-released",
        include_str!("../../configs/lf-amazontitles-131k-released.toml"),
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
    /// The names of the presets.
    pub fn preset_names() -> [&'static str; PRESETS.len()] {
        PRESETS.map(|(name, _)| name)
    }

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
    use crate::config::{DataCounts, EncoderKind, IndexMode, Recipe, RecipeName, Reduction, Refit};

    const LARGE: DataCounts = DataCounts {
        n_points: 1_000_000,
        n_labels: 500_000,
        n_features: 100_000,
        n_pairs: 0,
        n_parts: 0,
        embedding_dim: 0,
    };

    #[test]
    fn every_preset_can_be_used() {
        let of_bags = ["best", "fast"];
        for (name, _) in PRESETS {
            let plan = Config::preset(name).unwrap().resolve(LARGE).unwrap();
            if of_bags.contains(&name) {
                assert_eq!(plan.config().encoder.kind, EncoderKind::Bag, "{name}");
                continue;
            }
            assert_eq!(
                plan.config().encoder.kind,
                EncoderKind::Transformer,
                "{name}"
            );
            let [first, second] = plan.config().rates.by_stage();
            assert!(first.encoder.max(second.encoder) <= 1e-3, "{name}");
        }
    }

    #[test]
    fn the_default_is_between_fast_and_best() {
        let work = |config: Config| {
            let plan = config.resolve(LARGE).unwrap();
            let epochs: usize = plan.stages().iter().map(|stage| stage.epochs).sum();
            let trained_twice = usize::from(plan.refit() == Refit::Everything);
            epochs * plan.config().ensemble.members * (1 + trained_twice)
        };
        let [fast, best] = ["fast", "best"].map(|name| work(Config::preset(name).unwrap()));
        let default = work(Config::default());
        assert!(
            2 * fast <= default && 4 * default <= best,
            "{fast} {default} {best}"
        );
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
    fn the_presets_of_the_paper_are_its_table() {
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
            let batch_sizes = config.train.batch_size.values();
            assert_eq!(batch_sizes, [row.batch_size; 2], "{name}");
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
            assert_eq!(config.train.lambda.values(), [0.05; 2], "{name}");
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
    fn the_presets_of_the_released_code_are_its_configurations() {
        // Epochs between weights that are averaged, and the share of stage 2 before; epochs, batch sizes, λ, and rates of the
        // encoder, W_L and W_C, by stage.
        let check = |name: &str, averages: [f32; 2], stages: [(usize, usize, f32, [f32; 3]); 2]| {
            let config = Config::preset(name).unwrap();
            let plan = config.resolve(LARGE).unwrap();
            let found = plan.stages().into_iter().map(|stage| {
                let rates = stage.rates;
                assert_eq!(rates.edges, rates.labels, "{name}");
                let rates = [rates.encoder, rates.labels, rates.clusters];
                (stage.epochs, stage.batch_size, stage.lambda, rates)
            });
            assert_eq!(found.collect::<Vec<_>>(), stages, "{name}");
            let expected = Recipe {
                average_every: averages[0],
                average_from: averages[1],
                ..RecipeName::Released.column()
            };
            assert_eq!(Recipe::of(&config), expected, "{name}");
            // The sizes are those of the paper's table.
            let paper = Config::preset(name.strip_suffix("-released").unwrap()).unwrap();
            assert_eq!(config.index, paper.index, "{name}");
            assert_eq!(config.encoder, paper.encoder, "{name}");
        };
        check(
            "lf-amazontitles-131k-released",
            [0.72, 0.16],
            [
                (20, 1024, 0.01, [2e-4, 0.005, 0.005]),
                (50, 420, 0.05, [3e-5, 0.005, 1e-4]),
            ],
        );
        check(
            "amazon-670k-released",
            [1.05, 0.2],
            [
                (15, 256, 0.0, [1e-4, 0.01, 0.01]),
                (30, 256, 0.05, [3e-5, 0.005, 3e-4]),
            ],
        );
    }

    #[test]
    fn an_unknown_preset_lists_the_known_ones() {
        let message = Config::preset("amazon").unwrap_err().to_string();
        assert!(message.contains("amazon-670k"), "{message}");
    }
}
