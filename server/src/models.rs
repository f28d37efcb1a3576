//! The models that are served, each of which can be replaced while it answers.
//!
//! A model is held in memory of this process, so its files may be replaced, damaged or deleted meanwhile. A new
//! manifest makes a new model: it is read and checked in full beside the old one, then takes its place. Requests hold
//! the model they began with. A model that cannot be loaded changes nothing, and is reported once.
//!
//! A model that learns is replaced by one that shares everything with it but what was learned.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use elias::config::EncoderKind;
use elias::insight::ClusterDetails;
use elias::{ClusterId, Learner, Predictor};

use crate::error::ApiError;
use crate::learning::Waiting;
use crate::log::Log;
use crate::memory;
use crate::metrics::Metrics;
use crate::options::{ModelSource, Options};
use crate::service::ServeError;

/// Labels per cluster that are searched and shown in a list of clusters.
const LISTED_LABELS: usize = 8;
/// A model that cannot be loaded is tried again after at most this time.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// A loaded model.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) predictor: Predictor,
    /// Whether several texts cost less together than one by one.
    pub(crate) gains_by_batches: bool,
    pub(crate) loaded_at: SystemTime,
    /// When it was written.
    pub(crate) modified_at: SystemTime,
    clusters: Arc<OnceLock<Vec<ClusterDetails>>>,
}

impl Model {
    fn new(source: &ModelSource, learner: &Learner) -> Self {
        let predictor = learner.predictor().clone();
        let modified_at = Stamp::of(&source.path).modified_at;
        Model {
            name: source.name.clone(),
            gains_by_batches: predictor.plan().config().encoder.kind != EncoderKind::Bag,
            predictor,
            loaded_at: SystemTime::now(),
            modified_at: modified_at.unwrap_or(SystemTime::UNIX_EPOCH),
            clusters: Arc::default(),
        }
    }

    /// The same version after it has learned more.
    fn with_learned(&self, learner: &Learner) -> Self {
        Model {
            name: self.name.clone(),
            predictor: learner.predictor().clone(),
            clusters: Arc::clone(&self.clusters),
            ..*self
        }
    }

    /// Every cluster with its strongest labels; slow when it is called first.
    pub(crate) fn clusters(&self) -> &[ClusterDetails] {
        self.clusters.get_or_init(|| {
            let clusters = (0..self.predictor.n_clusters() as u32).map(ClusterId);
            clusters
                .filter_map(|cluster| self.predictor.inspect_cluster(cluster, LISTED_LABELS))
                .collect()
        })
    }
}

/// Loads a model into memory; only one that answers texts.
fn load(source: &ModelSource, max_bytes: Option<u64>) -> elias::Result<Learner> {
    let max_bytes = max_bytes.or_else(memory::available).unwrap_or(u64::MAX);
    let learner = Learner::load_into_memory(&source.path, max_bytes)?;
    if learner.predictor().takes_texts() {
        return Ok(learner);
    }
    let problem = "the model was trained on features; only models of texts can be served";
    Err(elias::Error::BadFile {
        path: source.path.clone(),
        problem: problem.into(),
    })
}

/// Marks that tell one version of a model's manifest from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stamp {
    modified_at: Option<SystemTime>,
    n_bytes: u64,
    inode: u64,
}

impl Stamp {
    fn of(directory: &Path) -> Self {
        let Ok(metadata) = fs::metadata(directory.join("manifest.json")) else {
            return Stamp::default();
        };
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Stamp {
            modified_at: metadata.modified().ok(),
            n_bytes: metadata.len(),
            inode,
        }
    }
}

/// Versions of the files of a model: the one that answers, and one that failed.
struct Files {
    /// Of the model that answers.
    loaded: Stamp,
    learner: Learner,
    /// Why its journal cannot be followed.
    problem: Option<String>,
    failure: Option<Failure>,
}

/// A version that could not be loaded.
struct Failure {
    stamp: Stamp,
    message: String,
    retry_at: Instant,
    delay: Duration,
}

/// A name, and the model that answers to it now.
pub(crate) struct Slot {
    source: ModelSource,
    current: ArcSwap<Model>,
    files: Mutex<Files>,
}

impl Slot {
    fn new(source: &ModelSource, max_bytes: Option<u64>, metrics: &Metrics) -> elias::Result<Self> {
        let stamp = Stamp::of(&source.path);
        let started = Instant::now();
        let learner = load(source, max_bytes)?;
        metrics.observe_load(&source.name, started.elapsed());
        Ok(Slot {
            source: source.clone(),
            current: ArcSwap::from_pointee(Model::new(source, &learner)),
            files: Mutex::new(Files {
                loaded: stamp,
                learner,
                problem: None,
                failure: None,
            }),
        })
    }

