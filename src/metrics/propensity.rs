//! Inverse propensities: the weights of hits, higher for rare labels.
//!
//! The model of Jain, Prabhu and Varma (2016): a label with n of N training points is missing from the data
//! with a probability that falls with n, and its inverse propensity is `1 + (ln N − 1)(B+1)^A (n+B)^−A`.

use std::str::FromStr;

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

/// Parses two numbers as in `0.55,1.5`, or a name: `default`, `amazon`, `wikipedia`.
impl FromStr for Propensity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => return Ok(Propensity::default()),
            "amazon" => return Ok(Propensity::AMAZON),
            "wikipedia" => return Ok(Propensity::WIKIPEDIA),
            _ => {}
        }
        let (a, b) = text
            .split_once(',')
            .ok_or("expected two numbers, as in 0.55,1.5")?;
        let number = |text: &str| {
            let parsed = text.trim().parse::<f64>();
            parsed.map_err(|_| format!("{text:?} is not a number"))
        };
        let (a, b) = (number(a)?, number(b)?);
        let is_usable = a.is_finite() && b.is_finite() && a >= 0.0 && b > 0.0;
        if !is_usable {
            return Err("A must not be negative and B must be positive".into());
        }
        Ok(Propensity { a, b })
    }
}

impl Default for Propensity {
    fn default() -> Self {
        Propensity { a: 0.55, b: 1.5 }
    }
}

/// The inverse propensity of every label; labels without a count have no training point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InversePropensities {
    of_label: Vec<f64>,
    of_unseen: f64,
}

impl InversePropensities {
    /// The weight of a label.
    pub(crate) fn get(&self, label: LabelId) -> f64 {
        self.of_label
            .get(label.idx())
            .copied()
            .unwrap_or(self.of_unseen)
    }
}

/// Frequencies of the labels in the training data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFrequencies {
    /// Training points of each label, by id.
    pub counts: Vec<usize>,
    /// All training points.
    pub n_points: usize,
}

impl LabelFrequencies {
    /// The frequencies in Y: one row per point, one column per label.
    pub fn of(labels: &CsrMatrix) -> Self {
        let mut counts = vec![0; labels.n_cols()];
        for &label in labels.indices() {
            counts[label as usize] += 1;
        }
        LabelFrequencies {
            counts,
            n_points: labels.n_rows(),
        }
    }

    /// The weights of PSP@k.
    ///
    /// With fewer than three training points `ln N − 1` is negative and is taken as 0: all weights are then 1.
    pub(crate) fn inverse_propensities(&self, propensity: Propensity) -> InversePropensities {
        let Propensity { a, b } = propensity;
        let scale = ((self.n_points as f64).ln() - 1.0).max(0.0) * (b + 1.0).powf(a);
        let weigh = |count: usize| 1.0 + scale * (count as f64 + b).powf(-a);
        InversePropensities {
            of_label: self.counts.iter().map(|&count| weigh(count)).collect(),
            of_unseen: weigh(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(counts: &[usize], n_points: usize, propensity: Propensity) -> InversePropensities {
        let frequencies = LabelFrequencies {
            counts: counts.to_vec(),
            n_points,
        };
        frequencies.inverse_propensities(propensity)
    }

    #[test]
    fn a_label_without_a_count_weighs_like_one_without_points() {
        let weights = weights(&[0, 7], 100, Propensity::default());
        assert_eq!(weights.get(LabelId(2)), weights.get(LabelId(0)));
        assert!(weights.get(LabelId(1)) < weights.get(LabelId(0)));
    }

    #[test]
    fn weights_follow_the_formula() {
        // By hand: 1 + (ln 1000 − 1)·3.6^0.6·(10 + 2.6)^−0.6.
        let weights = weights(&[10], 1000, Propensity::AMAZON);
        let expected = 1.0 + (1000f64.ln() - 1.0) * (3.6f64 / 12.6).powf(0.6);
        assert!((weights.get(LabelId(0)) - expected).abs() < 1e-12);
    }

    #[test]
    fn weights_stay_at_one_or_above_for_tiny_training_sets() {
        for n_points in 0..5 {
            let weights = weights(&[1, 0], n_points, Propensity::WIKIPEDIA);
            assert!(
                weights.of_label.iter().all(|&weight| weight >= 1.0),
                "{n_points}: {weights:?}"
            );
        }
    }

    #[test]
    fn constants_are_numbers_or_a_name() {
        assert_eq!("amazon".parse(), Ok(Propensity::AMAZON));
        assert_eq!("0.5, 0.4".parse(), Ok(Propensity { a: 0.5, b: 0.4 }));
        for bad in ["0.5", "0.5,x", "-1,1", "1,0", "nan,1", ""] {
            assert!(bad.parse::<Propensity>().is_err(), "{bad}");
        }
    }
}
