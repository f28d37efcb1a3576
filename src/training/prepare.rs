//! A training that is ready to run: features and plan.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::Trainer;
use super::processes::{check_alone, check_shared, follow};
use super::run::Run;
use super::split::LabelledPoints;
use super::transformer::{self, PreparedTransformer};
use crate::communicator::Communicator;
use crate::config::{Config, DataCounts, EncoderKind, FinalScoreKind, LabelTexts, Plan, Recipe};
use crate::data::{DataSummary, Dataset, Texts, names_are_informative, texts_of_names};
use crate::encoder::{EncoderOrigin, Outside, Standard};
use crate::error::{Error, Result};
use crate::events::{Event, Observer, Phase, emit};
use crate::features::{Featurizer, PointSet};
use crate::ids::LabelId;
use crate::neighbours::Forms;
use crate::predict::Predictor;
use crate::store::{Identity, InMemory, TrainingFolder};

/// A data set with its features and the plan for it.
pub struct PreparedTraining<'a> {
    pub(super) trainer: &'a Trainer<'a>,
    pub(super) data: &'a Dataset,
    summary: OnceLock<DataSummary>,
    featurizer: Featurizer,
    pub(super) points: PointSet,
    /// One text per label, where labels are learned from them.
    pub(super) label_texts: Option<PointSet>,
    /// The forms of the labels of the data, and of those known by their texts alone; for the final score.
    pub(super) forms: Option<[Forms; 2]>,
    pub(super) plan: Plan,
    pub(super) transformer: Option<PreparedTransformer>,
}

/// The features of all texts, with the embeddings that an encoder that is not trained makes of them.
pub(super) struct Features<'a> {
    pub(super) data: &'a Dataset,
    pub(super) summary: DataSummary,
    pub(super) plan: Plan,
    pub(super) featurizer: Featurizer,
    pub(super) points: PointSet,
    pub(super) label_texts: Option<PointSet>,
    pub(super) forms: Option<[Forms; 2]>,
    pub(super) validation: Option<LabelledPoints<'a>>,
    /// Pairs of a validation point and a label that do not count.
    pub(super) validation_filter: &'a [(usize, LabelId)],
    pub(super) origin: EncoderOrigin,
    pub(super) observer: &'a dyn Observer,
    pub(super) communicator: &'a dyn Communicator,
}

impl<'a> PreparedTraining<'a> {
    pub(super) fn new(trainer: &'a Trainer<'a>, data: &'a Dataset) -> Result<Self> {
        let phase = Phase::Features;
        emit(trainer.observer, Event::PhaseStarted { phase, n_steps: 0 })?;
        let mut config = trainer.config.clone();
        config.validate()?;
        let transformer = match config.encoder.kind {
            EncoderKind::Bag => None,
            EncoderKind::Transformer
                if data.word_vectors().is_some() || data.embeddings().is_some() =>
            {
                let problem = "vectors of words and embeddings of texts are for a bag of words: \
                               train one, or give none";
                return Err(Error::CannotTrain(problem.into()));
            }
            EncoderKind::Transformer => Some(transformer::prepare(&mut config)?),
        };
        let pieces = transformer.as_ref().map(|t| t.pieces.clone());
        let (featurizer, points) = Featurizer::fit(data, &config, pieces)?;
        let is_boosted = Recipe::of(&config).final_score == FinalScoreKind::Boosted;
        let texts = match featurizer.words() {
            Some(_) => label_texts(data, &config),
            None => None,
        };
        let (mut label_texts, mut forms) = (None, None);
        if let Some(texts) = texts {
            label_texts = Some(featurizer.words_of_texts(&texts)?);
            if is_boosted {
                let more = data.more_labels().texts();
                forms = Some([
                    Forms::of_texts(&featurizer, &texts)?,
                    Forms::of_texts(&featurizer, more)?,
                ]);
            }
        }
        let has_weight = |point: usize| data.weights().is_none_or(|all| 0.0 < all[point]);
        let is_labelled = |point: &usize| {
            !data.labels().row(*point).0.is_empty()
                && !points.is_blank(*point)
                && has_weight(*point)
        };
        let counts = DataCounts {
            n_points: (0..data.n_points()).filter(is_labelled).count(),
            n_labels: data.n_labels(),
            n_features: featurizer.n_features(),
            n_pairs: featurizer.n_pairs(),
            n_parts: featurizer.n_parts(),
            embedding_dim: featurizer.embedding_dim(),
        };
        let plan = config.resolve(counts)?;
        check_shared(trainer.communicator, &plan)?;
        Ok(PreparedTraining {
            trainer,
            data,
            summary: OnceLock::new(),
            featurizer,
            points,
            label_texts,
            forms,
            plan,
            transformer,
        })
    }

    /// The plan that will run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Labels that the model will know by their texts alone, if enough points can be held out: only boosted trees
    /// score them, and only where labels are learned from texts.
    pub fn n_labels_by_text(&self) -> usize {
        let forms = self.forms.as_ref();
        forms.map_or(0, |[_, more]| more.n_labels())
    }

