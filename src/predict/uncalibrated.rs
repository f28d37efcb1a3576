//! Why a model has no probabilities.

use std::fmt;

use super::{Level, Predictor};
use crate::events::Event;

/// The reason that answers of a model have no probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uncalibrated {
    /// Too few points could be held out.
    TooFewPoints {
        /// Points that could be held out.
        n_points: usize,
        /// Points that calibration needs.
        n_needed: usize,
    },
    /// The model is made of several: [`Predictor::calibrate`] fits its probabilities.
    Merged,
    /// The model was trained without calibration.
    SwitchedOff,
}

impl fmt::Display for Uncalibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncalibrated::TooFewPoints { n_points, n_needed } => {
                let points = if *n_points == 1 { "point" } else { "points" };
                write!(
                    f,
                    "the training data is too small to calibrate the model ({n_points} {points} could be held out, \
                     {n_needed} are needed)"
                )
            }
            Uncalibrated::Merged => f.write_str(
                "the model was merged, and probabilities of its members are not those of the whole",
            ),
            Uncalibrated::SwitchedOff => f.write_str("the model was trained without calibration"),
        }
    }
}

impl Predictor {
    /// Why answers have no probabilities; `None` if they have.
    pub fn why_uncalibrated(&self) -> Option<Uncalibrated> {
        if self.is_calibrated() {
            return None;
        }
        let skipped = self.history().iter().find_map(|event| match *event {
            Event::CalibrationSkipped { n_points, n_needed } => {
                Some(Uncalibrated::TooFewPoints { n_points, n_needed })
            }
            _ => None,
        });
        // Only a merged model has calibrated scores without probabilities.
        let is_merged = self.check_level(Level::Calibrated).is_ok();
        let otherwise = if is_merged {
            Uncalibrated::Merged
        } else {
            Uncalibrated::SwitchedOff
        };
        Some(skipped.unwrap_or(otherwise))
    }
}
