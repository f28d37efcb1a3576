//! A model that goes on learning from new points, without training from the start.
//!
//! Similar texts are compared with the new points at once. Labels that the members do not know get rows of W_L and edges
//! of A. The network then goes on for one epoch over the new points and as many earlier ones, so that it does not forget
//! those, and the rankers are fitted to the new points, drawn to the weights that they have. Earlier points come from data
//! that is given, which the rankers read, too, or from the index of training points: their words, without those of many texts
//! and without pairs.
//! Final scorers and probabilities stay: of points that members were trained on, they would learn too much trust.

use super::curriculum::Curriculum;
use super::rerank::RankerFit;
use crate::candidates::{EncodedPoints, Level, Member};
use crate::clustering::Clustering;
use crate::communicator::SingleProcess;
use crate::config::{EncoderKind, LearningRates, Plan, StagePlan};
use crate::data::Dataset;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::ids::{ClusterId, LabelId, Scored};
use crate::matrix::top_k;
use crate::model::{Model, NewLabel, grown};
use crate::predict::{CHUNK, Predictor};
use crate::ranker::Ranker;
use crate::train::{InitialNetwork, TrainingData};

/// The share of stage 2's learning rates.
const RATE: f32 = 0.5;
/// Steps from which on the whole of it is taken.
const N_STEPS: usize = 10;
/// Clusters that lead to a new label.
const N_EDGES: usize = 8;
/// Log-odds of a new label for the mean of its points, and its bias before that.
const LOGIT: f32 = 2.0;
const BIAS: f32 = -4.0;
/// The least count that the weight of an edge starts from.
const UNMET: f32 = 1e-3;

/// Counts of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// New points.
    pub n_points: usize,
    /// Corrections since the model was written.
    pub n_corrections: usize,
    /// Labels that got classifiers.
    pub n_new_labels: usize,
}

impl From<Updated> for Event {
    fn from(updated: Updated) -> Self {
        let Updated {
            n_points,
            n_corrections,
            n_new_labels,
        } = updated;
        Event::Updated {
            n_points,
            n_corrections,
            n_new_labels,
        }
    }
}

impl Predictor {
    /// Goes on learning from new points, and from the corrections since the model was written. Labels that it does not
    /// know are new ones. With the earlier training data, the rankers hold the new points against all earlier ones.
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
        self.note_points(news, updated.into());
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

/// The lessons of a member that goes on.
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
        let network = InitialNetwork {
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
        let all = &self.lessons.network;
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
    fn network(&self, network: InitialNetwork) -> Result<InitialNetwork> {
        let (all, plan) = (&self.lessons.network, self.plan);
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
        network.go_on(data, plan, gentle(stage, all.points.len()), self.observer)
    }

    /// The ranker after more points.
    fn ranker(&self, member: &Member, earlier: &Ranker) -> Result<Option<Ranker>> {
        let fit = RankerFit {
            member,
            points: &self.lessons.rankers,
            plan: self.plan,
            observer: self.observer,
            communicator: &SingleProcess,
        };
        fit.after(earlier, &self.lessons.shares)
    }
}

fn add(sums: &mut [f32], values: impl Iterator<Item = f32>) {
    sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
}

/// A stage with lower rates, the lower the fewer steps there are for so many points: AdamW knows no row yet, and its first
/// steps are large.
fn gentle(stage: StagePlan, n_points: usize) -> StagePlan {
    let share = RATE * (n_points as f32 / (N_STEPS * stage.batch_size) as f32).min(1.0);
    let LearningRates {
        encoder,
        labels,
        clusters,
        edges,
    } = stage.rates;
    StagePlan {
        rates: LearningRates {
            encoder: share * encoder,
            labels: share * labels,
            clusters: share * clusters,
            edges: share * edges,
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
