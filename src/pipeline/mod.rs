//! From a data set to a predictor, in one call.
//!
//! Points are held out for calibration first. Each member of the ensemble is then trained through both stages and
//! gets its ranker; at the end all members are calibrated on the points held out.

mod prepared;
mod rerank;
mod split;
mod transformer;

use crate::checkpoint::{Destination, Identity, TrainingFolder};
use crate::config::{Config, DataCounts, EncoderKind, Plan};
use crate::data::Dataset;
use crate::encoder::EncoderOrigin;
use crate::features::PointSet;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, Phase, emit};
use crate::features::Vectorizer;
use crate::model::Model;
use crate::predict::{Calibration, Member, Predictor, PredictorParts};
use crate::train::{TrainState, Trained, TrainingData, Watched, begin, train, train_from};

pub use prepared::Prepared;

use rerank::{calibrate, train_ranker};
use split::{Part, Split, count_labels};

/// Trains predictors as a configuration says.
#[derive(Clone, Debug, Default)]
pub struct Trainer {
    config: Config,
}

impl Trainer {
    /// A trainer with this configuration.
    pub fn new(config: Config) -> Self {
        Trainer { config }
    }

    /// Features of the data and the plan for it; nothing is trained yet.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::CannotTrain`].
    pub fn prepare(&self, data: &Dataset) -> Result<Prepared> {
        let (vectorizer, features) = match (data.features(), data.texts()) {
            (Some(features), None) => (None, features.with_unit_rows()),
            (_, Some(texts)) => {
                let (vectorizer, features) =
                    Vectorizer::fit_transform(texts, &self.config.features)?;
                (Some(vectorizer), features)
            }
            (None, None) => {
                return Err(Error::CannotTrain(
                    "the data has neither texts nor features".into(),
                ));
            }
        };
        let n_points = (0..data.n_points())
            .filter(|&point| !data.labels().row(point).0.is_empty())
            .count();
        let counts = DataCounts {
            n_points,
            n_labels: data.n_labels(),
            n_features: features.n_cols(),
        };
        let mut config = self.config.clone();
        let mut points = PointSet::of_features(features);
        let mut encoder = None;
        if config.encoder.kind == EncoderKind::Transformer {
            let texts = data.texts().ok_or_else(|| {
                Error::CannotTrain("a transformer reads texts, the data has none".into())
            })?;
            let prepared = transformer::prepare(&mut config)?;
            points.tokens = Some(prepared.pieces.rows(texts)?);
            encoder = Some(prepared);
        }
        Ok(Prepared {
            vectorizer,
            points,
            plan: config.resolve(counts)?,
            encoder,
        })
    }

    /// As [`Trainer::prepare`], told to the observer.
    fn prepare_watched(&self, data: &Dataset, observer: &dyn Observer) -> Result<Prepared> {
        emit(
            observer,
            Event::PhaseStarted {
                phase: Phase::Features,
                n_steps: 0,
            },
        )?;
        self.prepare(data)
    }

    /// Trains on a data set; `watched` is predicted every few epochs for the observer's eyes.
    ///
    /// # Errors
    /// As [`Trainer::prepare`]; [`Error::Diverged`]; [`Error::Stopped`] if the observer asks for it.
    pub fn train(
        &self,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let prepared = self.prepare_watched(data, observer)?;
        self.train_prepared(prepared, data, watched, observer)
    }

    /// Trains on a data set, keeps the training from being lost meanwhile, and saves the model.
    ///
    /// Interrupted at any instant and resumed, it ends in the same bytes as if it had not been.
    ///
    /// # Errors
    /// As [`Trainer::train`]; [`Error::BadFile`] if the destination is taken or cannot be resumed; [`Error::Io`].
    pub fn train_to(
        &self,
        destination: &Destination,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let prepared = self.prepare_watched(data, observer)?;
        self.train_prepared_to(destination, prepared, data, watched, observer)
    }

    /// As [`Trainer::train_to`], on what [`Trainer::prepare`] made of the same data.
    ///
    /// # Errors
    /// As [`Trainer::train_to`].
    pub fn train_prepared_to(
        &self,
        destination: &Destination,
        prepared: Prepared,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let sha256 = prepared
            .encoder
            .as_ref()
            .map(|encoder| encoder.sha256.clone());
        let identity = Identity::new(prepared.plan.config(), data, watched).with_encoder(sha256);
        let mut folder = TrainingFolder::open(destination, identity)?;
        if let Some(predictor) = folder.finished()? {
            folder.remove()?;
            return Ok(predictor);
        }
        let (predictor, history) =
            self.run(prepared, data, watched, observer, Some(&mut folder))?;
        folder.finish(&predictor, history)?;
        Ok(predictor)
    }

