//! Which points train and which calibrate.
//!
//! [`HeldOut`] points are made only here, and calibration takes nothing else: no point both trains a member and
//! calibrates it. They are taken out of the training points, or given by the user and compared with them.

use std::borrow::Cow;

use crate::config::{Plan, Refit};
use crate::data::{Alone, HoldOut};
use crate::events::Event;
use crate::features::PointSet;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};
use crate::train::ValidationPoints;

/// Points with their labels.
#[derive(Clone)]
pub(super) struct LabelledPoints<'a> {
    pub(super) points: PointSet,
    pub(super) labels: Cow<'a, CsrMatrix>,
    /// Those that are texts of the data; label texts come after them.
    pub(super) n_texts: usize,
}

/// Points that train nothing before calibration is done.
pub(super) struct HeldOut<'a>(LabelledPoints<'a>);

/// Which time the members are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// On the points that are not held out.
    First,
    /// On all points, once calibration is done.
    Again,
}

/// The training data, divided.
pub(super) struct TrainingSplit<'a> {
    /// Points to train on.
    pub(super) train: LabelledPoints<'a>,
    /// Points to calibrate on.
    pub(super) held_out: Option<HeldOut<'a>>,
    /// All points, if some were held out.
    all: Option<LabelledPoints<'a>>,
    /// The part of the members that is trained again on all points once calibration is done.
    pub(super) refit: Refit,
    /// The event to emit if calibration is asked for but has too few points.
    pub(super) skipped: Option<Event>,
}

impl<'a> TrainingSplit<'a> {
    /// Divides the points; the same for all members.
    pub(super) fn choose(points: PointSet, labels: &'a CsrMatrix, plan: &Plan) -> Self {
        let mut split = TrainingSplit {
            train: LabelledPoints {
                n_texts: points.len(),
                points,
                labels: Cow::Borrowed(labels),
            },
            held_out: None,
            all: None,
            refit: Refit::Nothing,
            skipped: None,
        };
        let (config, recipe) = (plan.config(), plan.recipe());
        if !recipe.final_score.is_fitted() {
            return split;
        }
        let LabelledPoints { points, labels, .. } = &split.train;
        let chosen = HoldOut::choose(&points.features, labels, config, Alone::EveryOther);
        let (n_points, n_needed) = (chosen.held_out.len(), config.hold_out.min_points.max(1));
        if n_points < n_needed {
            split.skipped = Some(Event::CalibrationSkipped { n_points, n_needed });
            return split;
        }
        let train = split.train.select(&chosen.train);
        split.held_out = Some(HeldOut(split.train.select(&chosen.held_out)));
        split.all = Some(std::mem::replace(&mut split.train, train));
        split.refit = plan.refit();
        split
    }

    /// Adds label texts to the points that train.
    pub(super) fn add(&mut self, label_texts: &LabelPoints) {
        for points in [Some(&mut self.train), self.all.as_mut()] {
            let Some(points) = points else { continue };
            points.points.append(&label_texts.points);
            points.labels.to_mut().append(&label_texts.labels);
        }
    }

    /// How often the networks of the members are trained.
    pub(super) fn n_passes(&self) -> usize {
        1 + usize::from(self.refit == Refit::Everything)
    }

    /// All points, held out or not.
    pub(super) fn all(&self) -> &LabelledPoints<'a> {
        self.all.as_ref().unwrap_or(&self.train)
    }

    /// The points that members are trained on in a pass.
    pub(super) fn points(&self, pass: Pass) -> &LabelledPoints<'a> {
        match pass {
            Pass::First => &self.train,
            Pass::Again => self.all(),
        }
    }

    /// The points that the final rankers are trained on.
    pub(super) fn final_points(&self) -> &LabelledPoints<'a> {
        match self.refit {
            Refit::Nothing => &self.train,
            _ => self.all(),
        }
    }
}

