//! Everything the rest of a training depends on.
//!
//! Random choices follow from the seed, their purpose and the step, so a position in the schedule gives the
//! state of every random stream. A [`TrainState`] that is stored and restored continues as if nothing had happened.
//! Buffers of a single step are not here.

use std::ops::Range;

use super::InitialNetwork;
use super::chosen::Chosen;
use super::cluster_order;
use super::head::{EdgeState, LabelGradients, LabelMoments};
use crate::classifiers::LabelClassifiers;
use crate::clustering::Clustering;
use crate::communicator::Communicator;
use crate::config::{Plan, Recipe, RowUpdates};
use crate::encoder::{EncoderOrigin, Parameter, TrainableEncoder};
use crate::error::Result;
use crate::events::{Event, Phase};
use crate::ids::ClusterId;
use crate::index::{Adjacency, ClusterClassifiers};
use crate::matrix::Matrix;
use crate::model::Model;
use crate::optim::{DenseMoments, Moments};

/// A training between two steps.
pub(crate) struct TrainState {
    /// The stage-1 cluster of every label.
    pub clustering: Clustering,
    /// Index and classifiers.
    pub model: Model,
    /// φ.
    pub encoder: Box<dyn TrainableEncoder>,
    /// How far it has come.
    pub position: Position,
    /// The parent of every label as of the start of the epoch; empty between epochs.
    pub parents: Vec<Option<ClusterId>>,
    /// Epochs, validations and the adjacency so far.
    pub history: Vec<Event>,
    pub(super) optimiser: Optimiser,
    /// Weights that the stage may end with.
    pub(super) chosen: Chosen,
    /// Every parameter as it was after stage 1, in the order of [`TrainState::parameters`]; empty unless kept.
    pub(super) stage1: Vec<Vec<f32>>,
}

/// How far a training has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Position {
    /// The stage.
    pub phase: Phase,
    /// Steps done in it.
    pub step: usize,
    /// Sums over the steps of the epoch so far.
    pub sums: EpochSums,
    /// Mean loss of the first epoch of the stage, once it is over.
    pub first_loss: Option<f64>,
}

impl Position {
    /// The start of a stage.
    pub(crate) fn start_of(phase: Phase) -> Self {
        Position {
            phase,
            step: 0,
            sums: EpochSums::default(),
            first_loss: None,
        }
    }
}

/// Sums over the steps of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EpochSums {
    /// L_c.
    pub classification: f64,
    /// L_s.
    pub shortlist: f64,
    /// L_c + λ L_s.
    pub total: f64,
    /// Pairs of a point and a label that were scored.
    pub n_pairs: usize,
    /// Points.
    pub n_points: usize,
    /// Mean loss per point, smoothed over steps.
    pub recent: f64,
}

/// The boundary that a training has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// Between two steps.
    Step,
    /// Between two phases.
    PhaseEnd,
    /// Before it stops on request.
    Stop,
}

/// Called at every boundary with the state, which it may store.
pub(crate) type Keep<'a> = dyn FnMut(&mut TrainState, Boundary) -> Result<()> + 'a;

/// The part of an array that a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// All of it.
    Whole,
    /// The rows of its own labels.
    Labels,
    /// The edges to its own labels.
    Edges,
}

impl Spread {
    /// How the array of this name in a file is spread: what belongs to rows of W_L, and what belongs to edges of A.
    pub(crate) fn of(name: &str) -> Self {
        match name.split_once('.') {
            Some(("classifiers", _)) => Spread::Labels,
            Some(("adjacency", "labels" | "weight" | "weight.best" | "gradient" | "m" | "v")) => {
                Spread::Edges
            }
            _ => Spread::Whole,
        }
    }
}