    /// Trains on what [`Trainer::prepare`] made of the same data.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train_prepared(
        &self,
        prepared: Prepared,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let (predictor, _) = self.run(prepared, data, watched, observer, None)?;
        Ok(predictor)
    }

    /// Fits the rankers and the calibration of a trained model anew, as this configuration says; encoders, indices and
    /// label classifiers stay. `data` and the seed must be those it was trained with, lest points it was trained on
    /// are taken for held out.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn rerank(
        &self,
        predictor: Predictor,
        data: &Dataset,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let points = predictor.points(data)?;
        let split = Split::choose(points, data.labels(), &self.config, true);
        let mut parts = predictor.into_parts();
        parts.plan = self.config.resolve(parts.plan.counts())?;
        for (member_idx, member) in parts.members.iter_mut().enumerate() {
            let plan = parts.plan.of_member(member_idx);
            let ranker = self.config.ranker.enabled;
            let ranker = ranker.then(|| train_ranker(member, &split.train, &plan, observer));
            member.ranker = ranker.transpose()?;
            member.calibrator = None;
        }
        parts.calibration = None;
        if let Some(held_out) = &split.held_out {
            let shared = (split.train.label_counts(), &parts.plan);
            let (calibration, _) = calibrate(&mut parts.members, held_out, shared, observer)?;
            parts.calibration = Some(calibration);
        }
        Predictor::new(parts)
    }

    fn run(
        &self,
        prepared: Prepared,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
        folder: Option<&mut TrainingFolder>,
    ) -> Result<(Predictor, Vec<Event>)> {
        let Prepared {
            vectorizer,
            mut points,
            plan,
            encoder,
        } = prepared;
        let (origin, pieces) = match encoder {
            Some(encoder) => {
                let transformer = Box::new(encoder.transformer);
                (EncoderOrigin::Pretrained(transformer), Some(encoder.pieces))
            }
            None => (EncoderOrigin::default(), None),
        };
        let mut watched_points = match (
            watched.and_then(Dataset::texts),
            &vectorizer,
            watched.and_then(Dataset::features),
        ) {
            (Some(texts), Some(vectorizer), _) => Some(PointSet {
                tokens: pieces.as_ref().map(|p| p.rows(texts)).transpose()?,
                ..PointSet::of_features(vectorizer.transform(texts))
            }),
            (_, None, Some(features)) => Some(PointSet::of_features(
                features
                    .with_n_cols(plan.counts().n_features)?
                    .with_unit_rows(),
            )),
            _ => None,
        };
        for points in std::iter::once(&mut points).chain(&mut watched_points) {
            points.embedded = transformer::embed_once(&origin, points, observer)?;
        }
        let watched = watched_points.as_ref().zip(watched);
        let watched = watched.map(|(points, data)| Watched {
            points: points.points(),
            labels: data.labels(),
        });
        let split = Split::choose(points, data.labels(), &self.config, watched.is_some());
        let validation = split.validation.as_ref().map(|part| Watched {
            points: part.points.points(),
            labels: &part.labels,
        });
        let mut parts = PredictorParts {
            vectorizer,
            pieces,
            label_set: data.label_set().clone(),
            label_counts: count_labels(data.labels()),
            members: Vec::new(),
            calibration: None,
            plan,
        };
        let n_members = self.config.ensemble.members;
        let mut course = Course {
            watched: watched.or(validation),
            origin: &origin,
            n_runs: n_members * if split.all.is_some() { 2 } else { 1 },
            observer,
            folder,
            history: Vec::new(),
        };
        let mut members = self.train_members(&mut course, 0, &split.train, &mut parts)?;
        let said = match &split.held_out {
            Some(held_out) => {
                let shared = (split.train.label_counts(), &parts.plan);
                let (calibration, ready) = calibrate(&mut members, held_out, shared, observer)?;
                parts.calibration = Some(calibration);
                Some(ready)
            }
            None => split.skipped,
        };
        if let Some(event) = said {
            course.history.push(event.clone());
            emit(observer, event)?;
        }
        if let Some(all) = &split.all {
            let calibration = parts.calibration.take();
            let calibrators = members.into_iter().map(|member| member.calibrator);
            let calibrators: Vec<_> = calibrators.collect();
            members = self.train_members(&mut course, n_members, all, &mut parts)?;
            for (member, calibrator) in members.iter_mut().zip(calibrators) {
                member.calibrator = calibrator;
            }
            parts.calibration = calibration.map(|calibration| Calibration {
                frequencies: all.label_counts(),
                ..calibration
            });
        }
        parts.members = members;
        Ok((Predictor::new(parts)?, course.history))
    }

    /// Trains all members on the same points. Runs are counted from `first_run`; each but the last of all is kept in
    /// the folder once it is over.
    fn train_members(
        &self,
        course: &mut Course<'_, '_>,
        first_run: usize,
        part: &Part<'_>,
        parts: &mut PredictorParts,
    ) -> Result<Vec<Member>> {
        let data = TrainingData {
            points: part.points.points(),
            labels: &part.labels,
            watched: course.watched,
            origin: course.origin,
        };
        let mut members = Vec::new();
        for member_idx in 0..self.config.ensemble.members {
            let run = first_run + member_idx;
            if let Some(folder) = &course.folder
                && let Some((member, told)) = folder.finished_member(run)
            {
                members.push(member);
                course.history.extend(told);
                continue;
            }
            let plan = parts.plan.of_member(member_idx);
            let mut told = Vec::new();
            if 1 < course.n_runs {
                let event = Event::MemberStarted {
                    member: run,
                    n_members: course.n_runs,
                };
                told.push(event.clone());
                emit(course.observer, event)?;
            }
            let trained = match &mut course.folder {
                Some(folder) => train_kept(data, (&plan, run), course.observer, folder)?,
                None => train(data, &plan, course.observer)?,
            };
            told.extend(trained.history);
            let mut member = Member {
                encoder: trained.encoder,
                model: Model {
                    classifiers: trained
                        .model
                        .classifiers
                        .finished(plan.config().train.label_precision),
                    ..trained.model
                },
                ranker: None,
                calibrator: None,
                stage1: trained.stage1,
            };
            if self.config.ranker.enabled {
                member.ranker = Some(train_ranker(&member, part, &plan, course.observer)?);
            }
            if let Some(folder) = &course.folder
                && run + 1 < course.n_runs
            {
                member = keep_member(folder, run, member, parts, told.clone())?;
            }
            members.push(member);
            course.history.extend(told);
        }
        Ok(members)
    }
}