impl<'a> LabelledPoints<'a> {
    fn select(&self, points: &[usize]) -> LabelledPoints<'a> {
        LabelledPoints {
            points: self.points.select_rows(points),
            labels: Cow::Owned(self.labels.select_rows(points)),
            n_texts: points.len(),
        }
    }

    /// Number of texts of each label.
    pub(super) fn label_counts(&self) -> Vec<u32> {
        count_labels(&self.labels, self.n_texts)
    }
}

impl HeldOut<'_> {
    /// Those of the given points that have labels and whose nearest training point is further away than a near
    /// duplicate would be, by its cosine.
    pub(super) fn given(
        points: &PointSet,
        labels: &CsrMatrix,
        nearest: &[f32],
        near_duplicates: f32,
    ) -> HeldOut<'static> {
        let is_held_out =
            |&point: &usize| !labels.row(point).0.is_empty() && nearest[point] < near_duplicates;
        let chosen: Vec<usize> = (0..points.len()).filter(is_held_out).collect();
        HeldOut(LabelledPoints {
            points: points.select_rows(&chosen),
            labels: Cow::Owned(labels.select_rows(&chosen)),
            n_texts: chosen.len(),
        })
    }

    /// The points with their labels, by which the best epoch of a stage is chosen.
    pub(super) fn to_choose_by(&self) -> ValidationPoints<'_> {
        ValidationPoints {
            points: self.0.points.points(),
            labels: &self.0.labels,
            filter: &[],
        }
    }

    /// The points.
    pub(super) fn points(&self) -> &PointSet {
        &self.0.points
    }

    /// Whether a point has a label.
    pub(super) fn has(&self, point: usize, label: LabelId) -> bool {
        self.0.labels.row(point).0.binary_search(&label.0).is_ok()
    }
}

/// Label texts as points of their labels.
pub(super) struct LabelPoints {
    points: PointSet,
    labels: CsrMatrix,
}

impl LabelPoints {
    /// The labels whose texts have a known word; `points` has one text per label.
    pub(super) fn labels_of(points: &PointSet) -> Vec<usize> {
        let has_words = |label: &usize| !points.features.row(*label).0.is_empty();
        (0..points.len()).filter(has_words).collect()
    }

    /// The texts that have a known word; `points` has one text per label.
    pub(super) fn new(points: &PointSet) -> Self {
        let labels = LabelPoints::labels_of(points);
        let mut rows = CsrBuilder::default();
        labels
            .iter()
            .for_each(|&label| rows.push_row([(label as u32, 1.0)]));
        LabelPoints {
            labels: rows
                .finish(points.len())
                .expect("labels are below their number"),
            points: points.select_rows(&labels),
        }
    }
}

/// Number of the first `n_points` that have each label.
pub(super) fn count_labels(labels: &CsrMatrix, n_points: usize) -> Vec<u32> {
    let mut counts = vec![0; labels.n_cols()];
    let columns = labels.indices()[..labels.indptr()[n_points]].iter();
    columns.for_each(|&label| counts[label as usize] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DataCounts};

    #[test]
    fn half_of_the_near_duplicates_of_held_out_points_train() {
        // Points 2n and 2n + 1 share their words, points n and n + 10 their labels.
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..2000u32 {
            words.push_row([(point / 2, 1.0)]);
            labels.push_row([(point % 10, 1.0)]);
        }
        let points = PointSet::of_features(words.finish(1000).unwrap());
        let labels = labels.finish(10).unwrap();
        let counts = DataCounts {
            n_points: 2000,
            n_labels: 10,
            n_features: 1000,
            n_pairs: 0,
            n_parts: 0,
            embedding_dim: 0,
        };
        let plan = Config::default().resolve(counts).unwrap();
        let split = TrainingSplit::choose(points, &labels, &plan);
        assert_eq!(split.held_out.unwrap().points().len(), 200);
        // A near duplicate that may train can be held out itself.
        let n_set_aside = 2000 - 200 - split.train.points.len();
        assert!((80..=100).contains(&n_set_aside), "{n_set_aside}");
    }
}
