//! A training that is ready to run: features, plan, memory; then the recipe.

use std::borrow::Cow;
use std::path::Path;

use super::Trainer;
use super::members::{Keeping, MemberTrainer, Runs};
use super::memory::{self, DataSizes, MemoryEstimate};
use super::rerank::{calibrate, find_neighbours};
use super::split::{LabelPoints, TrainingSplit, count_labels};
use super::transformer::{self, PreparedTransformer};
use crate::communicator::{Communicator, MAX_PROCESSES, is_told};
use crate::config::{Config, DataCounts, EncoderKind, FinalScoreKind, LabelTexts, Plan, Recipe};
use crate::data::{DataSummary, Dataset, HoldOut, Texts, names_say_something, texts_of_names};
use crate::encoder::{EncoderOrigin, EncoderSizes};
use crate::error::{Error, Result};
use crate::events::{Event, Phase, emit};
use crate::features::{Featurizer, PointSet};
use crate::matrix::CsrMatrix;
use crate::neighbours::Names;
use crate::predict::{EnsembleCalibration, Predictor, PredictorParts, TrainingRecord, Witnesses};
use crate::store::{Follower, Identity, TrainingFolder};
use crate::train::{ValidationPoints, points_per_epoch};

/// A data set with its features and the plan for it.
pub struct PreparedTraining<'a> {
    trainer: &'a Trainer<'a>,
    data: &'a Dataset,
    featurizer: Featurizer,
    points: PointSet,
    /// One text per label, where labels are learned from them.
    label_texts: Option<PointSet>,
    plan: Plan,
    transformer: Option<PreparedTransformer>,
}

impl<'a> PreparedTraining<'a> {
    pub(super) fn new(trainer: &'a Trainer<'a>, data: &'a Dataset) -> Result<Self> {
        let phase = Phase::Features;
        emit(trainer.observer, Event::PhaseStarted { phase, n_steps: 0 })?;
        let mut config = trainer.config.clone();
        config.validate()?;
        let transformer = match config.encoder.kind {
            EncoderKind::Bag => None,
            EncoderKind::Transformer => Some(transformer::prepare(&mut config)?),
        };
        let pieces = transformer.as_ref().map(|t| t.pieces.clone());
        let (featurizer, points) = Featurizer::fit(data, &config, pieces)?;
        let label_texts = match label_texts(data, &config) {
            Some(texts) => Some(featurizer.points_of_texts(&texts)?),
            None => None,
        };
        let is_labelled = |point: &usize| !data.labels().row(*point).0.is_empty();
        let counts = DataCounts {
            n_points: (0..data.n_points()).filter(is_labelled).count(),
            n_labels: data.n_labels(),
            n_features: featurizer.n_features(),
            n_pairs: featurizer.n_pairs(),
        };
        let plan = config.resolve(counts)?;
        check_ranks(trainer.communicator, &plan)?;
        Ok(PreparedTraining {
            trainer,
            data,
            featurizer,
            points,
            label_texts,
            plan,
            transformer,
        })
    }

    /// What will run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether labels will be learned from their names, or from what else is known about them.
    pub fn learns_label_texts(&self) -> bool {
        self.label_texts.is_some()
    }

    /// Points that an epoch visits if all of them train: texts, and some of the label texts.
    pub fn points_per_epoch(&self) -> usize {
        let label_texts = self.label_texts.as_ref().map(LabelPoints::labels_of);
        let n_label_texts = label_texts.map_or(0, |labels| labels.len());
        points_per_epoch(self.plan.counts().n_points, n_label_texts)
    }

    /// How often each member is trained: again on all points if some are held out at first, which is assumed of data
    /// that has enough of them.
    pub fn n_passes(&self) -> usize {
        let (hold_out, recipe) = (&self.plan.config().hold_out, self.plan.recipe());
        let n_held_out = HoldOut::most_points(self.plan.counts().n_points, hold_out);
        let is_fitted = recipe.final_score.is_fitted() && hold_out.min_points.max(1) <= n_held_out;
        1 + usize::from(is_fitted && recipe.refit)
    }

