//! The thread that takes corrections into the models.
//!
//! Corrections that wait for a model when the thread is free are learned together: one sync of the journal and one replacement of the
//! model. Nothing is delayed to fill a batch, and threads that answer never wait for the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use elias::Correction;
use tokio::sync::oneshot;

use crate::body::Held;
use crate::error::ApiError;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::models::Slot;
use crate::options::Options;

/// Corrections that are learned together, so that no request waits for long.
const MAX_BATCH: usize = 4096;

/// The number of corrections that the model has learned since it was written.
pub(crate) type Learned = Result<usize, ApiError>;

/// Corrections of one request that wait.
pub(crate) struct Waiting {
    pub(crate) slot: Arc<Slot>,
    pub(crate) corrections: Vec<Correction>,
    pub(crate) reply: oneshot::Sender<Learned>,
    /// The body that they were read from, which counts until they are learned.
    pub(crate) _body: Held,
}

/// The way to the thread, which ends by itself when this is dropped and everything that waits is learned.
pub(crate) struct Learning(SyncSender<Waiting>);

impl Learning {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn start(options: &Options, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(options.max_queue);
        let log = options.log.clone();
        let thread = std::thread::Builder::new().name("elias-learn".into());
        thread.spawn(move || learn_all(&receiver, &metrics, &log))?;
        Ok(Learning(sender))
    }

    /// Lets corrections wait.
    ///
    /// # Errors
    /// [`ApiError::QueueFull`].
    pub(crate) fn push(&self, waiting: Waiting) -> Result<(), ApiError> {
        self.0.try_send(waiting).map_err(|error| match error {
            TrySendError::Full(_) => ApiError::QueueFull,
            TrySendError::Disconnected(_) => ApiError::Internal,
        })
    }
}

fn learn_all(receiver: &Receiver<Waiting>, metrics: &Metrics, log: &Log) {
    while let Ok(first) = receiver.recv() {
        let mut n_corrections = first.corrections.len();
        let mut batch = vec![first];
        while n_corrections < MAX_BATCH
            && let Ok(next) = receiver.try_recv()
        {
            n_corrections += next.corrections.len();
            batch.push(next);
        }
        while let Some(first) = batch.first() {
            let slot = Arc::clone(&first.slot);
            let is_own = |waiting: &Waiting| Arc::ptr_eq(&waiting.slot, &slot);
            let (own, others) = batch.into_iter().partition(is_own);
            batch = others;
            let learn = AssertUnwindSafe(|| slot.learn(own, metrics, log));
            if catch_unwind(learn).is_err() {
                // Those who wait learn of it because their reply is dropped.
                log.line("corrections made the service panic; this is a bug of elias");
            }
        }
    }
}
