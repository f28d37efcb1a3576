//! Isotonic regression: the non-decreasing function of the score that fits the outcomes best.
//!
//! Pool adjacent violators in one pass over the examples by ascending score, equal scores pooled first. The function
//! is linear between pools and constant outside of them, as in scikit-learn.

use crate::error::{Error, Result};

/// A non-decreasing, piecewise linear function from scores to probabilities.
///
/// Invariants: at least one knot; scores strictly increase; probabilities never decrease and lie in 0..=1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Isotonic {
    scores: Vec<f32>,
    probabilities: Vec<f32>,
}

/// Neighbouring examples with one probability. Counts are f64, as there may be millions.
struct ExamplePool {
    lowest: f32,
    highest: f32,
    n_examples: f64,
    n_relevant: f64,
}

impl Isotonic {
    /// Fits the function to scores and whether each was relevant.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] without examples, if the lengths differ, or if a score is not finite.
    pub(crate) fn fit(scores: &[f32], relevant: &[bool]) -> Result<Self> {
        if scores.is_empty() || scores.len() != relevant.len() {
            return Err(Error::CannotTrain(format!(
                "{} scores and {} outcomes to fit probabilities on",
                scores.len(),
                relevant.len()
            )));
        }
        if let Some(score) = scores.iter().find(|score| !score.is_finite()) {
            return Err(Error::CannotTrain(format!(
                "score {score} to fit probabilities on, expected a finite number"
            )));
        }
        let mut examples: Vec<(f32, bool)> = std::iter::zip(scores, relevant)
            // Adding 0 turns -0 into 0, which `total_cmp` would order before it.
            .map(|(&score, &relevant)| (score + 0.0, relevant))
            .collect();
        examples.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

        let mut pools: Vec<ExamplePool> = Vec::new();
        for equal in examples.chunk_by(|a, b| a.0 == b.0) {
            let mut pool = ExamplePool {
                lowest: equal[0].0,
                highest: equal[0].0,
                n_examples: equal.len() as f64,
                n_relevant: equal.iter().filter(|example| example.1).count() as f64,
            };
            while let Some(below) = pools.pop_if(|below| pool.share() <= below.share()) {
                pool.lowest = below.lowest;
                pool.n_examples += below.n_examples;
                pool.n_relevant += below.n_relevant;
            }
            pools.push(pool);
        }

        let mut knots = Isotonic {
            scores: Vec::new(),
            probabilities: Vec::new(),
        };
        for pool in &pools {
            knots.push(pool.lowest, pool.share() as f32);
            if pool.highest > pool.lowest {
                knots.push(pool.highest, pool.share() as f32);
            }
        }
        Ok(knots)
    }

    /// A function from its knots.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if an invariant does not hold.
    pub(crate) fn from_parts(scores: Vec<f32>, probabilities: Vec<f32>) -> Result<Self> {
        let is_complete = !scores.is_empty() && scores.len() == probabilities.len();
        let is_finite = scores.iter().all(|score| score.is_finite());
        let is_increasing = scores.windows(2).all(|pair| pair[0] < pair[1]);
        let is_monotone = probabilities.windows(2).all(|pair| pair[0] <= pair[1]);
        let is_probability = probabilities.iter().all(|p| (0.0..=1.0).contains(p));
        if is_complete && is_finite && is_increasing && is_monotone && is_probability {
            Ok(Isotonic {
                scores,
                probabilities,
            })
        } else {
            Err(Error::InvalidModel(
                "calibration knots need increasing scores and non-decreasing probabilities from 0 to 1"
                    .into(),
            ))
        }
    }

    /// The knots: scores and probabilities.
    pub(crate) fn parts(&self) -> (&[f32], &[f32]) {
        (&self.scores, &self.probabilities)
    }

