//! Training: stage 1 on fixed clusters, the adjacency, stage 2 end to end (paper, Section 3.4).
//!
//! [`train_from`] reads as the paper's recipe. `stage` is the loop of steps both stages share, `head` one step of
//! the index and the classifiers. Nothing here knows what runs inside the encoder.

mod adjacency;
mod chosen;
pub(crate) mod head;
mod matches;
mod memory;
mod stage;
mod stage1;
mod state;
mod step;
mod update;
mod validation;

pub(crate) use memory::{ParameterCounts, StepSizes, match_bytes};
pub(crate) use state::{
    Array, Boundary, EpochSums, Keep, NamedArray, Position, Spread, StateParts, TrainState,
};

use std::ops::Range;

use rayon::prelude::*;

use crate::classifiers::LabelClassifiers;
use crate::clustering::{Clustering, PointFeatures, cluster_labels, label_centroids};
use crate::communicator::Communicator;
use crate::config::{LabelStart, Plan, StagePlan};
use crate::encoder::{EncoderOrigin, TrainableEncoder};
use crate::error::Result;
use crate::events::{Event, Observer, Phase, Steps, emit};
use crate::features::Points;
use crate::ids::LabelId;
use crate::index::{Adjacency, ClusterClassifiers, Edges};
use crate::matrix::{CsrMatrix, Matrix};
use crate::model::{Model, Numbering, Stage1};
use crate::random::Random;

use adjacency::{EdgeOptions, InitialAdjacency, initial_adjacency};
use head::EdgeState;
use stage::Numbered;
use stage::Stage;
pub(crate) use stage::points_per_epoch;

/// Points that are predicted every few epochs.
#[derive(Clone, Copy)]
pub(crate) struct ValidationPoints<'a> {
    /// The points.
    pub points: Points<'a>,
    /// Their labels.
    pub labels: &'a CsrMatrix,
    /// Pairs of a point and a label that do not count.
    pub filter: &'a [(usize, LabelId)],
}

/// The input of a training.
#[derive(Clone, Copy)]
pub(crate) struct TrainingData<'a> {
    /// The points.
    pub points: Points<'a>,
    /// Those that are texts of the data; label texts come after them.
    pub n_texts: usize,
    /// Y, N×L.
    pub labels: &'a CsrMatrix,
    /// The same with a negative value for labels that were rejected, if any were.
    pub targets: Option<&'a CsrMatrix>,
    /// The factor of each point's losses, N.
    pub point_weights: &'a [f32],
    /// Points to validate on.
    pub validation: Option<ValidationPoints<'a>>,
    /// Held-out points by which the best epoch is chosen.
    pub held_out: Option<ValidationPoints<'a>>,
    /// Start of the encoder.
    pub origin: &'a EncoderOrigin,
    /// The processes that train together.
    pub communicator: &'a dyn Communicator,
    /// The most steps of an epoch, which then leaves out points; for measurements.
    pub max_steps: Option<usize>,
}

impl TrainingData<'_> {
    /// The labels whose rows of W_L this process trains.
    fn own_labels(&self) -> Range<usize> {
        self.communicator.own_labels(self.labels.n_cols())
    }
}

/// The result of a training.
pub(crate) struct Trained {
    /// Index and classifiers after stage 2; of W_L and A what the process owns.
    pub model: Model,
    /// The encoder after stage 2.
    pub encoder: Box<dyn TrainableEncoder>,
    /// The part of stage 1 that is kept.
    pub stage1: Stage1,
    /// Epochs, validations and the adjacency.
    pub history: Vec<Event>,
}

impl Trained {
    fn new(mut state: TrainState, plan: &Plan, origin: &EncoderOrigin) -> Result<Self> {
        Ok(Trained {
            stage1: stage1::take_stage1(&mut state, plan, origin)?,
            model: state.model,
            encoder: state.encoder,
            history: state.history,
        })
    }
}

/// The state of a training before its first step.
///
/// # Errors
/// [`crate::Error::CannotTrain`]; [`crate::Error::Stopped`] if the observer asks for it.
pub(crate) fn begin(
    data: TrainingData<'_>,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<TrainState> {
    Steps::start(Phase::Clustering, 0, &data.communicator.observer(observer))?;
    let clustering = initial_clusters(data, plan, None)?;
    let phase = match plan.recipe().warmup_epochs {
        0 => Phase::Stage1,
        _ => Phase::WarmUp,
    };
    begin_phase(phase, clustering, plan, data)
}