    /// Trains.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train(self) -> Result<Predictor> {
        self.check_alone(
            "several communicator need a directory to write the model to: use train_to",
        )?;
        let data = DataSummary::of(self.data);
        let trained = self.run(data, Keeping::Nowhere, Runs::All)?;
        Ok(trained.expect("the only process has the model"))
    }

    /// Trains the stages of one member, on any number of processes, and keeps nothing of it; epochs have at most so many
    /// steps.
    pub(crate) fn train_stages(self, max_steps: Option<usize>) -> Result<()> {
        let data = DataSummary::of(self.data);
        let keeping = Keeping::Nothing { max_steps };
        self.run(data, keeping, Runs::All).map(|_| ())
    }

    /// What its runs, and a training that resumes it, must have in common.
    fn identity(&self) -> Identity {
        let encoder = self.transformer.as_ref().map(|t| t.sha256.clone());
        let validation = self.trainer.validation;
        Identity::new(self.plan.config(), self.data, validation, encoder)
    }

    /// Trains and saves the model, with checkpoints on the way.
    ///
    /// # Errors
    /// As [`Trainer::train_to`].
    pub fn train_to(self, directory: impl AsRef<Path>) -> Result<Predictor> {
        let (directory, communicator) = (directory.as_ref(), self.trainer.communicator);
        if communicator.process() > 0 {
            return self.follow_to(directory);
        }
        let destination = self.trainer.destination(directory);
        let mut folder = TrainingFolder::open(&destination, self.identity())?;
        let finished = folder.finished()?;
        let predictor = if is_told(communicator, finished.is_some()) {
            folder.remove()?;
            finished
        } else {
            let data = folder.data().clone();
            let predictor = self.run(data, Keeping::Folder(&mut folder), Runs::All)?;
            if let Some(predictor) = &predictor {
                folder.finish(predictor)?;
            }
            predictor
        };
        is_told(communicator, true);
        Ok(predictor.expect("process 0 has the model"))
    }

    /// Trains this process's part of the model that process 0 saves.
    fn follow_to(self, directory: &Path) -> Result<Predictor> {
        let communicator = self.trainer.communicator;
        let is_finished = is_told(communicator, false);
        let follower = Follower::open(directory)?;
        if !is_finished {
            let data = DataSummary::of(self.data);
            self.run(data, Keeping::Follower(&follower), Runs::All)?;
        }
        is_told(communicator, false);
        follower.finished()
    }

    /// Trains one member and keeps it in the directory, as an unfinished training does.
    ///
    /// [`Trainer::take_runs_from`] makes a model of all runs: the same bytes as if one process had trained it. Runs
    /// are counted from 0: one per member, and another per member if members are trained again on all points. A run
    /// beyond those is none, and nothing is trained.
    ///
    /// # Errors
    /// As [`Trainer::train_to`].
    pub fn train_run(self, directory: impl AsRef<Path>, run: usize) -> Result<()> {
        self.check_alone("train_run trains one member in one process: start one")?;
        let destination = self.trainer.destination(directory.as_ref());
        let mut folder = TrainingFolder::open(&destination, self.identity())?;
        let data = folder.data().clone();
        self.run(data, Keeping::Folder(&mut folder), Runs::Only(run))?;
        Ok(())
    }

    /// That there is one process.
    fn check_alone(&self, problem: &str) -> Result<()> {
        match self.trainer.communicator.n_processes() {
            1 => Ok(()),
            _ => Err(Error::CannotTrain(problem.into())),
        }
    }

    /// The recipe. Nothing comes of a single run, and on processes other than 0, which train their parts of the members.
    fn run(self, data: DataSummary, keeping: Keeping<'_>, runs: Runs) -> Result<Option<Predictor>> {
        let (plan, observer) = (self.plan, self.trainer.observer);
        let communicator = self.trainer.communicator;
        let mut points = self.points;
        let origin = match self.transformer {
            Some(prepared) => EncoderOrigin::Pretrained(Box::new(prepared.transformer)),
            None => EncoderOrigin::Bag,
        };
        points.embedded = transformer::embed_once(&origin, &points, observer)?;
        let validation = match self.trainer.validation {
            Some(data) => {
                let mut points = self.featurizer.points(data)?;
                points.embedded = transformer::embed_once(&origin, &points, observer)?;
                Some((points, data.labels()))
            }
            None => None,
        };
        let validation = validation
            .as_ref()
            .map(|(points, labels)| ValidationPoints {
                points: points.points(),
                labels,
            });

        let mut split = TrainingSplit::choose(points, self.data.labels(), plan.config());
        let mut names = None;
        if let Some(mut texts) = self.label_texts {
            texts.embedded = transformer::embed_once(&origin, &texts, observer)?;
            split.add(&LabelPoints::new(&texts));
            names = Some(Names::new(texts.features));
        }
        let mut trainer = MemberTrainer {
            plan: &plan,
            origin: &origin,
            validation,
            observer,
            communicator,
            keeping,
            runs,
            n_runs: plan.config().ensemble.members * split.n_passes(),
            history: Vec::new(),
        };
        if matches!(trainer.keeping, Keeping::Nothing { .. }) {
            trainer.train_stages(&split.train, &plan, 0)?;
            return Ok(None);
        }
        let mut members = trainer.train_members(&split.train, 0)?;
        if communicator.process() > 0 || runs != Runs::All {
            if let Some(all) = split.again() {
                trainer.train_members(all, plan.config().ensemble.members)?;
            }
            return Ok(None);
        }
        let mut calibration = None;
        if let Some(held_out) = &split.held_out {
            let neighbours = find_neighbours(&split.train, plan.recipe());
            let witnesses = Witnesses {
                neighbours: neighbours.as_ref(),
                names: names.as_ref(),
                frequencies: &split.train.label_counts(),
            };
            let fitted = calibrate(&members, held_out, &witnesses, &plan, observer)?;
            drop(neighbours);
            trainer.record(fitted.event)?;
            if let Some(all) = split.again() {
                let n_members = members.len();
                drop(members);
                members = trainer.train_members(all, n_members)?;
            }
            for (member, verdict) in members.iter_mut().zip(fitted.verdicts) {
                member.verdict = Some(verdict);
            }
            calibration = Some(EnsembleCalibration {
                frequencies: split.final_points().label_counts(),
                probabilities: fitted.probabilities,
            });
        } else if let Some(event) = &split.skipped {
            trainer.record(event.clone())?;
        }
        let history = trainer.history;
        let judges = calibration.is_some() && plan.recipe().final_score == FinalScoreKind::Boosted;
        let neighbours = find_neighbours(split.all(), plan.recipe());
        let predictor = Predictor::new(PredictorParts {
            featurizer: self.featurizer,
            label_set: self.data.label_set().clone(),
            label_counts: count_labels(self.data.labels(), self.data.n_points()),
            members,
            calibration,
            neighbours,
            names: names.filter(|_| judges),
            plan,
            record: TrainingRecord { data, history },
        })?;
        Ok(Some(predictor))
    }

    /// Predicts the peak memory of the training on this many threads, on one of its processes.
    pub fn peak_memory(&self, n_threads: usize) -> MemoryEstimate {
        let (data, validation) = (self.data, self.trainer.validation);
        let n_points = data.n_points();
        let features = &self.points.features;
        let words_per_point = features.nnz().div_ceil(n_points.max(1));
        let mut sizes = DataSizes {
            n_feature_entries: features.nnz(),
            n_centroid_entries: count_centroid_entries(data.labels(), features),
            words_per_point,
            n_threads,
            n_processes: self.trainer.communicator.n_processes(),
            transformer: self.transformer_sizes(validation.map_or(0, Dataset::n_points), n_threads),
            ..DataSizes::default()
        };
        for part in std::iter::once(data).chain(validation) {
            let given = part.features().map_or(0, CsrMatrix::nnz);
            sizes.n_text_bytes += part.texts().map_or(0, Texts::n_bytes);
            sizes.n_text_bytes += part.ids().map_or(0, Texts::n_bytes);
            sizes.n_feature_entries += given;
            sizes.n_label_entries += part.labels().nnz();
            sizes.n_points += part.n_points();
        }
        if self.plan.recipe().final_score.is_fitted() {
            sizes.n_feature_entries += features.nnz();
        }
        let n_pairs = self.points.pairs.as_ref().map_or(0, CsrMatrix::nnz);
        sizes.n_pair_entries = 2 * n_pairs;
        // Validation points are assumed to be as long as the others.
        sizes.n_feature_entries += words_per_point * (sizes.n_points - n_points);
        if let Some(texts) = &self.label_texts {
            // Their own rows, and beside the points that train, once and again.
            sizes.n_feature_entries += 3 * texts.features.nnz();
            sizes.n_points += 2 * texts.len();
            sizes.n_label_entries += texts.len();
        }
        memory::estimate(&self.plan, &sizes)
    }

    /// Sizes of the transformer, if there is one.
    fn transformer_sizes(&self, n_validation: usize, n_threads: usize) -> Option<EncoderSizes> {
        let tokens = self.points.tokens.as_ref()?;
        let prepared = self.transformer.as_ref()?;
        let n_points = tokens.n_rows() + n_validation;
        let n_tokens = tokens.n_tokens().div_ceil(tokens.n_rows().max(1));
        let n_texts = self.plan.batch_size();
        Some(EncoderSizes {
            n_embedded: prepared.n_embedded(n_points),
            ..prepared.transformer.sizes(n_texts, n_tokens, n_threads)
        })
    }

    /// Parameters of the transformer, if there is one.
    pub fn n_transformer_parameters(&self) -> Option<usize> {
        Some(self.transformer_sizes(0, 1)?.n_parameters)
    }

    /// Multiplications and additions of the transformer's forward pass over all points.
    pub fn transformer_flops(&self) -> f64 {
        let tokens = self.points.tokens.as_ref();
        let Some((tokens, prepared)) = tokens.zip(self.transformer.as_ref()) else {
            return 0.0;
        };
        let lengths = (0..tokens.n_rows()).map(|row| tokens.row(row).len());
        lengths
            .map(|n_tokens| prepared.transformer.shape().flops(n_tokens))
            .sum()
    }
}

