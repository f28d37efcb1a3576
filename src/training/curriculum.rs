//! The points that a model goes on with: new ones, and earlier ones that it must not forget.

use std::borrow::Cow;

use super::split::LabelledPoints;
use crate::data::Dataset;
use crate::error::Result;
use crate::features::PointSet;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};
use crate::predict::{Lessons, Predictor};
use crate::random::Random;

/// Earlier points per new one in the network's epoch.
const EARLIER_PER_NEW: usize = 1;
/// The share of a ranker's losses where earlier points are there to hold against new ones, and the least where the weights
/// alone stand for the label's n earlier points: it is 1/(1 + n) (`docs/experiments.md`).
const SHARE_BESIDE_EARLIER: f32 = 0.5;
const LEAST_SHARE: f32 = 0.1;

/// Points to go on with.
pub(super) struct Curriculum {
    /// The network's: new points and a sample of earlier ones.
    pub(super) network: LabelledPoints<'static>,
    /// The rankers': new points, and earlier ones that have all of their words and pairs.
    pub(super) rankers: LabelledPoints<'static>,
    /// The factor of each label's losses in the rankers.
    pub(super) shares: Vec<f32>,
    /// Labels that get classifiers, the last of all.
    pub(super) n_new_labels: usize,
}

impl Curriculum {
    /// Teaches the model what it can learn at once, and collects the points to train on.
    pub(super) fn take(
        model: &mut Predictor,
        news: &Dataset,
        earlier: Option<&Dataset>,
    ) -> Result<Self> {
        model.meet_labels(news)?;
        let n_before = model.knowledge().neighbours;
        let n_before = n_before.map_or(0, |all| all.n_points());
        let counts = model.label_counts()[..model.n_trained_labels()].to_vec();
        let new = model.lessons_of(news)?;
        model.learn_lessons(&new)?;
        let n_new_labels = model.promote()?;
        // Numbers of labels have changed.
        let mut new = to_learn(model.lessons_of(news)?);
        let corrections = model.lessons_of_corrections(model.learned())?;
        extend(&mut new, to_learn(corrections));
        let n_points = new.points.len();
        let n_labels = model.n_trained_labels();
        let first_new = n_labels - n_new_labels;
        extend(&mut new, model.names_from(first_new)?);
        extend(
            &mut new,
            model.kept_points(&model.kept_with(first_new, n_before))?,
        );
        let seed = model.plan().config().train.seed;
        let (mut network, mut rankers) = (new.clone(), new);
        let shares = match earlier {
            Some(earlier) => {
                let earlier = to_learn(model.lessons_of(&model.known_part(earlier)?)?);
                let rows = sample(earlier.points.len(), EARLIER_PER_NEW * n_points, seed);
                extend(&mut network, earlier.select(&rows));
                extend(&mut rankers, earlier);
                vec![SHARE_BESIDE_EARLIER; n_labels]
            }
            None => {
                let rows = sample(n_before, EARLIER_PER_NEW * n_points, seed);
                extend(&mut network, model.kept_points(&rows)?);
                let mut shares: Vec<f32> = counts.iter().map(share_alone).collect();
                shares.resize(n_labels, 1.0);
                shares
            }
        };
        Ok(Curriculum {
            network: among(network, n_labels)?,
            rankers: among(rankers, n_labels)?,
            shares,
            n_new_labels,
        })
    }
}

/// The factor of the losses of a label that weights alone know so many points of.
fn share_alone(n_points: &u32) -> f32 {
    LEAST_SHARE.max(1.0 / (1 + n_points) as f32)
}

/// A random sample of so many points, ascending.
fn sample(n_points: usize, n_wanted: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n_points).collect();
    Random::new(seed, "earlier points", n_points as u64).shuffle(&mut order);
    order.truncate(n_wanted);
    order.sort_unstable();
    order
}

/// Points with the first labels alone, which have classifiers.
fn among(points: LabelledPoints<'static>, n_labels: usize) -> Result<LabelledPoints<'static>> {
    let first = |label: u32| ((label as usize) < n_labels).then_some(label);
    let targets = points.targets.as_ref();
    Ok(LabelledPoints {
        targets: targets
            .map(|targets| targets.renumbered(n_labels, first))
            .transpose()?,
        labels: Cow::Owned(points.labels.renumbered(n_labels, first)?),
        n_texts: points.points.len(),
        ..points
    })
}

/// Points with what there is to learn from them.
fn to_learn(lessons: Lessons) -> LabelledPoints<'static> {
    let Lessons {
        points,
        accepted,
        rejected,
        weights,
    } = lessons;
    let labels = Cow::Owned(accepted);
    LabelledPoints::to_learn(points, labels, Some(&weights), rejected.as_ref())
}