/// One array of a state, to be stored or to be filled.
pub(crate) enum Array<'a> {
    /// Numbers of the method.
    Floats(&'a mut [f32]),
    /// Counts.
    Counts(&'a mut [u32]),
    /// Yes or no.
    Flags(&'a mut [bool]),
}

/// An array with its name.
pub(crate) struct NamedArray<'a> {
    pub(crate) name: String,
    pub(crate) array: Array<'a>,
    pub(crate) spread: Spread,
}

/// The parts of a state that have a structure of their own.
pub(crate) struct StateParts {
    /// The stage-1 cluster of every label.
    pub clustering: Clustering,
    /// A, with its weights.
    pub adjacency: Adjacency,
    /// How far it has come.
    pub position: Position,
    /// As [`TrainState::parents`].
    pub parents: Vec<Option<ClusterId>>,
    /// As [`TrainState::history`].
    pub history: Vec<Event>,
}

impl TrainState {
    /// The state before the first step of a phase.
    pub(super) fn start(phase: Phase, network: InitialNetwork, recipe: &Recipe) -> Self {
        let InitialNetwork {
            clustering,
            model,
            mut encoder,
        } = network;
        let mut state = TrainState {
            optimiser: Optimiser::new(&model, encoder.as_mut(), recipe),
            clustering,
            model,
            encoder,
            position: Position::start_of(phase),
            stage1: Vec::new(),
            parents: Vec::new(),
            history: Vec::new(),
            chosen: Chosen::default(),
        };
        state.choose_anew(recipe);
        state
    }

    /// The state that was stored, of these labels: `fill` fills each of its [`TrainState::arrays`].
    ///
    /// # Errors
    /// Whatever `fill` returns.
    pub(crate) fn restore(
        plan: &Plan,
        origin: &EncoderOrigin,
        parts: StateParts,
        labels: Range<usize>,
        fill: &mut dyn FnMut(NamedArray<'_>) -> Result<()>,
    ) -> Result<Self> {
        let (n_labels, n_clusters) = (labels.len(), plan.n_clusters());
        let dim = plan.config().encoder.dim;
        let model = Model {
            clusters: ClusterClassifiers {
                weights: Matrix::zeros(n_clusters, dim),
                bias: vec![0.0; n_clusters],
                alpha: plan.config().index.alpha,
            },
            adjacency: parts.adjacency.restricted(labels),
            classifiers: LabelClassifiers {
                weights: Matrix::zeros(n_labels, dim).into(),
                bias: vec![0.0; n_labels],
                coarse: None,
            },
            numbering: cluster_order(&parts.clustering)?,
        };
        let mut encoder = origin.encoder(plan);
        let optimiser = Optimiser::new(&model, encoder.as_mut(), plan.recipe());
        let mut state = TrainState {
            clustering: parts.clustering,
            model,
            encoder,
            position: parts.position,
            parents: parts.parents,
            history: parts.history,
            optimiser,
            chosen: Chosen::default(),
            stage1: Vec::new(),
        };
        state.choose_anew(plan.recipe());
        if state.position.phase == Phase::Stage2 && plan.config().train.keep_stage1 {
            state.stage1 = state.copy_parameters();
        }
        for array in state.arrays() {
            fill(array)?;
        }
        Ok(state)
    }

    /// Every array besides those of [`StateParts`], with a name of its own, in a fixed order.
    pub(crate) fn arrays(&mut self) -> Vec<NamedArray<'_>> {
        let names = self.parameter_names();
        let mut arrays = Vec::new();
        let mut add = |name: &str, array| {
            arrays.push(NamedArray {
                name: name.to_owned(),
                array,
                spread: Spread::of(name),
            });
        };
        let model = &mut self.model;
        let weights = model.classifiers.weights.values_mut();
        add("classifiers.weight", Array::Floats(weights));
        add(
            "classifiers.bias",
            Array::Floats(&mut model.classifiers.bias),
        );
        let weights = model.clusters.weights.values_mut();
        add("clusters.weight", Array::Floats(weights));
        add("clusters.bias", Array::Floats(&mut model.clusters.bias));
        self.optimiser
            .add_arrays(self.encoder.parameters(), &mut add);
        self.chosen.add_arrays(&names, &mut add);
        for (at, copy) in self.stage1.iter_mut().enumerate() {
            add(&format!("stage1.{at}"), Array::Floats(copy));
        }
        arrays
    }

    /// Begins a stage: the moments of AdamW start from zero.
    pub(super) fn enter(&mut self, phase: Phase, recipe: &Recipe) {
        self.position = Position::start_of(phase);
        self.parents.clear();
        self.optimiser = Optimiser::new(&self.model, self.encoder.as_mut(), recipe);
        self.choose_anew(recipe);
    }

    /// Brings W_C and b_C up to date on this process, where processes share the clusters.
    pub(super) fn gather_clusters(&mut self, communicator: &dyn Communicator) {
        let clusters = &mut self.model.clusters;
        let n_clusters = clusters.n_clusters();
        for values in [clusters.weights.values_mut(), &mut clusters.bias] {
            communicator.refresh_clusters(n_clusters, values);
        }
    }

    /// Brings all that is stored of clusters up to date on this process, where processes share them.
    pub(crate) fn gather_cluster_state(&mut self, communicator: &dyn Communicator) {
        self.gather_clusters(communicator);
        let n_clusters = self.model.clusters.n_clusters();
        let Optimiser {
            cluster_weights,
            cluster_bias,
            waiting,
            ..
        } = &mut self.optimiser;
        for values in [
            &mut cluster_weights.m,
            &mut cluster_weights.v,
            &mut cluster_bias.m,
            &mut cluster_bias.v,
            &mut waiting.cluster_weights,
            &mut waiting.cluster_bias,
        ] {
            communicator.refresh_clusters(n_clusters, values);
        }
    }

    /// A copy of every parameter but A.
    pub(super) fn copy_parameters(&mut self) -> Vec<Vec<f32>> {
        let copies = self.parameters().into_iter().map(|values| values.to_vec());
        copies.collect()
    }

    /// Names of [`TrainState::parameters`].
    fn parameter_names(&mut self) -> Vec<String> {
        let of_head = [
            "classifiers.weight",
            "classifiers.bias",
            "clusters.weight",
            "clusters.bias",
        ];
        let of_encoder = self.encoder.parameters().into_iter();
        let names = of_encoder.map(|parameter| parameter.name.to_owned());
        of_head
            .map(str::to_owned)
            .into_iter()
            .chain(names)
            .collect()
    }

    /// W_L, b_L, W_C, b_C and the parameters of the encoder.
    pub(super) fn parameters(&mut self) -> Vec<&mut [f32]> {
        let model = &mut self.model;
        let mut parameters = vec![
            model.classifiers.weights.values_mut(),
            model.classifiers.bias.as_mut_slice(),
            model.clusters.weights.values_mut(),
            model.clusters.bias.as_mut_slice(),
        ];
        let encoder = self.encoder.parameters().into_iter();
        parameters.extend(encoder.map(|parameter| parameter.values));
        parameters
    }
}

/// AdamW's state of everything.
pub(super) struct Optimiser {
    pub(super) labels: LabelMoments,
    pub(super) edges: Option<EdgeState>,
    pub(super) cluster_weights: DenseMoments,
    pub(super) cluster_bias: DenseMoments,
    pub(super) encoder: Vec<Moments>,
    pub(super) waiting: Waiting,
    pub(super) row_updates: RowUpdates,
}

/// Whether gradients of W_L are added up in a table of its size, to be applied together.
pub(crate) fn waits(recipe: &Recipe) -> bool {
    recipe.update_every > 1 || recipe.row_updates == RowUpdates::All
}

/// Gradients of groups that are not updated in every step, or not row by row; empty where they are.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) labels: Option<LabelGradients>,
    pub(super) cluster_weights: Vec<f32>,
    pub(super) cluster_bias: Vec<f32>,
}

