//! Inverse propensities: the weights of hits, higher for rare labels.
//!
//! The model of Jain, Prabhu and Varma (2016): a label with n of N training points is missing from the data
//! with a probability that falls with n, and its inverse propensity is `1 + (ln N − 1)(B+1)^A (n+B)^−A`.

use crate::ids::LabelId;
use crate::matrix::CsrMatrix;

/// The two constants of the propensity model.
///
/// The default (0.55, 1.5) is customary for data sets without constants of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Propensity {
    /// A: how fast the weight falls with the label's frequency; not negative.
    pub a: f64,
    /// B: offset of the frequency; positive, so that labels without a training point have a finite weight.
    pub b: f64,
}

impl Propensity {
    /// The constants customary for the Amazon data sets.
    pub const AMAZON: Propensity = Propensity { a: 0.6, b: 2.6 };
    /// The constants customary for the Wikipedia data sets.
    pub const WIKIPEDIA: Propensity = Propensity { a: 0.5, b: 0.4 };
}

impl Default for Propensity {
    fn default() -> Self {
        Propensity { a: 0.55, b: 1.5 }
    }
}

/// The inverse propensity of every label; labels without a count have no training point.
#[derive(Clone, Debug, PartialEq)]
pub struct InversePropensities {
    of_label: Vec<f64>,
    of_unseen: f64,
}

impl InversePropensities {
    /// The weight of a label.
    pub fn get(&self, label: LabelId) -> f64 {
        self.of_label
            .get(label.idx())
            .copied()
            .unwrap_or(self.of_unseen)
    }

    /// The weights of the counted labels, by id.
    pub fn values(&self) -> &[f64] {
        &self.of_label
    }
}

/// The inverse propensities of labels with these numbers of training points.
///
/// With fewer than three training points `ln N − 1` is negative and is taken as 0: all weights are then 1.
pub fn inverse_propensities(
    train_label_counts: &[usize],
    n_train_points: usize,
    propensity: Propensity,
) -> InversePropensities {
    let Propensity { a, b } = propensity;
    let scale = ((n_train_points as f64).ln() - 1.0).max(0.0) * (b + 1.0).powf(a);
    let weigh = |count: usize| 1.0 + scale * (count as f64 + b).powf(-a);
    InversePropensities {
        of_label: train_label_counts
            .iter()
            .map(|&count| weigh(count))
            .collect(),
        of_unseen: weigh(0),
    }
}

/// The number of points of each label: one count per column of Y.
pub fn label_counts(labels: &CsrMatrix) -> Vec<usize> {
    let mut counts = vec![0; labels.n_cols()];
    for &label in labels.indices() {
        counts[label as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_without_a_count_weighs_like_one_without_points() {
        let weights = inverse_propensities(&[0, 7], 100, Propensity::default());
        assert_eq!(weights.get(LabelId(2)), weights.get(LabelId(0)));
        assert!(weights.get(LabelId(1)) < weights.get(LabelId(0)));
    }

    #[test]
    fn weights_follow_the_formula() {
        // By hand: 1 + (ln 1000 − 1)·3.6^0.6·(10 + 2.6)^−0.6.
        let weights = inverse_propensities(&[10], 1000, Propensity::AMAZON);
        let expected = 1.0 + (1000f64.ln() - 1.0) * (3.6f64 / 12.6).powf(0.6);
        assert!((weights.get(LabelId(0)) - expected).abs() < 1e-12);
    }

    #[test]
    fn weights_stay_at_one_or_above_for_tiny_training_sets() {
        for n_train_points in 0..5 {
            let weights = inverse_propensities(&[1, 0], n_train_points, Propensity::WIKIPEDIA);
            assert!(
                weights.values().iter().all(|&weight| weight >= 1.0),
                "{n_train_points}: {weights:?}"
            );
        }
    }
}