/// What goes along with a training from its first run to its last.
struct Course<'a, 'f> {
    watched: Option<Watched<'a>>,
    origin: &'a EncoderOrigin,
    /// Members, each counted twice if they are trained again on all points.
    n_runs: usize,
    observer: &'a dyn Observer,
    folder: Option<&'f mut TrainingFolder>,
    history: Vec<Event>,
}

/// Keeps a finished member in the folder, as a model of its own.
fn keep_member(
    folder: &TrainingFolder,
    run: usize,
    member: Member,
    parts: &mut PredictorParts,
    told: Vec<Event>,
) -> Result<Member> {
    let whole = PredictorParts {
        vectorizer: parts.vectorizer.take(),
        pieces: parts.pieces.take(),
        label_set: std::mem::take(&mut parts.label_set),
        label_counts: std::mem::take(&mut parts.label_counts),
        members: vec![member],
        calibration: None,
        plan: parts.plan.clone(),
    };
    let predictor = Predictor::new(whole)?;
    folder.keep_member(run, &predictor, told)?;
    let mut whole = predictor.into_parts();
    parts.vectorizer = whole.vectorizer;
    parts.pieces = whole.pieces;
    parts.label_set = whole.label_set;
    parts.label_counts = whole.label_counts;
    let member = whole.members.pop();
    Ok(member.expect("the one member that was put in"))
}

/// Trains from the last snapshot in the folder, and keeps further ones there.
fn train_kept(
    data: TrainingData<'_>,
    (plan, member_idx): (&Plan, usize),
    observer: &dyn Observer,
    folder: &mut TrainingFolder,
) -> Result<Trained> {
    let state = match folder.restore((plan, data.origin), member_idx)? {
        Some(state) => state,
        None => begin(data, plan, observer)?,
    };
    let mut keep = |state: &mut TrainState, boundary| {
        if let Some(duration) = folder.keep(state, boundary)? {
            let seconds = duration.as_secs_f64();
            emit(observer, Event::Checkpoint { seconds })?;
        }
        Ok(())
    };
    train_from(state, data, plan, observer, &mut keep)
}
