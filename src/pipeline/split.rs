//! Which points train, which are watched and which calibrate.

use std::borrow::Cow;

use crate::config::{Config, HoldOutConfig};
use crate::data::HoldOut;
use crate::features::PointSet;
use crate::events::Event;
use crate::matrix::CsrMatrix;

/// Points with their labels.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) points: PointSet,
    pub(super) labels: Cow<'a, CsrMatrix>,
}

/// The training data, divided.
pub(super) struct Split<'a> {
    pub(super) train: Part<'a>,
    /// Points to watch; none if others are watched or none are asked for.
    pub(super) validation: Option<Part<'a>>,
    /// Points to calibrate on.
    pub(super) held_out: Option<Part<'a>>,
    /// Points to train on again once calibration is done: those held out as well.
    pub(super) all: Option<Part<'a>>,
    /// What to tell about it, if calibration is wanted and cannot be had.
    pub(super) skipped: Option<Event>,
}

impl<'a> Split<'a> {
    /// Divides the points as the configuration says; the same for all members.
    pub(super) fn choose(
        points: PointSet,
        labels: &'a CsrMatrix,
        config: &Config,
        is_watched: bool,
    ) -> Self {
        let mut split = Split {
            train: Part {
                points,
                labels: Cow::Borrowed(labels),
            },
            validation: None,
            held_out: None,
            all: None,
            skipped: None,
        };
        let seed = config.train.seed;
        let n_points = config.train.validation_points;
        if 0 < n_points && !is_watched {
            let hold_out = HoldOutConfig {
                n_points,
                // What is only watched must not cost near duplicates their place in training.
                near_duplicates: f32::INFINITY,
                ..HoldOutConfig::default()
            };
            let Part { points, labels } = &split.train;
            let chosen = HoldOut::choose(&points.features, labels, &hold_out, seed);
            split.validation = Some(split.train.take_out(&chosen));
        }
        if config.calibration.enabled {
            let hold_out = &config.calibration.hold_out;
            let Part { points, labels } = &split.train;
            let chosen = HoldOut::choose(&points.features, labels, hold_out, seed);
            let (n_points, n_needed) = (chosen.held_out.len(), hold_out.min_points.max(1));
            if n_needed <= n_points {
                split.all = config.calibration.refit.then(|| split.train.clone());
                split.held_out = Some(split.train.take_out(&chosen));
            } else {
                split.skipped = Some(Event::CalibrationSkipped { n_points, n_needed });
            }
        }
        split
    }
}

impl<'a> Part<'a> {
    /// Takes out the points that are held out and returns them.
    fn take_out(&mut self, chosen: &HoldOut) -> Part<'a> {
        let taken = self.select(&chosen.held_out);
        *self = self.select(&chosen.train);
        taken
    }

    fn select(&self, points: &[usize]) -> Part<'a> {
        Part {
            points: self.points.select_rows(points),
            labels: Cow::Owned(self.labels.select_rows(points)),
        }
    }

    /// How many points each label has.
    pub(super) fn label_counts(&self) -> Vec<u32> {
        count_labels(&self.labels)
    }
}

/// How many points each label has.
pub(super) fn count_labels(labels: &CsrMatrix) -> Vec<u32> {
    let mut counts = vec![0; labels.n_cols()];
    labels
        .indices()
        .iter()
        .for_each(|&label| counts[label as usize] += 1);
    counts
}