/// The state before the first step of a phase that starts from scratch on these clusters.
fn begin_phase(
    phase: Phase,
    clustering: Clustering,
    plan: &Plan,
    data: TrainingData<'_>,
) -> Result<TrainState> {
    let seed = plan.config().train.seed;
    let numbering = cluster_order(&clustering)?;
    let edges = fixed_edges(&clustering, &numbering)?;
    let own = data.own_labels();
    let model = Model {
        clusters: random_clusters(plan, seed),
        adjacency: Adjacency::fixed(edges).restricted(own.clone()),
        classifiers: random_classifiers(plan, FIRST_START, own),
        numbering,
    };
    let network = InitialNetwork {
        clustering,
        model,
        encoder: data.origin.encoder(plan),
    };
    Ok(TrainState::start(phase, network, plan.recipe()))
}

/// Trains from a state to the end; `keep` sees the state at every boundary.
///
/// # Errors
/// [`crate::Error::Diverged`]; [`crate::Error::Stopped`] if the observer asks for it; and whatever `keep` returns.
pub(crate) fn train_from(
    mut state: TrainState,
    data: TrainingData<'_>,
    plan: &Plan,
    observer: &dyn Observer,
    keep: &mut Keep<'_>,
) -> Result<Trained> {
    let observer = &data.communicator.observer(observer);
    if state.position.phase == Phase::WarmUp {
        state = warm_up(state, data, plan, observer, keep)?;
        keep(&mut state, Boundary::PhaseEnd)?;
    }
    let numbered = Numbered::new(data, &state.model.numbering);
    let mut stage = numbered.stage(data, plan, observer);
    let stages = plan.stages();
    if state.position.phase == Phase::Stage1 {
        stage.run(&stages[0], &mut state, keep)?;
        if stages.len() == 1 {
            return Trained::new(state, plan, data.origin);
        }
        learn_adjacency(&stage, &mut state)?;
        keep(&mut state, Boundary::PhaseEnd)?;
    }
    stage.run(&stages[1], &mut state, keep)?;
    Trained::new(state, plan, data.origin)
}

/// A network to start from, or to go on with.
pub(crate) struct InitialNetwork {
    /// The stage-1 cluster of every label.
    pub clustering: Clustering,
    /// Index and classifiers.
    pub model: Model,
    /// φ.
    pub encoder: Box<dyn TrainableEncoder>,
}

impl InitialNetwork {
    /// Goes on for an epoch as in stage 2; AdamW starts anew.
    ///
    /// # Errors
    /// As [`train_from`].
    pub(crate) fn go_on(
        self,
        data: TrainingData<'_>,
        plan: &Plan,
        config: StagePlan,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let numbered = Numbered::new(data, &self.model.numbering);
        let mut stage = numbered.stage(data, plan, observer);
        let mut state = TrainState::start(Phase::Stage2, self, plan.recipe());
        // In one epoch, A does not start again: it has been counted on more points than there are now.
        let config = StagePlan {
            epochs: 1,
            ..config
        };
        stage.run(&config, &mut state, &mut |_, _| Ok(()))?;
        Ok(InitialNetwork {
            clustering: state.clustering,
            model: state.model,
            encoder: state.encoder,
        })
    }
}

/// Trains a while on clusters of the features alone, then clusters again on ψ = [bow, φ] and starts over.
fn warm_up(
    mut state: TrainState,
    data: TrainingData<'_>,
    plan: &Plan,
    observer: &dyn Observer,
    keep: &mut Keep<'_>,
) -> Result<TrainState> {
    let numbered = Numbered::new(data, &state.model.numbering);
    let mut stage = numbered.stage(data, plan, observer);
    let config = StagePlan {
        epochs: plan.recipe().warmup_epochs,
        ..plan.stages()[0]
    };
    stage.run(&config, &mut state, keep)?;
    let all: Vec<u32> = (0..data.labels.n_rows() as u32).collect();
    let mut embeddings = Matrix::default();
    let encoder = state.encoder.as_encoder();
    encoder.encode(data.points, &all, &mut embeddings);
    let clustering = initial_clusters(data, plan, Some(&embeddings))?;
    let history = std::mem::take(&mut state.history);
    let fresh = begin_phase(Phase::Stage1, clustering, plan, data)?;
    Ok(TrainState { history, ..fresh })
}

/// From the clusters of stage 1 to the edges with which stage 2 begins.
fn learn_adjacency(stage: &Stage<'_>, state: &mut TrainState) -> Result<()> {
    let (plan, observer) = (stage.plan, stage.observer);
    let mut progress = Steps::start(Phase::Adjacency, stage.n_matched(), observer)?;
    let InitialAdjacency {
        adjacency,
        n_repaired,
    } = count_edges(stage, state, &mut |n_points| progress.advance(n_points))?;
    let event = Event::AdjacencyReady {
        n_edges: adjacency.edges().len(),
        n_repaired,
    };
    state.history.push(event.clone());
    if plan.config().train.keep_stage1 {
        state.stage1 = state.copy_parameters();
    }
    let own = stage.data.own_labels();
    if plan.recipe().label_restart {
        state.model.classifiers = random_classifiers(plan, RESTART, own.clone());
    }
    state.model.adjacency = adjacency.restricted(own);
    state.enter(Phase::Stage2, plan.recipe());
    emit(observer, event)
}

