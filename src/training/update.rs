//! A model that goes on learning from new points, without training from the start.
//!
//! Similar texts are compared with the new points at once. Labels that the members do not know get rows of W_L and edges
//! of A. The network then goes on for one epoch over the new points and as many earlier ones, so that it does not forget
//! those, and the rankers are fitted to the new points, drawn to the weights that they have. Earlier points come from data
//! that is given, or from the index of training points: their words, without those of many texts and without pairs.
//! Final scorers and probabilities stay: of points that members were trained on, they would learn too much trust.

use std::borrow::Cow;

use super::rerank::RankerFit;
use super::split::LabelledPoints;
use crate::candidates::{EncodedPoints, Level, Member};
use crate::clustering::Clustering;
use crate::communicator::SingleProcess;
use crate::config::{EncoderKind, LearningRates, Plan, StagePlan};
use crate::data::Dataset;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::events::Observer;
use crate::features::PointSet;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::matrix::{CsrBuilder, CsrMatrix, top_k};
use crate::model::{Model, NewLabel, grown};
use crate::predict::{CHUNK, Lessons, Predictor};
use crate::random::Random;
use crate::ranker::Ranker;
use crate::train::{TrainedNetwork, TrainingData};

/// Earlier points per new one in the network's epoch.
const EARLIER_PER_NEW: usize = 1;
/// The share of stage 2's learning rates.
const RATE: f32 = 0.5;
/// Clusters that lead to a new label.
const N_EDGES: usize = 8;
/// Log-odds of a new label for the mean of its points, and its bias before that.
const LOGIT: f32 = 2.0;
const BIAS: f32 = -4.0;
/// The least count that the weight of an edge starts from.
const UNMET: f32 = 1e-3;

/// What an update was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// New points.
    pub n_points: usize,
    /// Corrections since the model was written.
    pub n_corrections: usize,
    /// Labels that got classifiers.
    pub n_new_labels: usize,
}

impl Predictor {
    /// Goes on learning from new points, and from the corrections since the model was written. Labels that it does not
    /// know are new ones. With the earlier training data, the rankers are trained from the start on all points, and the
    /// network does not forget.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if the model cannot go on: a transformer, one with embeddings of texts, one that keeps stage
    /// 1 or from which edges were removed; as [`Predictor::learn`] and [`Trainer::train`](crate::Trainer::train).
    pub fn update(
        mut self,
        news: &Dataset,
        earlier: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<(Predictor, Updated)> {
        self.check_can_go_on()?;
        let lessons = Curriculum::take(&mut self, news, earlier)?;
        let updated = Updated {
            n_points: news.n_points(),
            n_corrections: self.learned().len(),
            n_new_labels: lessons.n_new_labels,
        };
        let mut members = Vec::new();
        for (number, member) in self.take_members().into_iter().enumerate() {
            let going_on = GoingOn {
                plan: &self.plan().of_member(number),
                lessons: &lessons,
                observer,
            };
            members.push(going_on.member(member)?);
        }
        self.set_members(members)?;
        self.note_points(news);
        Ok((self, updated))
    }

    fn check_can_go_on(&self) -> Result<()> {
        let fails = |problem: &str| {
            Err(Error::CannotTrain(format!(
                "the model cannot go on: {problem}"
            )))
        };
        if self.plan().config().encoder.kind == EncoderKind::Transformer {
            return fails("its encoder is a transformer");
        }
        if self.plan().counts().embedding_dim > 0 {
            return fails("it reads embeddings of texts");
        }
        for member in self.members() {
            if member.stage1.whole.is_some() {
                return fails("it keeps stage 1 (train.keep_stage1)");
            }
            if member.model.adjacency.removed().is_some() {
                return fails("edges were removed from it (elias prune)");
            }
        }
        Ok(())
    }
}

/// Points to go on with.
struct Curriculum {
    /// New points, then earlier ones.
    all: LabelledPoints<'static>,
    /// Those of them that have all of their words and pairs: the rankers read these.
    n_whole: usize,
    /// Whether they include all earlier points.
    is_complete: bool,
    n_new_labels: usize,
}

impl Curriculum {
    /// Teaches the model what it can learn at once, and collects the points to train on.
    fn take(model: &mut Predictor, news: &Dataset, earlier: Option<&Dataset>) -> Result<Self> {
        model.meet_labels(news)?;
        let n_before = model.knowledge().neighbours.map_or(0, |all| all.n_points());
        let new = model.lessons_of(news)?;
        model.learn_lessons(&new)?;
        // Numbers of labels change.
        let n_new_labels = model.promote()?;
        let new = model.lessons_of(news)?;
        let corrections = model.lessons_of_corrections(model.learned())?;
        let mut all = to_learn(new, news.weights());
        extend(&mut all, to_learn(corrections, None));
        let n_new = all.points.len();
        let seed = model.plan().config().train.seed;
        if let Some(earlier) = earlier {
            let known = model.known_part(earlier)?;
            extend(
                &mut all,
                to_learn(model.lessons_of(&known)?, known.weights()),
            );
        } else {
            let first_new_label = model.n_trained_labels() - n_new_labels;
            let rows = sample(
                model,
                n_before,
                EARLIER_PER_NEW * n_new,
                first_new_label,
                seed,
            );
            extend(&mut all, model.kept_points(&rows)?);
        }
        let n_whole = if earlier.is_some() {
            all.points.len()
        } else {
            n_new
        };
        let n_labels = model.n_trained_labels();
        let trained = |label: u32| ((label as usize) < n_labels).then_some(label);
        let targets = all.targets.as_ref();
        let all = LabelledPoints {
            n_texts: all.points.len(),
            targets: targets
                .map(|targets| targets.renumbered(n_labels, trained))
                .transpose()?,
            labels: Cow::Owned(all.labels.renumbered(n_labels, trained)?),
            ..all
        };
        Ok(Curriculum {
            all,
            n_whole,
            is_complete: earlier.is_some(),
            n_new_labels,
        })
    }
}

/// Rows of the index of training points: a random sample, and those that have a label without classifiers.
fn sample(
    model: &Predictor,
    n_rows: usize,
    n_wanted: usize,
    first_new_label: usize,
    seed: u64,
) -> Vec<u32> {
    let Some(neighbours) = model.knowledge().neighbours else {
        return Vec::new();
    };
    let mut order: Vec<u32> = (0..n_rows as u32).collect();
    Random::new(seed, "earlier points", n_rows as u64).shuffle(&mut order);
    let has_new_label = |row: &u32| {
        let labels = neighbours.labels_of(*row as usize);
        labels
            .last()
            .is_some_and(|&label| first_new_label <= label as usize)
    };
    let (mut rows, others): (Vec<u32>, Vec<u32>) = order.into_iter().partition(has_new_label);
    rows.extend(others.into_iter().take(n_wanted));
    rows.sort_unstable();
    rows
}

/// Points with what there is to learn from them.
fn to_learn(lessons: Lessons, weights: Option<&[f32]>) -> LabelledPoints<'static> {
    let Lessons {
        points,
        accepted,
        rejected,
    } = lessons;
    LabelledPoints::to_learn(points, Cow::Owned(accepted), weights, rejected.as_ref())
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

