//! Which points train and which calibrate.
//!
//! [`HeldOut`] points are made only here, and calibration takes nothing else: no point both trains a member and
//! calibrates it. They are taken out of the training points, or given by the user and compared with them. Of small
//! data a tenth is too little to learn from: there the points take turns, fold by fold, and other members are trained
//! for each fold.

use std::borrow::Cow;

use crate::config::{Plan, Refit};
use crate::data::{Alone, HoldOut, HoldOutRules};
use crate::events::Event;
use crate::features::PointSet;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};
use crate::train::ValidationPoints;

/// Cosine above which near duplicates are no longer looked for when too few points can be held out.
const MAX_RELAXED: f32 = 0.97;

/// Points with their labels.
#[derive(Clone)]
pub(super) struct LabelledPoints<'a> {
    pub(super) points: PointSet,
    pub(super) labels: Cow<'a, CsrMatrix>,
    /// The labels, and with a negative value those that were rejected, if any were.
    pub(super) targets: Option<CsrMatrix>,
    /// The factor of each point's losses.
    pub(super) weights: Vec<f32>,
    /// Those that are texts of the data; label texts come after them.
    pub(super) n_texts: usize,
}

/// Points that train nothing before calibration is done.
pub(super) struct HeldOut<'a>(LabelledPoints<'a>);

/// Points to calibrate on, beside those that train for it.
pub(super) struct Fold<'a> {
    /// Points to train on.
    pub(super) train: LabelledPoints<'a>,
    /// Points to calibrate on.
    pub(super) held_out: HeldOut<'a>,
}

/// Which time the members are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// On the points that are not held out of this fold.
    Fold(usize),
    /// On all points, once calibration is done.
    All,
}

/// The training data, divided.
pub(super) struct TrainingSplit<'a> {
    /// Folds to calibrate on: none, one, or several of which every labelled point is in one.
    pub(super) folds: Vec<Fold<'a>>,
    /// All points.
    pub(super) all: LabelledPoints<'a>,
    /// The part of the members that is trained on all points once calibration is done.
    pub(super) refit: Refit,
    /// How points were found to calibrate on, if that is worth saying.
    pub(super) decision: Option<Event>,
}

impl<'a> TrainingSplit<'a> {
    /// Divides the points; the same for all members. The vocabulary has `n_unused` labels that no point has.
    pub(super) fn choose(all: LabelledPoints<'a>, n_unused: usize, plan: &Plan) -> Self {
        let mut split = TrainingSplit {
            folds: Vec::new(),
            all,
            refit: Refit::Everything,
            decision: None,
        };
        if plan.recipe().final_score.is_fitted() {
            split.hold_out(n_unused, plan);
        }
        split
    }

    /// Holds points out: a tenth, fewer of their near duplicates set aside if there are too few otherwise, or all of them
    /// in turns.
    fn hold_out(&mut self, n_unused: usize, plan: &Plan) {
        let (config, cosine) = (plan.config(), plan.recipe().near_duplicates);
        let n_needed = config.hold_out.min_points.max(1);
        let LabelledPoints { points, labels, .. } = &self.all;
        // What an unused label is worth is learned from labels that lose their last point, which are learned themselves
        // when all points train. Elsewhere the final score is worse for it.
        let loses_labels = 0 < n_unused && plan.refit() != Refit::Nothing;
        let points_per_label = usize::from(!loses_labels);
        let choose = |cosine| {
            let rules = HoldOutRules {
                cosine,
                alone: Alone::EveryOther,
                points_per_label,
            };
            HoldOut::choose(&points.features, labels, config, rules)
        };
        let first = choose(cosine);
        let n_before = first.held_out.len();
        let (mut chosen, mut relaxed) = (first, cosine);
        let may_be_enough = config.hold_out.most_points(plan.counts().n_points) >= n_needed;
        while may_be_enough && chosen.held_out.len() < n_needed && relaxed <= 1.0 {
            relaxed = match (1.0 + relaxed) / 2.0 {
                closer if closer <= MAX_RELAXED => closer,
                _ => 2.0,
            };
            chosen = choose(relaxed);
        }
        let n_points = chosen.held_out.len();
        if n_points >= n_needed {
            self.decision = (relaxed != cosine).then_some(Event::NearDuplicatesRelaxed {
                n_before,
                n_points,
                cosine: (relaxed <= 1.0).then_some(relaxed),
            });
            self.folds = vec![self.fold(&chosen)];
            self.refit = plan.refit();
        } else if let Some(n_folds) = plan.n_folds() {
            let labelled = HoldOut::folds(&points.features, labels, config, n_folds);
            self.decision = Some(Event::CrossFitting {
                n_points: labelled.iter().map(|fold| fold.held_out.len()).sum(),
                n_folds,
            });
            self.folds = labelled.iter().map(|fold| self.fold(fold)).collect();
        } else {
            let n_all = plan.counts().n_points;
            let (n_points, n_needed) = match plan.min_points_of_folds() {
                // In folds, each of them could be.
                Some(n_needed) if n_all < n_needed => (n_all, n_needed),
                _ => (n_points, n_needed),
            };
            self.decision = Some(Event::CalibrationSkipped { n_points, n_needed });
        }
    }

