//! How well calibrated probabilities are: reliability bins and the expected calibration error.

use serde::{Deserialize, Serialize};

/// Answers whose probabilities lie in the same interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Number of answers.
    pub n_answers: usize,
    /// Mean of their probabilities; 0 for an empty bin.
    pub mean_probability: f64,
    /// Share of them that are relevant; 0 for an empty bin.
    pub relevant_share: f64,
}

/// The reliability curve of a set of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// Bins of equal width from 0 to 1; a bin includes its lower end, the last one also 1.
    pub bins: Vec<ReliabilityBin>,
}

impl Reliability {
    /// Sorts answers into `n_bins` bins (at least one). Probabilities outside of 0..=1 go to the nearest bin.
    ///
    /// # Panics
    /// If there are not as many outcomes as probabilities.
    pub fn new(probabilities: &[f32], relevant: &[bool], n_bins: usize) -> Self {
        assert_eq!(
            probabilities.len(),
            relevant.len(),
            "one outcome per probability"
        );
        let mut bins = vec![ReliabilityBin::default(); n_bins.max(1)];
        let last = bins.len() - 1;
        for (&probability, &relevant) in probabilities.iter().zip(relevant) {
            // The cast sends negative numbers and NaN to 0.
            let place = (f64::from(probability) * bins.len() as f64) as usize;
            let bin = &mut bins[place.min(last)];
            bin.n_answers += 1;
            bin.mean_probability += f64::from(probability);
            bin.relevant_share += f64::from(relevant);
        }
        for bin in bins.iter_mut().filter(|bin| bin.n_answers > 0) {
            bin.mean_probability /= bin.n_answers as f64;
            bin.relevant_share /= bin.n_answers as f64;
        }
        Reliability { bins }
    }

    /// Σ over bins of n_bin/n·|mean probability − relevant share|; 0 without answers.
    pub fn expected_calibration_error(&self) -> f64 {
        let n_answers: usize = self.bins.iter().map(|bin| bin.n_answers).sum();
        let errors = self
            .bins
            .iter()
            .map(|bin| bin.n_answers as f64 * (bin.mean_probability - bin.relevant_share).abs());
        errors.sum::<f64>() / n_answers.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_and_error_follow_the_formula() {
        let curve = Reliability::new(&[0.1, 0.3, 0.75, 1.0], &[false, true, true, true], 2);
        assert_eq!(curve.bins[0].n_answers, 2);
        assert!((curve.bins[0].mean_probability - 0.2).abs() < 1e-6);
        assert_eq!(curve.bins[0].relevant_share, 0.5);
        assert_eq!(curve.bins[1].relevant_share, 1.0);
        // 2/4·|0.2 − 0.5| + 2/4·|0.875 − 1|
        assert!((curve.expected_calibration_error() - 0.2125).abs() < 1e-6);
    }

    #[test]
    fn no_answers_have_no_error() {
        assert_eq!(
            Reliability::new(&[], &[], 0).expected_calibration_error(),
            0.0
        );
    }
}
