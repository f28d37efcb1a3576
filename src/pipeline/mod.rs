//! From a data set to a predictor, in one call.
//!
//! Points are held out for calibration first. Each member of the ensemble is then trained through both stages and
//! gets its ranker; at the end all members are calibrated on the points held out.

mod rerank;
mod split;

use crate::checkpoint::{Destination, Identity, TrainingFolder};
use crate::config::{Config, DataCounts, DataSizes, MemoryEstimate, Plan};
use crate::data::{Dataset, Texts};
use crate::encoder::Points;
use crate::error::{Error, Result};
use crate::features::Vectorizer;
use crate::matrix::CsrMatrix;
use crate::predict::{Calibration, Member, Predictor, PredictorParts};
use crate::train::{
    Event, Observer, Phase, TrainState, Trained, TrainingData, Watched, begin, tell, train,
    train_from,
};

use rerank::{calibrate, train_ranker};
use split::{Part, Split, count_labels};

/// Trains predictors as a configuration says.
#[derive(Clone, Debug, Default)]
pub struct Trainer {
    config: Config,
}

/// A data set made ready for training: features and what will run.
pub struct Prepared {
    vectorizer: Option<Vectorizer>,
    features: CsrMatrix,
    plan: Plan,
}

impl Prepared {
    /// What will run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The features.
    pub fn features(&self) -> &CsrMatrix {
        &self.features
    }

    /// Predicts the most memory that training on the same data will take, on this many threads.
    pub fn peak_memory(
        &self,
        data: &Dataset,
        watched: Option<&Dataset>,
        n_threads: usize,
    ) -> MemoryEstimate {
        let n_points = data.n_points();
        let n_words_a_point = self.features.nnz().div_ceil(n_points.max(1));
        let mut sizes = DataSizes {
            n_feature_entries: self.features.nnz(),
            n_centroid_entries: count_centroid_entries(data.labels(), &self.features),
            n_words_a_point,
            n_threads,
            ..DataSizes::default()
        };
        for part in std::iter::once(data).chain(watched) {
            let given = part.features().map_or(0, CsrMatrix::nnz);
            sizes.n_text_bytes += part.texts().map_or(0, Texts::n_bytes);
            sizes.n_text_bytes += part.ids().map_or(0, Texts::n_bytes);
            sizes.n_feature_entries += given;
            sizes.n_label_entries += part.labels().nnz();
            sizes.n_points += part.n_points();
        }
        if self.plan.config().calibration.enabled && self.plan.config().calibration.refit {
            sizes.n_feature_entries += self.features.nnz();
        }
        // Watched points are as long as the others.
        sizes.n_feature_entries += n_words_a_point * (sizes.n_points - n_points);
        self.plan.peak_memory(&sizes)
    }
}

/// Labels whose centroids are counted; the rest is extrapolated.
const MOST_COUNTED_LABELS: usize = 4096;

/// How many words the points of each label have together, summed over the labels.
fn count_centroid_entries(labels: &CsrMatrix, features: &CsrMatrix) -> usize {
    let points_of = labels.transpose();
    let stride = points_of.n_rows().div_ceil(MOST_COUNTED_LABELS).max(1);
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

impl Trainer {
    /// A trainer with this configuration.
    pub fn new(config: Config) -> Self {
        Trainer { config }
    }

    /// Features of the data and the plan for it; nothing is trained yet.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::Untrainable`].
    pub fn prepare(&self, data: &Dataset) -> Result<Prepared> {
        let (vectorizer, features) = match (data.features(), data.texts()) {
            (Some(features), None) => (None, features.with_unit_rows()),
            (_, Some(texts)) => {
                let (vectorizer, features) =
                    Vectorizer::fit_transform(texts, &self.config.features)?;
                (Some(vectorizer), features)
            }
            (None, None) => {
                return Err(Error::Untrainable(
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
        let plan = self.config.resolve(counts)?;
        Ok(Prepared {
            vectorizer,
            features,
            plan,
        })
    }

    /// As [`Trainer::prepare`], told to the observer.
    fn prepare_watched(&self, data: &Dataset, observer: &dyn Observer) -> Result<Prepared> {
        tell(
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
        let identity = Identity::new(&self.config, data, watched);
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
        let features = predictor.features(data)?;
        let split = Split::choose(features, data.labels(), &self.config, true);
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
            features,
            plan,
        } = prepared;
        let watched_features = match (
            watched.and_then(Dataset::texts),
            &vectorizer,
            watched.and_then(Dataset::features),
        ) {
            (Some(texts), Some(vectorizer), _) => Some(vectorizer.transform(texts)),
            (_, None, Some(features)) => Some(
                features
                    .with_n_cols(plan.counts().n_features)?
                    .with_unit_rows(),
            ),
            _ => None,
        };
        let watched = watched_features.as_ref().zip(watched);
        let watched = watched.map(|(features, data)| Watched {
            points: Points { features },
            labels: data.labels(),
        });
        let split = Split::choose(features, data.labels(), &self.config, watched.is_some());
        let validation = split.validation.as_ref().map(|part| Watched {
            points: Points {
                features: &part.features,
            },
            labels: &part.labels,
        });
        let mut parts = PredictorParts {
            vectorizer,
            label_set: data.label_set().clone(),
            label_counts: count_labels(data.labels()),
            members: Vec::new(),
            calibration: None,
            plan,
        };
        let n_members = self.config.ensemble.members;
        let mut course = Course {
            watched: watched.or(validation),
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
            tell(observer, event)?;
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
            points: Points {
                features: &part.features,
            },
            labels: &part.labels,
            watched: course.watched,
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
                tell(course.observer, event)?;
            }
            let trained = match &mut course.folder {
                Some(folder) => train_kept(data, (&plan, run), course.observer, folder)?,
                None => train(data, &plan, course.observer)?,
            };
            told.extend(trained.history);
            let mut member = Member {
                encoder: trained.encoder,
                model: trained.model,
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
    let state = match folder.restore(plan, member_idx)? {
        Some(state) => state,
        None => begin(data, plan, observer)?,
    };
    let mut keep = |state: &mut TrainState, boundary| folder.keep(state, boundary);
    train_from(state, data, plan, observer, &mut keep)
}
