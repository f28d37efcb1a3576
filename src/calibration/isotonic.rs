//! Isotonic regression: the non-decreasing function of the score that fits the outcomes best.
//!
//! Pool adjacent violators in one pass over the examples by ascending score, equal scores pooled first. Each pool is a
//! knot at its mean score, and the function is linear between knots, from probability 0 at score 0 to 1 at the highest
//! possible score: two answers with different scores never share a probability.

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
pub(super) struct ExamplePool {
    sum: f64,
    pub(super) n_examples: f64,
    n_relevant: f64,
}

impl Isotonic {
    /// Fits the function to scores from 0 to `highest` and whether each was relevant.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] without examples, if the lengths differ, or if a score is outside.
    pub(crate) fn fit(scores: &[f32], relevant: &[bool], highest: f32) -> Result<Self> {
        if scores.is_empty() || scores.len() != relevant.len() {
            return Err(Error::CannotTrain(format!(
                "{} scores and {} outcomes to fit probabilities on",
                scores.len(),
                relevant.len()
            )));
        }
        if let Some(score) = scores
            .iter()
            .find(|score| !(0.0..=highest).contains(*score))
        {
            return Err(Error::CannotTrain(format!(
                "score {score} to fit probabilities on, expected 0 to {highest}"
            )));
        }
        let pools = pool(scores, relevant);
        let mut knots = Isotonic {
            scores: vec![0.0],
            probabilities: vec![0.0],
        };
        for (place, pool) in pools.iter().enumerate() {
            // Nothing is certain: half an example more could have been wrong.
            let doubt = 0.5 / (pool.n_examples + 1.0);
            let least = if place == 0 {
                doubt.min(0.5 * next_share(&pools))
            } else {
                0.0
            };
            let most = if place + 1 == pools.len() {
                1.0 - doubt
            } else {
                1.0
            };
            let share = pool.share().max(least).min(most);
            knots.push((pool.sum / pool.n_examples) as f32, share as f32);
        }
        knots.push(highest, 1.0);
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

    /// Adds a knot, unless rounding has put it at or below the last one.
    fn push(&mut self, score: f32, probability: f32) {
        let is_above = |all: &[f32], value: f32| all.last().is_none_or(|last| *last < value);
        if is_above(&self.scores, score) && is_above(&self.probabilities, probability) {
            self.scores.push(score);
            self.probabilities.push(probability);
        }
    }
}

/// The share of the second pool, or 1.
fn next_share(pools: &[ExamplePool]) -> f64 {
    pools.get(1).map_or(1.0, ExamplePool::share)
}

/// Pools of ascending scores and shares.
pub(super) fn pool(scores: &[f32], relevant: &[bool]) -> Vec<ExamplePool> {
    let mut examples: Vec<(f32, bool)> = std::iter::zip(scores, relevant)
        // Adding 0 turns -0 into 0, which `total_cmp` would order before it.
        .map(|(&score, &relevant)| (score + 0.0, relevant))
        .collect();
    examples.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut pools: Vec<ExamplePool> = Vec::new();
    for equal in examples.chunk_by(|a, b| a.0 == b.0) {
        let mut pool = ExamplePool {
            sum: f64::from(equal[0].0) * equal.len() as f64,
            n_examples: equal.len() as f64,
            n_relevant: equal.iter().filter(|example| example.1).count() as f64,
        };
        while let Some(below) = pools.pop_if(|below| pool.share() <= below.share()) {
            pool.sum += below.sum;
            pool.n_examples += below.n_examples;
            pool.n_relevant += below.n_relevant;
        }
        pools.push(pool);
    }
    pools
}

impl ExamplePool {
    pub(super) fn share(&self) -> f64 {
        self.n_relevant / self.n_examples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn violators_are_pooled_and_everything_between_is_interpolated() {
        let scores = [0.1, 0.2, 0.3, 0.9];
        let fitted = Isotonic::fit(&scores, &[false, true, false, true], 1.0).unwrap();
        assert_eq!(fitted.parts().0, [0.0, 0.1, 0.25, 0.9, 1.0]);
        // 0 of 1 and 1 of 1 are not certain.
        assert_eq!(fitted.parts().1, [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(fitted.predict(-1.0), 0.0);
        assert!((fitted.predict(0.575) - 0.625).abs() < 1e-6);
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
        fn pools_are_those_of_the_minimax_formula(examples in prop::collection::vec((0u8..12, any::<bool>()), 1..40)) {
            let (scores, relevant): (Vec<f32>, Vec<bool>) =
                examples.iter().map(|&(score, relevant)| (f32::from(score), relevant)).unzip();
            // The share of the pool that holds a score.
            let pools = pool(&scores, &relevant);
            let of_score = minimax(&examples);
            let mut at = 0;
            for pool in &pools {
                let mut n_left = pool.n_examples;
                while n_left > 0.5 {
                    let (score, expected) = of_score[at];
                    prop_assert!((pool.share() - expected).abs() < 1e-9, "{} {}", score, expected);
                    n_left -= examples.iter().filter(|example| example.0 == score).count() as f64;
                    at += 1;
                }
            }
            prop_assert_eq!(at, of_score.len());
        }

        #[test]
        fn a_higher_score_has_a_higher_probability(examples in prop::collection::vec((1u8..16, any::<bool>()), 1..40)) {
            let (scores, relevant): (Vec<f32>, Vec<bool>) =
                examples.iter().map(|&(score, relevant)| (f32::from(score) / 16.0, relevant)).unzip();
            let fitted = Isotonic::fit(&scores, &relevant, 1.0).unwrap();
            let (knots, probabilities) = fitted.parts();
            prop_assert!(Isotonic::from_parts(knots.to_vec(), probabilities.to_vec()).is_ok());
            let line: Vec<f32> = (0..=200).map(|at| fitted.predict(at as f32 / 200.0)).collect();
            prop_assert!(line.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", line);
            prop_assert!(line[0] == 0.0 && line[200] == 1.0);
        }
    }

    #[test]
    fn invalid_input_is_an_error() {
        assert!(Isotonic::fit(&[], &[], 1.0).is_err());
        assert!(Isotonic::fit(&[0.0], &[], 1.0).is_err());
        assert!(Isotonic::fit(&[f32::NAN], &[true], 1.0).is_err());
        assert!(Isotonic::fit(&[1.5], &[true], 1.0).is_err());
        assert!(Isotonic::from_parts(vec![0.0, 0.0], vec![0.1, 0.2]).is_err());
        assert!(Isotonic::from_parts(vec![0.0, 1.0], vec![0.2, 0.1]).is_err());
        assert!(Isotonic::from_parts(vec![0.0], vec![1.5]).is_err());
        assert!(Isotonic::from_parts(vec![], vec![]).is_err());
    }
}
