//! What will run: a configuration resolved against the data.

use crate::config::validate::{check, unusable};
use crate::config::{Config, IndexMode};
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
}

/// What [`Config::resolve`] decides, by itself.
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
    /// [`Error::Config`] for values that cannot be used, [`Error::CannotTrain`] for data without points or labels.
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
        let n_clusters = match self.index.mode {
            IndexMode::Ova => 1,
            IndexMode::Fixed | IndexMode::Learned => self
                .index
                .n_clusters
                .unwrap_or_else(|| default_n_clusters(n_labels))
                .min(n_labels),
        };
        let labels_per_cluster = n_labels as f32 / n_clusters as f32;
        let kappa = self
            .index
            .kappa
            .unwrap_or((10.0 * labels_per_cluster).ceil() as usize);
        Ok(Plan {
            counts,
            n_clusters,
            beta: self
                .index
                .beta
                .unwrap_or((self.index.beta_factor * labels_per_cluster).max(1.0)),
            kappa: kappa.min(n_labels),
            beam_size: self.index.beam_size.min(n_clusters),
            shortlist_size: match self.index.mode {
                IndexMode::Ova => n_labels,
                IndexMode::Fixed | IndexMode::Learned => self.index.shortlist_size.min(n_labels),
            },
            config: self.clone(),
        })
    }

    /// The plan that was decided before, as a model file holds it.
    ///
    /// # Errors
    /// [`Error::Config`] for values that cannot be used.
    pub(crate) fn restore(&self, counts: DataCounts, decided: Decided) -> Result<Plan> {
        self.validate()?;
        let up_to = |key: &str, value: usize, most: usize| {
            let is_usable = (1..=most).contains(&value);
            check(is_usable, key, value as f64, &format!("1 to {most}"))
        };
        up_to("plan.n_clusters", decided.n_clusters, counts.n_labels)?;
        up_to("plan.kappa", decided.kappa, counts.n_labels)?;
        up_to("plan.beam_size", decided.beam_size, decided.n_clusters)?;
        up_to(
            "plan.shortlist_size",
            decided.shortlist_size,
            counts.n_labels,
        )?;
        if !(decided.beta > 0.0 && decided.beta.is_finite()) {
            return Err(unusable(
                "plan.beta",
                decided.beta.into(),
                "a positive number",
            ));
        }
        Ok(Plan {
            config: self.clone(),
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

/// Up to so many, clusters are small.
const SMALL_CLUSTERS: usize = 512;

/// The number of clusters for L labels: of 13 to 25 labels up to 512 clusters, then the paper's number.
///
/// The smaller a cluster, the more it says about its labels; but it also has fewer points to be learned from, and
/// every text is compared with all clusters.
pub fn default_n_clusters(n_labels: usize) -> usize {
    let small = n_labels.div_ceil(25).next_power_of_two();
    small.min(SMALL_CLUSTERS).max(paper_n_clusters(n_labels))
}

impl Plan {
    /// The configuration it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The data it was made for.
    pub fn counts(&self) -> DataCounts {
        self.counts
    }

    /// What was decided, by itself.
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

    /// Points per step.
    pub fn batch_size(&self) -> usize {
        self.config.train.batch_size.min(self.counts.n_points)
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
        let factor = |factor: &str| Config::default().with_value(factor).unwrap();
        let counts = plan(6_400).counts();
        assert_eq!(plan(6_400).beta(), 112.5);
        let wider = factor("index.beta_factor=8.5").resolve(counts).unwrap();
        assert_eq!(wider.beta(), 212.5);
        assert!(factor("index.beta_factor=0").resolve(counts).is_err());
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
