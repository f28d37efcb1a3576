//! The state that all requests share.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::auth::Keys;
use crate::learning::Learning;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::options::Options;
use crate::queue::Queue;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An option makes no sense.
    #[error("{0}")]
    Options(String),
    /// A model cannot be loaded.
    #[error("while loading model {name}: {source}")]
    Model {
        /// The model's name.
        name: String,
        /// The reason.
        source: elias::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {bind}: {source}; another --bind may be free")]
    Bind {
        /// The address.
        bind: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system refuses threads or signals.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// Models, queue and counters, shared by all requests.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    options: Options,
    keys: Keys,
    metrics: Arc<Metrics>,
    models: Models,
    queue: Queue,
    learning: Option<Learning>,
    n_body_bytes: AtomicUsize,
    is_draining: AtomicBool,
    /// The address that is listened on.
    bound: OnceLock<IpAddr>,
}

impl Service {
    /// Loads the models, and starts the threads that answer.
    ///
    /// # Errors
    /// [`ServeError`] if an option makes no sense or a model cannot be loaded.
    pub fn load(options: Options) -> Result<Self, ServeError> {
        options.check().map_err(ServeError::Options)?;
        let metrics = Arc::new(Metrics::new());
        let models = Models::load(&options, &metrics)?;
        let queue = Queue::start(&options, Arc::clone(&metrics))?;
        let keys = Keys::new(&options);
        let start = || Learning::start(&options, Arc::clone(&metrics));
        let learning = keys.may_learn().then(start).transpose()?;
        Ok(Service(Arc::new(Inner {
            keys,
            learning,
            options,
            metrics,
            models,
            queue,
            n_body_bytes: AtomicUsize::new(0),
            is_draining: AtomicBool::new(false),
            bound: OnceLock::new(),
        })))
    }

    /// Loads every model again beside the old one and replaces it; a model that cannot be loaded changes nothing.
    ///
    /// Takes as long as loading does.
    pub fn reload(&self) {
        self.refresh(true);
    }

    /// As [`Service::reload`], for models with a new manifest.
    pub(crate) fn refresh(&self, is_forced: bool) {
        self.models()
            .refresh(is_forced, self.options(), self.metrics());
    }

    /// Remembers the address that is listened on.
    pub(crate) fn set_bound(&self, address: IpAddr) {
        let _ = self.0.bound.set(address);
    }

    pub(crate) fn bound(&self) -> Option<IpAddr> {
        self.0.bound.get().copied()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The way to the thread that learns, if somebody may.
    pub(crate) fn learning(&self) -> Option<&Learning> {
        self.0.learning.as_ref()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn models(&self) -> &Models {
        &self.0.models
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.0.queue
    }

    /// Bytes of request bodies that are held at the moment.
    pub(crate) fn n_body_bytes(&self) -> &AtomicUsize {
        &self.0.n_body_bytes
    }

    /// From now on, the service is not ready.
    pub(crate) fn drain(&self) {
        self.0.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Relaxed)
    }
}
