//! The door `inspect`: sizes, settings, history and state of the index, and what is known of one label or cluster.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::curves::TrainingCurves;
use super::health::{IndexHealth, OVERLAP_CUTOFFS};
use crate::config::Config;
use crate::error::Result;
use crate::predict::{Level, Predictor};
use crate::store;

/// Facts about a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Version of the format; `None` for a model that was not saved, as all that only files tell.
    pub format_version: Option<u32>,
    /// Name and version of the program that wrote it.
    pub written_by: Option<String>,
    /// Whether it takes texts; otherwise it takes features.
    pub takes_texts: bool,
    /// Number of members.
    pub n_members: usize,
    /// The levels that it can answer at.
    pub parts: Vec<&'static str>,
    /// Points of its training data.
    pub n_points: usize,
    /// Labels.
    pub n_labels: usize,
    /// Words or features.
    pub n_features: usize,
    /// C.
    pub n_clusters: usize,
    /// κ.
    pub kappa: usize,
    /// β.
    pub beta: f32,
    /// b.
    pub beam_size: usize,
    /// K.
    pub shortlist_size: usize,
    /// Seed of its training.
    pub seed: u64,
    /// Bytes of all files.
    pub bytes: Option<u64>,
    /// Bytes of each file.
    pub files: Option<BTreeMap<String, u64>>,
    /// Losses and validations by member and stage.
    pub training: Vec<TrainingCurves>,
    /// The index of each member.
    pub index: Vec<IndexHealth>,
    /// Edge scores that [`IndexHealth::stage1_overlap`] refers to.
    pub overlap_cutoffs: [f64; OVERLAP_CUTOFFS.len()],
    /// The settings it was trained with.
    pub config: Config,
}

impl Predictor {
    /// Sizes, settings, history and state of the index.
    pub fn inspect(&self) -> Inspection {
        let plan = self.plan();
        Inspection {
            format_version: None,
            written_by: None,
            takes_texts: self.takes_texts(),
            n_members: self.n_members(),
            parts: parts(self),
            n_points: self.training_data().n_points,
            n_labels: plan.counts().n_labels,
            n_features: plan.counts().n_features,
            n_clusters: plan.n_clusters(),
            kappa: plan.kappa(),
            beta: plan.beta(),
            beam_size: plan.beam_size(),
            shortlist_size: plan.shortlist_size(),
            seed: plan.config().train.seed,
            bytes: None,
            files: None,
            training: TrainingCurves::of(self.history()),
            index: (0..self.n_members())
                .map(|member_idx| IndexHealth::of(self, member_idx))
                .collect(),
            overlap_cutoffs: OVERLAP_CUTOFFS,
            config: plan.config().clone(),
        }
    }
}

impl Inspection {
    /// Adds what the files of the model tell.
    ///
    /// # Errors
    /// As [`Predictor::load`], for the manifest.
    pub fn with_files(self, directory: impl AsRef<Path>) -> Result<Self> {
        let description = store::describe(directory.as_ref())?;
        let sizes = description.files.into_iter();
        let sizes: BTreeMap<String, u64> = sizes.map(|(name, file)| (name, file.bytes)).collect();
        Ok(Inspection {
            format_version: Some(description.version),
            written_by: Some(description.written_by),
            bytes: Some(sizes.values().sum()),
            files: Some(sizes),
            ..self
        })
    }
}

/// The levels the model can answer at.
fn parts(predictor: &Predictor) -> Vec<&'static str> {
    let is_there = |level: &Level| match level {
        level if level.has_all_members() => predictor.n_members() > 1,
        level => predictor.check_level(*level).is_ok(),
    };
    let levels = Level::ALL.into_iter().filter(is_there);
    levels.map(Level::name).collect()
}