    fn fold(&self, chosen: &HoldOut) -> Fold<'a> {
        Fold {
            train: self.all.select(&chosen.train),
            held_out: HeldOut(self.all.select(&chosen.held_out)),
        }
    }

    /// Adds label texts to the points that train.
    pub(super) fn add(&mut self, label_texts: &LabelPoints) {
        let of_folds = self.folds.iter_mut().map(|fold| &mut fold.train);
        for points in of_folds.chain([&mut self.all]) {
            points.points.append(&label_texts.points);
            points.labels.to_mut().append(&label_texts.labels);
            if let Some(targets) = &mut points.targets {
                targets.append(&label_texts.labels);
            }
            points.weights.resize(points.points.len(), 1.0);
        }
    }

    /// The times that the networks of the members are trained, in their order.
    pub(super) fn passes(&self) -> impl Iterator<Item = Pass> + use<> {
        let again = (self.refit == Refit::Everything).then_some(Pass::All);
        (0..self.folds.len()).map(Pass::Fold).chain(again)
    }

    /// The points that members are trained on in a pass.
    pub(super) fn points(&self, pass: Pass) -> &LabelledPoints<'a> {
        match pass {
            Pass::Fold(fold) => &self.folds[fold].train,
            Pass::All => &self.all,
        }
    }
}

/// The labels of some of the points; the others lose theirs.
fn labels_of<'a>(is_learned: &[bool], labels: Cow<'a, CsrMatrix>) -> Cow<'a, CsrMatrix> {
    if !is_learned.contains(&false) {
        return labels;
    }
    let mut kept = CsrBuilder::default();
    for (point, &is_learned) in is_learned.iter().enumerate() {
        let (columns, values) = labels.row(point);
        let row = columns.iter().copied().zip(values.iter().copied());
        kept.push_row(row.filter(|_| is_learned));
    }
    let kept = kept.finish(labels.n_cols());
    Cow::Owned(kept.expect("columns of a matrix are below their number"))
}

/// Labels, and with a negative value those that were rejected for a point that has labels: of the others nothing is known.
fn with_rejected(labels: &CsrMatrix, rejected: &CsrMatrix) -> CsrMatrix {
    let (mut targets, mut row) = (CsrBuilder::default(), Vec::new());
    for point in 0..labels.n_rows() {
        row.clear();
        let (columns, values) = labels.row(point);
        row.extend(columns.iter().copied().zip(values.iter().copied()));
        if !row.is_empty() {
            row.extend(rejected.row(point).0.iter().map(|&label| (label, -1.0)));
            row.sort_unstable_by_key(|entry| entry.0);
        }
        targets.push_row(row.drain(..));
    }
    let targets = targets.finish(labels.n_cols());
    targets.expect("no label is both accepted and rejected")
}

