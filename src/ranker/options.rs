//! How the solver works: the user's settings and the constants behind them.

use crate::config::{Config, Precision, RankerLoss, Recipe};

/// Settings and constants of the ranker's training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RankerOptions {
    pub(crate) loss: RankerLoss,
    /// C of points that have the label.
    pub(crate) cost_positive: f32,
    /// C of candidate points that do not have the label.
    pub(crate) cost_negative: f32,
    /// Largest violation of the optimality conditions at which a classifier counts as solved.
    pub(crate) tolerance: f32,
    /// Passes over a label's points after which its classifier is taken as it is.
    pub(crate) max_iterations: usize,
    /// Value of the constant feature that carries the intercept; 0 trains without an intercept.
    pub(crate) bias: f32,
    /// Word weights whose magnitude is below this are dropped after training.
    pub(crate) threshold: f32,
    /// Candidates per point that count as training points of their labels.
    pub(crate) n_candidates: usize,
    /// Whether the embedding is part of the features.
    pub(crate) use_embedding: bool,
    /// How the weights of terms are kept.
    pub(crate) precision: Precision,
}

impl RankerOptions {
    /// The options of a configuration and its recipe.
    pub(crate) fn new(config: &Config, recipe: &Recipe) -> Self {
        RankerOptions {
            loss: recipe.ranker_loss,
            cost_positive: recipe.ranker_cost,
            cost_negative: recipe.ranker_cost,
            // Within two percent of the optimum, in a third of the time of a tenth of it.
            tolerance: 0.1,
            max_iterations: 100,
            bias: 1.0,
            threshold: 0.1,
            n_candidates: config.ranker.n_candidates,
            use_embedding: recipe.ranker_embedding,
            precision: config.train.precision,
        }
    }
}

impl RankerOptions {
    /// Whether a word's weight is kept.
    #[inline]
    pub(super) fn keeps(&self, weight: f32) -> bool {
        weight != 0.0 && weight.abs() >= self.threshold
    }
}

impl Default for RankerOptions {
    fn default() -> Self {
        let config = Config::default();
        RankerOptions::new(&config, &Recipe::of(&config))
    }
}
