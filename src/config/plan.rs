//! The plan: a configuration resolved against the data.

use super::validate::{POSITIVE, check};
use crate::config::{
    Config, EncoderKind, FinalScoreKind, IndexMode, Recipe, RecipeName, Refit, StagePlan,
};
use crate::error::{Error, Result};
use crate::random::Random;

/// The sizes a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCounts {
    /// N: training points with a label.
    pub n_points: usize,
    /// L: labels.
    pub n_labels: usize,
    /// Words of the vocabulary, or columns of given features.
    pub n_features: usize,
    /// Pairs of neighbouring words that the ranker reads besides.
    pub n_pairs: usize,
    /// Parts of words that are not in the vocabulary.
    pub n_parts: usize,
    /// Values of the embedding that is given with every text; 0 if none is.
    pub embedding_dim: usize,
}

/// The decisions of [`Config::resolve`], by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decided {
    /// C.
    pub n_clusters: usize,
    /// β.
    pub beta: f32,
    /// κ.
    pub kappa: usize,
    /// b.
    pub beam_size: usize,
    /// K.
    pub shortlist_size: usize,
}

/// A configuration with every value decided; [`Config::resolve`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    config: Config,
    recipe: Recipe,
    counts: DataCounts,
    n_clusters: usize,
    beta: f32,
    kappa: usize,
    beam_size: usize,
    shortlist_size: usize,
}

impl Config {
    /// Decides what was left open and clamps what the data cannot fill.
    ///
    /// # Errors
    /// As [`Config::validate`], and [`Error::CannotTrain`] for data without points or labels.
    pub fn resolve(&self, counts: DataCounts) -> Result<Plan> {
        self.validate()?;
        for (count, what) in [
            (counts.n_points, "no training point has a label"),
            (counts.n_features, "no text has a word"),
        ] {
            if count == 0 {
                return Err(Error::CannotTrain(what.into()));
            }
        }
        let n_labels = counts.n_labels;
        let (index, recipe) = (&self.index, Recipe::of(self));
        let n_clusters = match index.mode {
            IndexMode::Ova => 1,
            IndexMode::Fixed | IndexMode::Learned => index
                .n_clusters
                .unwrap_or_else(|| n_clusters(n_labels, recipe.max_small_clusters))
                .min(n_labels),
        };
        let labels_per_cluster = n_labels as f32 / n_clusters as f32;
        let beta = match self.encoder.kind {
            EncoderKind::Bag => recipe.beta,
            EncoderKind::Transformer => recipe.beta_transformer,
        };
        let kappa = || recipe.kappa.size(labels_per_cluster).ceil() as usize;
        Ok(Plan {
            counts,
            n_clusters,
            beta: index.beta.unwrap_or_else(|| beta.size(labels_per_cluster)),
            kappa: index.kappa.unwrap_or_else(kappa).min(n_labels),
            beam_size: index.beam_size.min(n_clusters),
            shortlist_size: match index.mode {
                IndexMode::Ova => n_labels,
                IndexMode::Fixed | IndexMode::Learned => index.shortlist_size.min(n_labels),
            },
            recipe,
            config: self.clone(),
        })
    }

    /// The plan that was decided before, as a model file holds it.
    ///
    /// # Errors
    /// [`Error::Config`] for values that cannot be used.
    pub(crate) fn restore(&self, counts: DataCounts, decided: Decided) -> Result<Plan> {
        self.validate()?;
        let n_labels = counts.n_labels;
        check("plan.n_clusters", decided.n_clusters, 1..=n_labels)?;
        check("plan.kappa", decided.kappa, 1..=n_labels)?;
        check("plan.beam_size", decided.beam_size, 1..=decided.n_clusters)?;
        check("plan.shortlist_size", decided.shortlist_size, 1..=n_labels)?;
        check("plan.beta", decided.beta, POSITIVE..=f32::MAX)?;
        Ok(Plan {
            config: self.clone(),
            recipe: Recipe::of(self),
            counts,
            n_clusters: decided.n_clusters,
            beta: decided.beta,
            kappa: decided.kappa,
            beam_size: decided.beam_size,
            shortlist_size: decided.shortlist_size,
        })
    }
}