impl<'a> LabelledPoints<'a> {
    /// Texts with labels that count alike.
    pub(super) fn new(points: PointSet, labels: Cow<'a, CsrMatrix>) -> Self {
        LabelledPoints {
            targets: None,
            weights: vec![1.0; points.len()],
            n_texts: points.len(),
            points,
            labels,
        }
    }

    /// Texts with what there is to learn from them: nothing from those without a known word, and from those without
    /// weight; weights are 1 if none are given.
    pub(super) fn to_learn(
        points: PointSet,
        labels: Cow<'a, CsrMatrix>,
        weights: Option<&[f32]>,
        rejected: Option<&CsrMatrix>,
    ) -> Self {
        let n_points = points.len();
        let weights = weights.map_or(vec![1.0; n_points], <[f32]>::to_vec);
        let is_learned: Vec<bool> = (0..n_points)
            .map(|point| !points.is_blank(point) && 0.0 < weights[point])
            .collect();
        let labels = labels_of(&is_learned, labels);
        LabelledPoints {
            targets: rejected.map(|rejected| with_rejected(&labels, rejected)),
            weights,
            ..LabelledPoints::new(points, labels)
        }
    }

    /// Some of the points, in this order.
    pub(super) fn select(&self, points: &[usize]) -> LabelledPoints<'a> {
        LabelledPoints {
            points: self.points.select_rows(points),
            labels: Cow::Owned(self.labels.select_rows(points)),
            targets: self.targets.as_ref().map(|all| all.select_rows(points)),
            weights: points.iter().map(|&point| self.weights[point]).collect(),
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
        let labels = Cow::Owned(labels.select_rows(&chosen));
        HeldOut(LabelledPoints::new(points.select_rows(&chosen), labels))
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

    /// The factor of a point's losses.
    pub(super) fn weight(&self, point: usize) -> f32 {
        self.0.weights[point]
    }

    /// The labels of a point, ascending.
    pub(super) fn labels(&self, point: usize) -> Vec<LabelId> {
        let labels = self.0.labels.row(point).0.iter();
        labels.map(|&label| LabelId(label)).collect()
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

    /// Points of which so many in a row share their words, with labels that are shared by every tenth.
    fn data(n_points: u32, n_alike: u32) -> LabelledPoints<'static> {
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..n_points {
            words.push_row([(point / n_alike, 1.0)]);
            labels.push_row([(point % 10, 1.0)]);
        }
        let points = PointSet::of_features(words.finish(n_points as usize).unwrap());
        LabelledPoints::new(points, Cow::Owned(labels.finish(10).unwrap()))
    }

    fn plan(n_points: usize, setting: &str) -> Plan {
        let counts = DataCounts {
            n_points,
            n_labels: 10,
            n_features: n_points,
            n_pairs: 0,
            n_parts: 0,
            embedding_dim: 0,
        };
        let config = Config::default().with_value(setting).unwrap();
        config.resolve(counts).unwrap()
    }

    #[test]
    fn half_of_the_near_duplicates_of_held_out_points_train() {
        let split = TrainingSplit::choose(data(2000, 2), 0, &plan(2000, "hold_out.folds=5"));
        let [fold] = &split.folds[..] else { panic!() };
        assert_eq!(fold.held_out.points().len(), 200);
        // A near duplicate that may train can be held out itself.
        let n_set_aside = 2000 - 200 - fold.train.points.len();
        assert!((80..=100).contains(&n_set_aside), "{n_set_aside}");
        assert_eq!(split.decision, None);
    }

    #[test]
    fn near_duplicates_train_where_too_few_points_could_be_held_out_otherwise() {
        // Groups are larger than all that may be set aside.
        let split = TrainingSplit::choose(data(2000, 500), 0, &plan(2000, "hold_out.folds=5"));
        let [fold] = &split.folds[..] else { panic!() };
        assert_eq!(fold.held_out.points().len(), 200);
        assert_eq!(fold.train.points.len(), 1800);
        let relaxed = Event::NearDuplicatesRelaxed {
            n_before: 0,
            n_points: 200,
            cosine: None,
        };
        assert_eq!(split.decision, Some(relaxed));
    }

    #[test]
    fn points_of_small_data_are_held_out_in_turns() {
        let split = TrainingSplit::choose(data(300, 2), 0, &plan(300, "hold_out.folds=5"));
        assert_eq!(split.folds.len(), 5);
        let sizes = split.folds.iter().map(|fold| fold.held_out.points().len());
        assert_eq!(sizes.collect::<Vec<_>>(), [60; 5]);
        let passes: Vec<Pass> = split.passes().collect();
        assert_eq!(passes.len(), 6);
        assert_eq!(split.points(passes[5]).points.len(), 300);
        for fold in &split.folds {
            assert_eq!(fold.train.points.len(), 240);
            // Near duplicates of a point are in its fold.
            let words = |points: &PointSet| points.features.indices().to_vec();
            let (held_out, train) = (words(fold.held_out.points()), words(&fold.train.points));
            let n_known = held_out.iter().filter(|word| train.contains(word)).count();
            assert!(n_known < 40, "{n_known} of 60");
        }
        let found = split.decision;
        let (n_points, n_folds) = (300, 5);
        assert_eq!(found, Some(Event::CrossFitting { n_points, n_folds }));
    }

    #[test]
    fn nothing_is_held_out_of_too_little_or_where_that_is_switched_off() {
        for (n_points, setting, (n_could, n_needed)) in [
            (49, "hold_out.folds=5", (49, 50)),
            (300, "hold_out.folds=0", (30, 100)),
        ] {
            let plan = plan(n_points as usize, setting);
            let split = TrainingSplit::choose(data(n_points, 1), 0, &plan);
            assert_eq!(split.passes().collect::<Vec<_>>(), [Pass::All]);
            let skipped = Event::CalibrationSkipped {
                n_points: n_could,
                n_needed,
            };
            assert_eq!(split.decision, Some(skipped));
        }
    }

    #[test]
    fn labels_lose_their_last_point_only_for_unused_ones_and_if_they_are_learned_afterwards() {
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..2000u32 {
            words.push_row([(point, 1.0)]);
            labels.push_row([(point % 1500, 1.0)]);
        }
        let points = PointSet::of_features(words.finish(2000).unwrap());
        let all = LabelledPoints::new(points, Cow::Owned(labels.finish(1500).unwrap()));
        let n_lost = |refit, n_unused| {
            let plan = plan(2000, &format!("hold_out.refit=\"{refit}\""));
            let split = TrainingSplit::choose(all.clone(), n_unused, &plan);
            let [fold] = &split.folds[..] else { panic!() };
            let counts = fold.train.label_counts();
            counts.iter().filter(|&&count| count == 0).count()
        };
        assert_eq!(n_lost("nothing", 1), 0);
        assert_eq!(n_lost("everything", 0), 0);
        assert!(50 < n_lost("ranker", 1));
        assert!(50 < n_lost("everything", 1));
    }

    #[test]
    fn a_text_without_a_known_word_or_without_weight_teaches_no_label() {
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        words.push_row([(0, 1.0)]);
        words.push_row([]);
        (0..2).for_each(|label| labels.push_row([(label, 1.0)]));
        words.push_row([(0, 1.0)]);
        labels.push_row([(0, 1.0)]);
        let points = PointSet::of_features(words.finish(1).unwrap());
        let labels = labels.finish(2).unwrap();
        let weights = [2.0, 1.0, 0.0];
        let all = LabelledPoints::to_learn(points, Cow::Owned(labels), Some(&weights), None);
        let split = TrainingSplit::choose(all, 0, &plan(1, "hold_out.folds=5"));
        assert_eq!(split.all.labels.row(0).0, [0]);
        assert_eq!(split.all.labels.row(1).0, [0u32; 0]);
        assert_eq!(split.all.labels.row(2).0, [0u32; 0]);
        assert_eq!(split.all.weights, [2.0, 1.0, 0.0]);
    }
}
