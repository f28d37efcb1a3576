//! Training: stage 1 on fixed clusters, the adjacency, stage 2 end to end (paper, Section 3.4).
//!
//! [`train`] reads as the paper's recipe. [`stage`] is the loop of steps both stages share, `head` one step of
//! the index and the classifiers. Nothing here knows what runs inside the encoder.

mod adjacency;
mod events;
pub(crate) mod head;
mod stage;

pub use events::{Event, Observer, Phase, Silent};

use rayon::prelude::*;

use crate::classifiers::LabelClassifiers;
use crate::clustering::{Clustering, PointFeatures, cluster_labels, label_centroids};
use crate::config::{IndexMode, LabelInit, Plan};
use crate::encoder::{BagEncoder, Points, TrainableEncoder};
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::index::{Adjacency, ClusterClassifiers, Edges};
use crate::matrix::{CsrMatrix, Matrix};
use crate::model::{Model, Numbering};
use crate::random::Random;

use stage::Stage;

/// Points that are predicted while training runs.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// The points.
    pub points: Points<'a>,
    /// Their labels.
    pub labels: &'a CsrMatrix,
}

/// What a training works on.
#[derive(Clone, Copy)]
pub struct TrainingData<'a> {
    /// The points.
    pub points: Points<'a>,
    /// Y, N×L.
    pub labels: &'a CsrMatrix,
    /// Points to predict every few epochs.
    pub watched: Option<Watched<'a>>,
}

/// What a training makes.
pub struct Trained {
    /// Index and classifiers after stage 2.
    pub model: Model,
    /// The encoder after stage 2.
    pub encoder: Box<dyn TrainableEncoder>,
    /// The stage-1 cluster of every label.
    pub clustering: Clustering,
}

/// Trains a model.
///
/// # Errors
/// [`Error::Untrainable`] and [`Error::Diverged`]; [`Error::Stopped`] if the observer asked for it.
pub fn train(data: TrainingData<'_>, plan: &Plan, observer: &dyn Observer) -> Result<Trained> {
    let config = plan.config();
    let seed = config.train.seed;
    let rows = labelled_rows(data.labels);

    tell(
        observer,
        Event::PhaseStarted {
            phase: Phase::Clustering,
            n_steps: 0,
        },
    )?;
    let clustering = initial_clusters(data, plan)?;
    let numbering = cluster_order(&clustering)?;
    let labels = numbering.renumber(data.labels);

    let mut encoder: Box<dyn TrainableEncoder> = Box::new(BagEncoder::new(
        data.points.features.n_cols(),
        &config.encoder,
        seed,
    ));
    let edges = fixed_edges(&clustering, &numbering)?;
    let mut model = Model {
        clusters: random_clusters(plan, seed),
        adjacency: Adjacency::fixed(edges),
        classifiers: random_classifiers(plan, seed),
        numbering,
    };
    let mut stage = Stage {
        data,
        plan,
        labels: &labels,
        rows: &rows,
        observer,
    };
    stage.run(Phase::Stage1, &config.stage1, &mut model, encoder.as_mut())?;
    if config.index.mode == IndexMode::Ova {
        return Ok(Trained {
            model,
            encoder,
            clustering,
        });
    }

    tell(
        observer,
        Event::PhaseStarted {
            phase: Phase::Adjacency,
            n_steps: 0,
        },
    )?;
    let matches = stage.matches(&model, encoder.as_ref());
    let settings = (plan.kappa(), plan.beta(), seed);
    let (adjacency, n_repaired) =
        adjacency::initial_adjacency(model.adjacency.edges(), &matches, &labels, &rows, settings)?;
    tell(
        observer,
        Event::AdjacencyReady {
            n_edges: adjacency.edges().len(),
            n_repaired,
        },
    )?;
    model.adjacency = adjacency;
    if config.stage2.label_classifiers == LabelInit::Reset {
        model.classifiers = random_classifiers(plan, seed.wrapping_add(1));
    }
    stage.run(Phase::Stage2, &config.stage2, &mut model, encoder.as_mut())?;
    Ok(Trained {
        model,
        encoder,
        clustering,
    })
}

/// Passes an event on.
pub(crate) fn tell(observer: &dyn Observer, event: Event) -> Result<()> {
    match observer.on_event(&event) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(Error::Stopped),
    }
}

/// Points with at least one label: the others teach nothing.
fn labelled_rows(labels: &CsrMatrix) -> Vec<u32> {
    (0..labels.n_rows() as u32)
        .filter(|&row| !labels.row(row as usize).0.is_empty())
        .collect()
}

fn initial_clusters(data: TrainingData<'_>, plan: &Plan) -> Result<Clustering> {
    let features = PointFeatures {
        sparse: data.points.features,
        dense: None,
    };
    let centroids = label_centroids(data.labels, features);
    let config = plan.config();
    cluster_labels(
        &centroids,
        plan.n_clusters(),
        &config.clustering,
        config.train.seed,
    )
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

/// W_L ~ U(±√(6/d)) as in the released code.
fn random_classifiers(plan: &Plan, seed: u64) -> LabelClassifiers {
    let (dim, n_labels) = (plan.config().encoder.dim, plan.counts().n_labels);
    let bound = (6.0 / dim as f32).sqrt() * plan.config().train.label_scale;
    let mut weights = Matrix::zeros(n_labels, dim);
    weights
        .values_mut()
        .par_chunks_mut(dim)
        .enumerate()
        .for_each(|(row, values)| {
            let mut random = Random::new(seed, "label classifier", row as u64);
            values
                .iter_mut()
                .for_each(|value| *value = bound * (2.0 * random.f32() - 1.0));
        });
    LabelClassifiers {
        weights,
        bias: vec![plan.config().train.label_bias; n_labels],
    }
}
