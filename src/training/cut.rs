//! A validation part, cut from training data.

use crate::config::{Config, Recipe};
use crate::data::{Alone, Dataset, HoldOut, HoldOutRules};
use crate::error::Result;
use crate::features::Featurizer;

impl Dataset {
    /// Cuts a validation part of at most `n_points`, and never more than a tenth, from training data.
    ///
    /// Near duplicates of a validation point are in neither part, and every label keeps a training point. Both parts
    /// have the labels of the whole. The same seed gives the same parts.
    ///
    /// # Errors
    /// [`Error::CannotTrain`](crate::Error::CannotTrain) if no text has a word.
    pub fn cut_validation(&self, n_points: usize, seed: u64) -> Result<[Dataset; 2]> {
        let mut config = Config::default().with_value("ranker.enabled=false")?;
        config.train.seed = seed;
        config.hold_out.n_points = n_points;
        let (_, points) = Featurizer::fit(self, &config, None)?;
        let rules = HoldOutRules {
            cosine: Recipe::of(&config).near_duplicates,
            alone: Alone::All,
            points_per_label: 1,
        };
        let chosen = HoldOut::choose(&points.features, self.labels(), &config, rules);
        Ok([chosen.train, chosen.held_out].map(|points| self.select(&points)))
    }
}