    /// Points as the index of training points has them.
    fn kept_points(&self, rows: &[u32]) -> Result<LabelledPoints<'static>> {
        let neighbours = self.knowledge().neighbours.expect("there are rows of it");
        let all = neighbours.whole();
        let counts = self.plan().counts();
        let mut words = CsrBuilder::default();
        for row in all.postings.words_of(rows) {
            words.push_row(row);
        }
        let empty = |n_cols: usize| CsrMatrix::new(vec![0; rows.len() + 1], vec![], vec![], n_cols);
        let features = words.finish(counts.n_features)?;
        let points = PointSet {
            pairs: (counts.n_pairs > 0)
                .then(|| empty(counts.n_pairs))
                .transpose()?,
            unseen: (counts.n_parts > 0)
                .then(|| empty(counts.n_parts))
                .transpose()?,
            ..PointSet::of_features(features)
        };
        let rows: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
        let labels = all
            .labels
            .with_n_cols(self.labels().len())?
            .select_rows(&rows);
        Ok(LabelledPoints::to_learn(
            points,
            Cow::Owned(labels),
            None,
            None,
        ))
    }
}

/// What a member goes on with.
struct GoingOn<'a> {
    plan: &'a Plan,
    lessons: &'a Curriculum,
    observer: &'a dyn Observer,
}