/// The paper's number of clusters for L labels: 2^⌈log2(L/100)⌉, which makes clusters of 50 to 100 labels; at least 1.
pub(crate) fn paper_n_clusters(n_labels: usize) -> usize {
    n_labels.div_ceil(100).next_power_of_two()
}

/// The number of clusters for L labels, by default.
pub fn default_n_clusters(n_labels: usize) -> usize {
    n_clusters(n_labels, RecipeName::default().column().max_small_clusters)
}

/// The number of clusters for L labels: of 13 to 25 labels up to `max_small` clusters, then the paper's number.
///
/// The smaller a cluster, the more it says about its labels; but it also has fewer points to be learned from, and
/// every text is compared with all clusters.
fn n_clusters(n_labels: usize, max_small: usize) -> usize {
    let small = n_labels.div_ceil(25).next_power_of_two();
    small.min(max_small).max(paper_n_clusters(n_labels))
}

/// Epochs of stage 1.
const EPOCHS_OF_STAGE1: usize = 2;
/// Epochs of stage 2 where the ranker and the final score make up for what more would bring (`docs/experiments.md`).
const EPOCHS_BEFORE_FINAL_SCORE: usize = 4;
/// Epochs of stage 2 where the network stands alone.
const EPOCHS_ALONE: usize = 14;
/// Fewest points that are held out in turn.
const MIN_POINTS_OF_FOLDS: usize = 50;
/// Most points that are held out in turn.
const MAX_POINTS_OF_FOLDS: usize = 20_000;
/// Up to so many points, a network that lacks those held out is trained again: they are a twentieth or more.
const MAX_POINTS_TO_TRAIN_AGAIN: usize = 100_000;

impl Plan {
    /// The stages to train, in order; where there is no index to learn, one with the epochs of both.
    pub fn stages(&self) -> Vec<StagePlan> {
        let config = &self.config;
        let in_stage2 = if self.fits_final_score() && config.ranker.enabled {
            EPOCHS_BEFORE_FINAL_SCORE
        } else {
            EPOCHS_ALONE
        };
        let epochs = [
            config.stage1.epochs.unwrap_or(EPOCHS_OF_STAGE1),
            config.stage2.epochs.unwrap_or(in_stage2),
        ];
        let rates = config.rates.by_stage();
        let (batch_sizes, lambdas) = (
            config.train.batch_size.values(),
            config.train.lambda.values(),
        );
        let stage = |at: usize, epochs| StagePlan {
            epochs,
            rates: rates[at],
            batch_size: batch_sizes[at],
            lambda: lambdas[at],
        };
        match config.index.mode {
            IndexMode::Learned => vec![stage(0, epochs[0]), stage(1, epochs[1])],
            IndexMode::Fixed | IndexMode::Ova => vec![stage(0, epochs.iter().sum())],
        }
    }

    /// Whether there are enough points to fit boosted trees on.
    fn fits_final_score(&self) -> bool {
        self.recipe.final_score == FinalScoreKind::Boosted && self.n_points_to_fit() > 0
    }

    /// Upper bound of the points that the final score is fitted on; 0 if there are too few.
    pub fn n_points_to_fit(&self) -> usize {
        let hold_out = &self.config.hold_out;
        let n_held_out = hold_out.most_points(self.counts.n_points);
        if !self.recipe.final_score.is_fitted() {
            0
        } else if hold_out.min_points.max(1) <= n_held_out {
            n_held_out
        } else {
            self.n_folds().map_or(0, |_| self.counts.n_points)
        }
    }

    /// Parts of the points that can be held out in turn, if too few can be held out at once.
    pub fn n_folds(&self) -> Option<usize> {
        let is_small = (MIN_POINTS_OF_FOLDS..=MAX_POINTS_OF_FOLDS).contains(&self.counts.n_points);
        (is_small && self.recipe.folds >= 2).then_some(self.recipe.folds)
    }