impl Waiting {
    fn new(model: &Model, recipe: &Recipe) -> Self {
        let (n_labels, dim) = (
            model.classifiers.n_labels(),
            model.classifiers.weights.n_cols(),
        );
        let mut waiting = Waiting::default();
        if waits(recipe) {
            waiting.labels = Some(LabelGradients::new(n_labels, dim));
        }
        if recipe.update_every > 1 {
            waiting.cluster_weights = vec![0.0; model.clusters.n_clusters() * dim];
            waiting.cluster_bias = vec![0.0; model.clusters.n_clusters()];
        }
        waiting
    }

    fn add_arrays<'a>(&'a mut self, add: &mut dyn FnMut(&str, Array<'a>)) {
        let Waiting {
            labels,
            cluster_weights,
            cluster_bias,
        } = self;
        if let Some(LabelGradients {
            weights,
            bias,
            touched,
        }) = labels
        {
            add("classifiers.weight.sum", Array::Floats(weights));
            add("classifiers.bias.sum", Array::Floats(bias));
            add("classifiers.touched", Array::Flags(touched));
        }
        add("clusters.weight.sum", Array::Floats(cluster_weights));
        add("clusters.bias.sum", Array::Floats(cluster_bias));
    }
}

impl Optimiser {
    pub(super) fn new(model: &Model, encoder: &mut dyn TrainableEncoder, recipe: &Recipe) -> Self {
        let (n_labels, dim) = (
            model.classifiers.n_labels(),
            model.classifiers.weights.n_cols(),
        );
        let n_clusters = model.clusters.n_clusters();
        Optimiser {
            labels: LabelMoments::new(n_labels, dim, recipe.second_moments),
            edges: model
                .adjacency
                .weights()
                .map(|_| EdgeState::new(&model.adjacency)),
            cluster_weights: DenseMoments::new(n_clusters * dim),
            cluster_bias: DenseMoments::new(n_clusters),
            encoder: encoder
                .parameters()
                .iter()
                .map(|parameter| Moments::for_parameter(parameter, recipe.second_moments))
                .collect(),
            waiting: Waiting::new(model, recipe),
            row_updates: recipe.row_updates,
        }
    }