    /// The model that answers now.
    pub(crate) fn model(&self) -> Arc<Model> {
        self.current.load_full()
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns what waits together, with one sync and one replacement, and answers those who wait.
    pub(crate) fn learn(&self, waiting: Vec<Waiting>, metrics: &Metrics, log: &Log) {
        let mut files = self.lock();
        let started = Instant::now();
        let failed = |error| learning_error(&self.source.name, error, log);
        let (mut all, mut replies) = (Vec::new(), Vec::new());
        for one in waiting {
            // Each by itself, so that none fails for the others.
            match files
                .learner
                .predictor()
                .check_corrections(&one.corrections)
            {
                Ok(()) => {
                    all.extend(one.corrections);
                    replies.push(one.reply);
                }
                Err(error) => drop(one.reply.send(Err(failed(error)))),
            }
        }
        if all.is_empty() {
            return;
        }
        let learned = files.learner.learn(&all).map_err(failed);
        if learned.is_ok() {
            self.show(&files.learner);
            metrics.observe_learned(&self.source.name, all.len(), started.elapsed());
        }
        let n_learned = files.learner.predictor().learned().len();
        for reply in replies {
            let _ = reply.send(learned.clone().map(|()| n_learned));
        }
    }

    /// Lets what was learned answer.
    fn show(&self, learner: &Learner) {
        let model = self.model().with_learned(learner);
        self.current.store(Arc::new(model));
    }

    /// Learns what other processes appended to the journal.
    fn follow(&self, files: &mut Files, log: &Log) {
        let problem = match files.learner.follow() {
            Ok(false) => return,
            Ok(true) => {
                self.show(&files.learner);
                None
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = &problem
            && files.problem.as_ref() != Some(problem)
        {
            let name = &self.source.name;
            log.line(&format!(
                "model {name}: cannot learn from its journal: {problem}"
            ));
        }
        files.problem = problem;
    }

    /// Loads the model again if its manifest is new, or in any case if asked to; otherwise follows its journal.
    fn refresh(&self, is_forced: bool, options: &Options, metrics: &Metrics) {
        let log = &options.log;
        let mut files = self.lock();
        let stamp = Stamp::of(&self.source.path);
        let is_new = match &files.failure {
            Some(failure) => failure.stamp != stamp || failure.retry_at <= Instant::now(),
            None => true,
        };
        if !is_forced && (stamp == files.loaded || !is_new) {
            self.follow(&mut files, log);
            return;
        }
        let (name, started) = (&self.source.name, Instant::now());
        match load(&self.source, options.max_model_bytes) {
            Ok(learner) => {
                let model = Model::new(&self.source, &learner);
                self.current.store(Arc::new(model));
                metrics.observe_load(name, started.elapsed());
                *files = Files {
                    loaded: stamp,
                    learner,
                    problem: None,
                    failure: None,
                };
                log.line(&format!("model {name}: loaded the new version"));
            }
            Err(error) => {
                metrics.count_failed_load(name);
                let message = error.to_string();
                let before = files.failure.take();
                let is_known = before
                    .as_ref()
                    .is_some_and(|before| before.message == message);
                if !is_known {
                    log.line(&format!(
                        "model {name}: the new version cannot be loaded, the old one goes on: {message}"
                    ));
                }
                let before = before.filter(|before| before.stamp == stamp);
                let delay = before.map_or(Duration::from_secs(1), |before| 2 * before.delay);
                let delay = delay.min(MAX_RETRY_DELAY);
                files.failure = Some(Failure {
                    stamp,
                    message,
                    retry_at: Instant::now() + delay,
                    delay,
                });
            }
        }
    }
}

/// What a client learns of corrections that were not taken.
fn learning_error(model: &str, error: elias::Error, log: &Log) -> ApiError {
    match error {
        elias::Error::UnknownLabels { .. } => ApiError::NotFound(error.to_string()),
        elias::Error::Query { .. } => ApiError::BadValue(error.to_string()),
        elias::Error::CannotPredict(_) => ApiError::Conflict(error.to_string()),
        elias::Error::InUse { .. } => {
            let problem =
                "another process is writing the model, or has just done so: try again later";
            ApiError::Conflict(problem.into())
        }
        error => {
            log.line(&format!("model {model}: cannot keep corrections: {error}"));
            ApiError::Internal
        }
    }
}

/// All models, by name.
pub(crate) struct Models {
    slots: Vec<Arc<Slot>>,
}

impl Models {
    /// Loads all of them.
    ///
    /// # Errors
    /// Of the first that cannot be loaded.
    pub(crate) fn load(options: &Options, metrics: &Metrics) -> Result<Self, ServeError> {
        let slots = options.models.iter().map(|source| {
            let slot = Slot::new(source, options.max_model_bytes, metrics);
            slot.map(Arc::new).map_err(|error| ServeError::Model {
                name: source.name.clone(),
                source: error,
            })
        });
        Ok(Models {
            slots: slots.collect::<Result<_, _>>()?,
        })
    }

    /// The model of this name, or the first one.
    pub(crate) fn get(&self, name: Option<&str>) -> Result<Arc<Model>, ApiError> {
        Ok(self.slot(name)?.model())
    }

    /// The place of the model of this name, or of the first one.
    pub(crate) fn slot(&self, name: Option<&str>) -> Result<Arc<Slot>, ApiError> {
        let is_it = |slot: &&Arc<Slot>| name.is_none_or(|name| slot.source.name == name);
        let slot = self.slots.iter().find(is_it);
        slot.cloned().ok_or_else(|| {
            ApiError::NotFound("there is no model of this name: see /v1/models".into())
        })
    }

    /// Every model.
    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<Model>> {
        self.slots.iter().map(|slot| slot.model())
    }

    /// Loads again what has a new manifest, or everything. Takes as long as loading does.
    pub(crate) fn refresh(&self, is_forced: bool, options: &Options, metrics: &Metrics) {
        for slot in &self.slots {
            slot.refresh(is_forced, options, metrics);
        }
    }
}