/// That this many processes can share the labels.
fn check_ranks(communicator: &dyn Communicator, plan: &Plan) -> Result<()> {
    let (n_processes, n_labels) = (communicator.n_processes(), plan.counts().n_labels);
    let cannot = |problem: String| Err(Error::CannotTrain(problem));
    if n_processes == 1 {
        Ok(())
    } else if n_processes > MAX_PROCESSES {
        cannot(format!(
            "{n_processes} communicator were started, labels are shared by at most {MAX_PROCESSES}"
        ))
    } else if n_labels < MAX_PROCESSES {
        cannot(format!(
            "{n_labels} labels are too few to be shared, expected at least {MAX_PROCESSES}: start one process"
        ))
    } else if plan.config().train.keep_stage1 {
        cannot("train.keep_stage1 needs all labels in one process: turn it off".into())
    } else {
        Ok(())
    }
}

/// One text per label, if labels are to be learned from them.
fn label_texts<'a>(data: &'a Dataset, config: &Config) -> Option<Cow<'a, Texts>> {
    data.texts()?;
    let texts = match data.label_texts() {
        Some(texts) => Cow::Borrowed(texts),
        None => Cow::Owned(texts_of_names(data.label_set())),
    };
    let is_wanted = match Recipe::of(config).label_texts {
        LabelTexts::Auto => names_say_something(data, &texts, config.train.seed),
        LabelTexts::On => true,
        LabelTexts::Off => false,
    };
    is_wanted.then_some(texts)
}

/// Labels whose centroids are counted; the rest is extrapolated.
const MAX_COUNTED_LABELS: usize = 4096;

/// Distinct words over the points of each label, summed over the labels.
fn count_centroid_entries(labels: &CsrMatrix, features: &CsrMatrix) -> usize {
    let points_of = labels.transpose();
    let stride = points_of.n_rows().div_ceil(MAX_COUNTED_LABELS).max(1);
    let mut last_seen = vec![u32::MAX; features.n_cols()];
    let (mut n_entries, mut n_counted) = (0, 0);
    for label in (0..points_of.n_rows()).step_by(stride) {
        n_counted += 1;
        for &point in points_of.row(label).0 {
            for &word in features.row(point as usize).0 {
                let seen = &mut last_seen[word as usize];
                n_entries += usize::from(*seen != label as u32);
                *seen = label as u32;
            }
        }
    }
    (n_entries as f64 * points_of.n_rows() as f64 / f64::from(n_counted.max(1))) as usize
}