/// The edges that the model as it is now leads to.
fn count_edges(
    stage: &Stage<'_>,
    state: &TrainState,
    advance: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<InitialAdjacency> {
    let plan = stage.plan;
    let matches = stage.matches(&state.model, state.encoder.as_ref(), advance)?;
    let options = EdgeOptions {
        kappa: plan.kappa(),
        beta: plan.beta(),
        start: plan.recipe().edge_start,
        seed: plan.config().train.seed,
    };
    let edges = fixed_edges(&state.clustering, &state.model.numbering)?;
    initial_adjacency(&edges, &matches, stage.labels, stage.rows, options)
}

/// Starts A again, from the counts of the model as it is now.
fn recount(stage: &Stage<'_>, state: &mut TrainState) -> Result<()> {
    let mut n_points = 0;
    let mut advance = |n_more| {
        n_points += n_more;
        emit(stage.observer, Event::Recounting { n_points })
    };
    let counted = count_edges(stage, state, &mut advance)?.adjacency;
    state.model.adjacency = counted.restricted(stage.data.own_labels());
    state.optimiser.edges = Some(EdgeState::new(&state.model.adjacency));
    state.forget_best_epoch();
    Ok(())
}

fn initial_clusters(
    data: TrainingData<'_>,
    plan: &Plan,
    dense: Option<&Matrix>,
) -> Result<Clustering> {
    let features = PointFeatures {
        sparse: data.points.features,
        dense,
    };
    let centroids = label_centroids(data.labels, features);
    let seed = plan.config().train.seed;
    cluster_labels(&centroids, plan.n_clusters(), seed, data.communicator)
}

/// Labels cluster after cluster.
fn cluster_order(clustering: &Clustering) -> Result<Numbering> {
    Numbering::new(clustering.iter().flatten().copied().collect())
}

fn fixed_edges(clustering: &Clustering, numbering: &Numbering) -> Result<Edges> {
    let renumber = |labels: &[LabelId]| labels.iter().map(|&label| numbering.row(label)).collect();
    Edges::from_lists(
        clustering.iter().map(renumber).collect(),
        clustering.n_labels(),
    )
}

/// W_C, b_C ~ U(±1/√d).
fn random_clusters(plan: &Plan, seed: u64) -> ClusterClassifiers {
    let dim = plan.config().encoder.dim;
    let bound = 1.0 / (dim as f32).sqrt();
    let mut random = Random::new(seed, "cluster classifiers", 0);
    let mut uniform = || bound * (2.0 * random.f32() - 1.0);
    let weights = (0..plan.n_clusters() * dim).map(|_| uniform()).collect();
    ClusterClassifiers {
        weights: Matrix::from_vec(weights, plan.n_clusters(), dim),
        bias: (0..plan.n_clusters()).map(|_| uniform()).collect(),
        alpha: plan.config().index.alpha,
    }
}

/// The random streams from which W_L starts, and from which it starts again.
const FIRST_START: &str = "label classifier";
const RESTART: &str = "label classifier of stage 2";

/// These rows of W_L, and their b_L. A negative start saves unlearning thousands of false positives.
fn random_classifiers(plan: &Plan, stream: &str, labels: Range<usize>) -> LabelClassifiers {
    let (dim, n_labels) = (plan.config().encoder.dim, labels.len());
    let start = plan.recipe().label_start;
    let scale = match start {
        LabelStart::Improbable => 0.1,
        LabelStart::Random => 1.0,
    };
    let bound = (6.0 / dim as f32).sqrt() * scale;
    let seed = plan.config().train.seed;
    let mut weights = Matrix::zeros(n_labels, dim);
    let mut bias = vec![0.0; n_labels];
    let rows = weights.values_mut().par_chunks_mut(dim).zip(&mut bias);
    rows.enumerate().for_each(|(row, (values, bias))| {
        let row = labels.start + row;
        let mut random = Random::new(seed, stream, row as u64);
        values
            .iter_mut()
            .for_each(|value| *value = bound * (2.0 * random.f32() - 1.0));
        *bias = match start {
            LabelStart::Improbable => -4.0,
            LabelStart::Random => random.f32(),
        };
    });
    LabelClassifiers {
        weights: weights.into(),
        bias,
        coarse: None,
    }
}