    /// The probability of a score; the lowest one for NaN.
    pub(crate) fn predict(&self, score: f32) -> f32 {
        let above = self.scores.partition_point(|&knot| knot <= score);
        if above == 0 {
            return self.probabilities[0];
        }
        let (low, from) = (self.scores[above - 1], self.probabilities[above - 1]);
        let Some((&high, &to)) = self.scores.get(above).zip(self.probabilities.get(above)) else {
            return from;
        };
        // In f64 the line stays monotone and between its ends.
        let share = (f64::from(score) - f64::from(low)) / (f64::from(high) - f64::from(low));
        (f64::from(from) + share * (f64::from(to) - f64::from(from))) as f32
    }

    fn push(&mut self, score: f32, probability: f32) {
        self.scores.push(score);
        self.probabilities.push(probability);
    }
}

impl ExamplePool {
    fn share(&self) -> f64 {
        self.n_relevant / self.n_examples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn violators_are_pooled_and_gaps_interpolated() {
        let fitted = Isotonic::fit(&[0.1, 0.2, 0.3, 0.9], &[false, true, false, true]).unwrap();
        assert_eq!(fitted.parts().0, [0.1, 0.2, 0.3, 0.9]);
        assert_eq!(fitted.parts().1, [0.0, 0.5, 0.5, 1.0]);
        assert_eq!(fitted.predict(-1.0), 0.0);
        assert_eq!(fitted.predict(0.25), 0.5);
        assert!((fitted.predict(0.6) - 0.75).abs() < 1e-6);
        assert_eq!(fitted.predict(2.0), 1.0);
        assert_eq!(fitted.predict(f32::NAN), 0.0);
    }

    /// The isotonic fit at every score by its minimax formula: max over starts of min over ends of the mean.
    fn minimax(examples: &[(u8, bool)]) -> Vec<(u8, f64)> {
        let mut scores: Vec<u8> = examples.iter().map(|example| example.0).collect();
        scores.sort_unstable();
        scores.dedup();
        let mean = |from: u8, to: u8| {
            let inside = examples.iter().filter(|e| from <= e.0 && e.0 <= to);
            let (n, relevant) = inside.fold((0.0, 0.0), |(n, r), e| (n + 1.0, r + f64::from(e.1)));
            relevant / n
        };
        let least = |from: u8, score: u8| {
            let ends = scores.iter().filter(|&&end| end >= score);
            ends.map(|&end| mean(from, end))
                .fold(f64::INFINITY, f64::min)
        };
        let value = |score: u8| {
            let starts = scores.iter().filter(|&&start| start <= score);
            starts.map(|&start| least(start, score)).fold(0.0, f64::max)
        };
        scores.iter().map(|&score| (score, value(score))).collect()
    }

    proptest! {
        #[test]
        fn the_fit_is_the_minimax_formula(examples in prop::collection::vec((0u8..12, any::<bool>()), 1..40)) {
            let (scores, relevant): (Vec<f32>, Vec<bool>) =
                examples.iter().map(|&(score, relevant)| (f32::from(score), relevant)).unzip();
            let fitted = Isotonic::fit(&scores, &relevant).unwrap();
            for (score, expected) in minimax(&examples) {
                let found = f64::from(fitted.predict(f32::from(score)));
                prop_assert!((found - expected).abs() < 1e-6, "{} {} {}", score, found, expected);
            }
            let (knots, probabilities) = fitted.parts();
            prop_assert!(Isotonic::from_parts(knots.to_vec(), probabilities.to_vec()).is_ok());
            let line: Vec<f32> = (0..300).map(|at| fitted.predict(at as f32 * 0.05 - 1.0)).collect();
            prop_assert!(line.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }

    #[test]
    fn invalid_input_is_an_error() {
        assert!(Isotonic::fit(&[], &[]).is_err());
        assert!(Isotonic::fit(&[0.0], &[]).is_err());
        assert!(Isotonic::fit(&[f32::NAN], &[true]).is_err());
        assert!(Isotonic::from_parts(vec![0.0, 0.0], vec![0.1, 0.2]).is_err());
        assert!(Isotonic::from_parts(vec![0.0, 1.0], vec![0.2, 0.1]).is_err());
        assert!(Isotonic::from_parts(vec![0.0], vec![1.5]).is_err());
        assert!(Isotonic::from_parts(vec![], vec![]).is_err());
    }
}