    /// Fewest points of which folds can be held out in turn; `None` where that is switched off.
    pub fn min_points_of_folds(&self) -> Option<usize> {
        (self.recipe.folds >= 2).then_some(MIN_POINTS_OF_FOLDS)
    }

    /// Times that the network of a member is expected to be trained: on the points that are not held out, and on all.
    pub fn n_passes(&self) -> usize {
        let hold_out = &self.config.hold_out;
        let is_split = hold_out.min_points.max(1) <= hold_out.most_points(self.counts.n_points);
        match (self.n_points_to_fit(), self.refit()) {
            (0, _) => 1,
            _ if !is_split => self.recipe.folds + 1,
            (_, Refit::Everything) => 2,
            _ => 1,
        }
    }

    /// The part that is trained again on all points, once the final score is fitted.
    pub fn refit(&self) -> Refit {
        match self.recipe.refit {
            Refit::Auto if self.counts.n_points <= MAX_POINTS_TO_TRAIN_AGAIN => Refit::Everything,
            Refit::Auto => Refit::Ranker,
            refit => refit,
        }
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The recipe, with every element decided.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The data it was made for.
    pub fn counts(&self) -> DataCounts {
        self.counts
    }

    /// The decisions, by themselves.
    pub(crate) fn decided(&self) -> Decided {
        Decided {
            n_clusters: self.n_clusters,
            beta: self.beta,
            kappa: self.kappa,
            beam_size: self.beam_size,
            shortlist_size: self.shortlist_size,
        }
    }

    /// The plan of one member of the ensemble: the first has the seed of the configuration, every other one of its
    /// own, which leads to clusters of its own.
    pub(crate) fn of_member(&self, member_idx: usize) -> Plan {
        let mut plan = self.clone();
        if member_idx > 0 {
            let seed = self.config.train.seed;
            plan.config.train.seed = Random::new(seed, "member", member_idx as u64).u64();
        }
        plan
    }

    /// The plan of an ensemble of so many members, each trained by a plan like this one.
    pub(crate) fn of_ensemble(&self, n_members: usize) -> Plan {
        let mut plan = self.clone();
        plan.config.ensemble.members = n_members;
        plan
    }

    /// C.
    pub fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// β.
    pub fn beta(&self) -> f32 {
        self.beta
    }

    /// κ.
    pub fn kappa(&self) -> usize {
        self.kappa
    }

    /// b.
    pub fn beam_size(&self) -> usize {
        self.beam_size
    }

    /// Points per step, at most.
    pub fn batch_size(&self) -> usize {
        let stages = self.stages();
        let largest = stages.iter().map(|stage| stage.batch_size).max();
        largest.unwrap_or(0).min(self.counts.n_points)
    }

    /// K.
    pub fn shortlist_size(&self) -> usize {
        self.shortlist_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(n_labels: usize) -> Plan {
        Config::default()
            .resolve(DataCounts {
                n_points: 10,
                n_labels,
                n_features: 10,
                n_pairs: 0,
                n_parts: 0,
                embedding_dim: 0,
            })
            .unwrap()
    }

    #[test]
    fn what_is_left_open_follows_from_the_number_of_labels() {
        assert_eq!(
            (plan(28_484).n_clusters(), plan(28_484).kappa()),
            (512, 557)
        );
        assert_eq!(plan(3_000_000).n_clusters(), 32_768);
        let set = |setting: &str| Config::default().with_value(setting).unwrap();
        let counts = plan(6_400).counts();
        assert_eq!(plan(6_400).beta(), 112.5);
        let wider = set("encoder.kind=transformer").resolve(counts).unwrap();
        assert_eq!(wider.beta(), 212.5);
        let paper = set("recipe=paper").resolve(counts).unwrap();
        assert_eq!(
            (paper.n_clusters(), paper.beta(), paper.kappa()),
            (64, 150.0, 1000)
        );
        let tiny = plan(1);
        assert_eq!(
            (
                tiny.n_clusters(),
                tiny.kappa(),
                tiny.beam_size(),
                tiny.shortlist_size()
            ),
            (1, 1, 1, 1)
        );
    }
}