/// Appends points to others.
fn extend(all: &mut LabelledPoints<'static>, more: LabelledPoints<'static>) {
    let LabelledPoints {
        points,
        labels,
        targets,
        weights,
        ..
    } = more;
    if all.targets.is_some() || targets.is_some() {
        let own = all
            .targets
            .get_or_insert_with(|| all.labels.as_ref().clone());
        own.append(targets.as_ref().unwrap_or(&labels));
    }
    all.points.append(&points);
    all.labels.to_mut().append(&labels);
    all.weights.extend(weights);
}

impl Predictor {
    /// The points of a data set with those of their labels that the model knows.
    fn known_part(&self, data: &Dataset) -> Result<Dataset> {
        let name = |label: u32| data.label_set().name(LabelId(label));
        let known = |label: u32| {
            self.labels()
                .find(name(label))
                .filter(|&own| !self.is_retired(own))
        };
        let labels = data
            .labels()
            .renumbered(self.labels().len(), |label| Some(known(label)?.0))?;
        let part = Dataset::new(
            data.texts().cloned(),
            data.features().cloned(),
            labels,
            self.labels().clone(),
            None,
        )?;
        match data.weights() {
            Some(weights) => part.with_weights(weights.to_vec()),
            None => Ok(part),
        }
    }

    /// The names of the labels with classifiers from one on as points of these, if it learns from names.
    fn names_from(&self, first: usize) -> Result<LabelledPoints<'static>> {
        let n_labels = self.labels().len();
        let (mut rows, mut labels) = (Vec::new(), CsrBuilder::default());
        let mut words = CsrMatrix::new(vec![0], vec![], vec![], self.plan().counts().n_features)?;
        if let Some(names) = self.knowledge().names {
            let has_words = |&label: &usize| !names.words().row(label).0.is_empty();
            rows.extend((first..self.n_trained_labels()).filter(has_words));
            words = names.words().select_rows(&rows);
        }
        for &label in &rows {
            labels.push_row([(label as u32, 1.0)]);
        }
        self.words_alone(words, labels.finish(n_labels)?)
    }

    /// Points of which the words are known, and nothing else.
    fn words_alone(
        &self,
        features: CsrMatrix,
        labels: CsrMatrix,
    ) -> Result<LabelledPoints<'static>> {
        let (counts, n_points) = (self.plan().counts(), features.n_rows());
        let empty = |n_cols: usize| CsrMatrix::new(vec![0; n_points + 1], vec![], vec![], n_cols);
        let empty = |n_cols: usize| (n_cols > 0).then(|| empty(n_cols)).transpose();
        let points = PointSet {
            pairs: empty(counts.n_pairs)?,
            unseen: empty(counts.n_parts)?,
            ..PointSet::of_features(features)
        };
        Ok(LabelledPoints::to_learn(
            points,
            Cow::Owned(labels),
            None,
            None,
        ))
    }

    /// The first rows of the index of training points that have a label from one on.
    fn kept_with(&self, first: usize, n_rows: usize) -> Vec<usize> {
        let neighbours = self.knowledge().neighbours;
        let has_label = |row: &usize| {
            let labels = neighbours.map(|all| all.labels_of(*row));
            labels
                .and_then(<[u32]>::last)
                .is_some_and(|&last| first <= last as usize)
        };
        (0..n_rows).filter(has_label).collect()
    }

    /// Points as the index of training points has them.
    fn kept_points(&self, rows: &[usize]) -> Result<LabelledPoints<'static>> {
        let n_words = self.plan().counts().n_features;
        let mut words = CsrBuilder::default();
        let Some(neighbours) = self.knowledge().neighbours else {
            let none = CsrMatrix::new(vec![0], vec![], vec![], self.labels().len())?;
            return self.words_alone(words.finish(n_words)?, none);
        };
        let all = neighbours.whole();
        let ids: Vec<u32> = rows.iter().map(|&row| row as u32).collect();
        for row in all.postings.words_of(&ids) {
            words.push_row(row);
        }
        let labels = all.labels.with_n_cols(self.labels().len())?;
        self.words_alone(words.finish(n_words)?, labels.select_rows(rows))
    }
}