impl GoingOn<'_> {
    /// A member that knows the new labels and points.
    fn member(&self, mut member: Member) -> Result<Member> {
        self.grow(&mut member)?;
        let clusters = member.cluster_of();
        let clusters = clusters.unwrap_or_else(|| vec![ClusterId(0); self.plan.counts().n_labels]);
        let n_clusters = clusters.iter().map(|cluster| cluster.idx() + 1).max();
        let network = TrainedNetwork {
            clustering: Clustering::new(clusters, n_clusters.unwrap_or(1))?,
            model: member.model,
            encoder: member.encoder,
        };
        let trained = self.network(network)?;
        let precision = self.plan.config().train.precision;
        let (mut encoder, ranker) = (trained.encoder, member.ranker.take());
        encoder.narrow(precision);
        let mut member = Member {
            encoder,
            model: Model {
                classifiers: trained.model.classifiers.into_inference(precision),
                ..trained.model
            },
            ranker: None,
            final_scorer: member.final_scorer,
            stage1: member.stage1,
        };
        member.ranker = match ranker {
            Some(ranker) => self.ranker(&member, &ranker)?,
            None => None,
        };
        Ok(member)
    }

    /// Gives the new labels rows of W_L and edges.
    fn grow(&self, member: &mut Member) -> Result<()> {
        let labels = self.new_labels(member)?;
        member.model.grow(&labels)?;
        if let Some(edges) = &mut member.stage1.edges {
            *edges = grown(edges, labels.iter().map(|label| &label.edges[..1]))?;
        }
        Ok(())
    }

    fn new_labels(&self, member: &Member) -> Result<Vec<NewLabel>> {
        let all = &self.lessons.all;
        let n_labels = all.labels.n_cols();
        let first = n_labels - self.lessons.n_new_labels;
        let points_of = all.labels.transpose_columns(first..n_labels);
        let network = member.network(Level::Stage2);
        let (dim, n_clusters) = (network.encoder.dim(), network.model.clusters.n_clusters());
        let mut encoded = EncodedPoints::default();
        let mut labels = Vec::with_capacity(self.lessons.n_new_labels);
        for label in 0..points_of.n_rows() {
            let points = points_of.row(label).0;
            let (mut mean, mut counts) = (vec![0.0; dim], vec![0.0; n_clusters]);
            for points in points.chunks(CHUNK) {
                network.encode(all.points.points(), points, &mut encoded)?;
                for place in 0..points.len() {
                    let point = encoded.get(place);
                    add(&mut mean, point.embedding.iter().copied());
                    let scores = point.clusters.iter();
                    add(
                        &mut counts,
                        scores.map(|&p| network.model.clusters.score(p)),
                    );
                }
            }
            let n_points = points.len().max(1) as f32;
            mean.iter_mut().for_each(|x| *x /= n_points);
            labels.push(new_label(&mean, &counts));
        }
        Ok(labels)
    }

    /// The network after an epoch over all lessons.
    fn network(&self, network: TrainedNetwork) -> Result<TrainedNetwork> {
        let (all, plan) = (&self.lessons.all, self.plan);
        let data = TrainingData {
            points: all.points.points(),
            n_texts: all.n_texts,
            labels: &all.labels,
            targets: all.targets.as_ref(),
            point_weights: &all.weights,
            validation: None,
            held_out: None,
            origin: &EncoderOrigin::Bag,
            communicator: &SingleProcess,
            max_steps: None,
        };
        let stage = plan.stages().pop().expect("there is a last stage");
        network.go_on(data, plan, gentle(stage), self.observer)
    }

    /// The ranker after the new points; one from the start where all earlier ones are there.
    fn ranker(&self, member: &Member, earlier: &Ranker) -> Result<Option<Ranker>> {
        let whole: Vec<usize> = (0..self.lessons.n_whole).collect();
        let fit = RankerFit {
            member,
            points: &self.lessons.all.select(&whole),
            plan: self.plan,
            observer: self.observer,
            communicator: &SingleProcess,
        };
        if self.lessons.is_complete {
            fit.train()
        } else {
            fit.after(earlier)
        }
    }
}

fn add(sums: &mut [f32], values: impl Iterator<Item = f32>) {
    sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
}

/// A stage with lower rates.
fn gentle(stage: StagePlan) -> StagePlan {
    let LearningRates {
        encoder,
        labels,
        clusters,
        edges,
    } = stage.rates;
    StagePlan {
        rates: LearningRates {
            encoder: RATE * encoder,
            labels: RATE * labels,
            clusters: RATE * clusters,
            edges: RATE * edges,
        },
        ..stage
    }
}

/// A label whose points have this mean embedding, for which it is likely, and these sums of the scores of clusters.
fn new_label(mean: &[f32], counts: &[f32]) -> NewLabel {
    let square: f32 = mean.iter().map(|x| x * x).sum();
    let scale = (LOGIT - BIAS) / square.max(f32::MIN_POSITIVE);
    let scores = counts.iter().zip(0..);
    let scores = scores.map(|(&score, cluster)| Scored {
        label: LabelId(cluster),
        score,
    });
    let mut best: Vec<Scored> = scores.collect();
    top_k(&mut best, N_EDGES);
    NewLabel {
        weights: mean.iter().map(|x| scale * x).collect(),
        bias: BIAS,
        edges: best
            .iter()
            .map(|of| (ClusterId(of.label.0), of.score.max(UNMET).ln()))
            .collect(),
    }
}