    /// The encoder's parameters and all moments. Fields are listed, so that a new one is not forgotten.
    fn add_arrays<'a>(
        &'a mut self,
        parameters: Vec<Parameter<'a>>,
        add: &mut dyn FnMut(&str, Array<'a>),
    ) {
        let Optimiser {
            labels,
            edges,
            cluster_weights,
            cluster_bias,
            encoder,
            waiting,
            row_updates: _,
        } = self;
        waiting.add_arrays(add);
        for (parameter, moments) in parameters.into_iter().zip(encoder) {
            add(parameter.name, Array::Floats(parameter.values));
            let (m, v, n_updates) = match moments {
                Moments::Dense(dense) => (
                    &mut dense.m,
                    &mut dense.v,
                    std::slice::from_mut(&mut dense.n_updates),
                ),
                Moments::Rows(rows) => (&mut rows.m, &mut rows.v, &mut rows.n_updates[..]),
            };
            add(&format!("{}.m", parameter.name), Array::Floats(m));
            add(&format!("{}.v", parameter.name), Array::Floats(v));
            let name = format!("{}.n_updates", parameter.name);
            add(&name, Array::Counts(n_updates));
        }
        let LabelMoments {
            m,
            v,
            bias_m,
            bias_v,
            n_updates,
        } = labels;
        add("classifiers.weight.m", Array::Floats(m));
        add("classifiers.weight.v", Array::Floats(v));
        add("classifiers.bias.m", Array::Floats(bias_m));
        add("classifiers.bias.v", Array::Floats(bias_v));
        add("classifiers.n_updates", Array::Counts(n_updates));
        for (name, moments) in [
            ("clusters.weight", cluster_weights),
            ("clusters.bias", cluster_bias),
        ] {
            let DenseMoments { m, v, n_updates } = moments;
            add(&format!("{name}.m"), Array::Floats(m));
            add(&format!("{name}.v"), Array::Floats(v));
            let n_updates = Array::Counts(std::slice::from_mut(n_updates));
            add(&format!("{name}.n_updates"), n_updates);
        }
        if let Some(EdgeState {
            gradient,
            touched,
            moments,
        }) = edges
        {
            add("adjacency.gradient", Array::Floats(gradient));
            add("adjacency.touched", Array::Flags(touched));
            add("adjacency.m", Array::Floats(&mut moments.m));
            add("adjacency.v", Array::Floats(&mut moments.v));
            add("adjacency.n_updates", Array::Counts(&mut moments.n_updates));
        }
    }
}