    /// Trains.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train(self) -> Result<Predictor> {
        let problem = "several processes need a directory to write the model to: use train_to";
        check_alone(self.communicator(), problem)?;
        self.train_cut(None)
    }

    /// Trains with epochs of at most so many steps.
    pub(crate) fn train_cut(self, max_steps: Option<usize>) -> Result<Predictor> {
        let mut store = InMemory;
        let mut run = Run::split(self.features()?, &mut store)?;
        run.max_steps = max_steps;
        run.train()
    }

    /// Trains and saves the model, with checkpoints on the way.
    ///
    /// # Errors
    /// As [`Trainer::train_to`].
    pub fn train_to(self, directory: impl AsRef<Path>) -> Result<Predictor> {
        let directory = directory.as_ref();
        if self.communicator().process() > 0 {
            return follow(self, directory);
        }
        let mut folder = self.open(directory)?;
        if let Some(predictor) = folder.finished()? {
            emit(self.trainer.observer, Event::AlreadyTrained)?;
            return folder.leave(predictor);
        }
        let observer = self.trainer.observer;
        let predictor = Run::split(self.features()?, &mut folder)?.train()?;
        let (phase, n_steps) = (Phase::Saving, 0);
        // The last member is kept nowhere else yet, so a stop does not count.
        let _ = observer.on_event(&Event::PhaseStarted { phase, n_steps });
        folder.finish(predictor)
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
        let problem = "train_run trains one member in one process: start one";
        check_alone(self.communicator(), problem)?;
        let mut folder = self.open(directory.as_ref())?;
        Run::split(self.features()?, &mut folder)?.train_one(run)
    }

    /// Trains the stages of one member, on any number of processes, and keeps nothing of it; epochs have at most so many
    /// steps.
    pub(crate) fn measure_stages(self, max_steps: Option<usize>) -> Result<()> {
        let mut store = InMemory;
        let mut run = Run::split(self.features()?, &mut store)?;
        run.max_steps = max_steps;
        let (first, plan) = (run.member_runs()[0], run.plan.clone());
        run.train_stages(first, &plan).map(|_| ())
    }

    pub(super) fn communicator(&self) -> &'a dyn Communicator {
        self.trainer.communicator
    }

    /// Opens the folder of the training in the directory of its model.
    fn open(&self, directory: &Path) -> Result<TrainingFolder<'a>> {
        let Trainer {
            observer,
            communicator,
            validation,
            ..
        } = *self.trainer;
        let encoder = self.transformer.as_ref().map(|t| t.sha256.clone());
        let data = self.summary().clone();
        let identity = Identity::new(self.plan.config(), data, validation, encoder);
        let destination = self.trainer.destination(directory);
        TrainingFolder::open(destination, identity, observer, communicator)
    }

    /// A bag of words, over vectors from outside if the data has any.
    fn vectors_from_outside(&self) -> Result<EncoderOrigin> {
        if let Some(embedded) = &self.points.embedded {
            return Ok(EncoderOrigin::Texts(Arc::new(Standard::of(embedded))));
        }
        let Some((words, vectors)) = self.featurizer.words().zip(self.data.word_vectors()) else {
            return Ok(EncoderOrigin::Bag);
        };
        let outside = Outside::new(words, self.featurizer.n_parts(), vectors, &self.points)?;
        Ok(EncoderOrigin::Vectors(Arc::new(outside)))
    }

    /// Counts and fingerprint of the data.
    fn summary(&self) -> &DataSummary {
        self.summary.get_or_init(|| DataSummary::of(self.data))
    }

    /// The features of all texts, embedded where the encoder is not trained.
    pub(super) fn features(self) -> Result<Features<'a>> {
        let summary = self.summary().clone();
        let Trainer {
            observer,
            communicator,
            validation,
            ..
        } = *self.trainer;
        let from_outside = self.vectors_from_outside()?;
        let origin = match self.transformer {
            Some(prepared) => EncoderOrigin::Pretrained(Box::new(prepared.transformer)),
            None => from_outside,
        };
        let embed = |mut points: PointSet| {
            let embedded = transformer::embed_once(&origin, &points, observer)?;
            points.embedded = embedded.or(points.embedded);
            Ok(points)
        };
        let points = embed(self.points)?;
        let validation_filter = validation.map_or(&[][..], Dataset::filter);
        let validation = match validation {
            Some(data) => {
                let points = embed(self.featurizer.points(data)?)?;
                Some(LabelledPoints::new(points, Cow::Borrowed(data.labels())))
            }
            None => None,
        };
        let label_texts = self.label_texts.map(embed).transpose()?;
        Ok(Features {
            data: self.data,
            summary,
            plan: self.plan,
            featurizer: self.featurizer,
            points,
            label_texts,
            forms: self.forms,
            validation,
            validation_filter,
            origin,
            observer,
            communicator,
        })
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
        LabelTexts::Auto if !data.more_labels().is_empty() => true,
        LabelTexts::Auto => names_are_informative(data, &texts, config.train.seed),
        LabelTexts::On => true,
        LabelTexts::Off => false,
    };
    is_wanted.then_some(texts)
}
