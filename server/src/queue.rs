//! The bounded queue between connections and the threads that answer.
//!
//! A thread that is free takes what waits, so a request that finds the queue empty is answered at once: nothing is
//! delayed to fill a batch. A short text that finds the queue empty and one of these threads free is answered by the
//! thread that read it: waking another one and being woken by it takes a good part of the time of an answer. No more
//! texts are answered so than there are free threads, and connections have one thread more than that, so that it reads
//! meanwhile. Predictions that wait together for the same model are taken together; a transformer
//! answers them in one pass. The bound counts texts, and what does not fit is refused before it is queued.
//!
//! A job whose client has gone, or was told that it took too long, is skipped, or stopped after the text that is being
//! answered. A thread that is on one text for longer than any client waits is given up: another takes its place, and
//! nothing waits for it, not even the end of the process.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use elias::{LabelRules, Query};
use tokio::sync::oneshot;

use crate::error::ApiError;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::models::Model;
use crate::options::Options;
use crate::predict::Labels;

/// Texts that are taken together, and texts of a large request that are answered without a pause.
const MAX_BATCH: usize = 32;

/// Bytes of a text that a thread of connections answers itself: it takes a fraction of a millisecond.
const SHORT: usize = 2 << 10;

/// The answers to some texts of a request, in their order.
pub(crate) type Answers = Result<Vec<Labels>, ApiError>;

/// Texts of one request that are waiting for their labels.
struct Prediction {
    model: Arc<Model>,
    query: Query,
    texts: Arc<[String]>,
    /// Those of the texts that this job is about.
    range: Range<usize>,
    reply: oneshot::Sender<Answers>,
}

enum Job {
    Predict(Prediction),
    Other(Box<dyn FnOnce() + Send>),
}

impl Job {
    fn n_texts(&self) -> usize {
        match self {
            Job::Predict(prediction) => prediction.range.len(),
            Job::Other(_) => 1,
        }
    }
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    n_texts: usize,
    n_idle_threads: usize,
    /// Texts that threads of connections are answering, each in the place of an idle thread.
    n_answered_outside: usize,
    is_closed: bool,
}

impl Waiting {
    /// Threads that neither answer nor have given their place to a thread of connections.
    fn n_free(&self) -> usize {
        self.n_idle_threads.saturating_sub(self.n_answered_outside)
    }
}

struct Shared {
    waiting: Mutex<Waiting>,
    has_work: Condvar,
    /// Told when the queue is closed.
    is_over: Condvar,
    max_texts: usize,
    n_threads: usize,
    /// The time of a request.
    timeout: Duration,
    metrics: Arc<Metrics>,
    log: Log,
}

/// The queue and its threads, which end by themselves when it is dropped and everything queued is answered.
pub(crate) struct Queue {
    shared: Arc<Shared>,
}

fn labels_of(model: &Model, text: &str, query: &Query) -> elias::Result<Labels> {
    model.predictor.predict(text, query).map(Labels::new)
}

/// A thread that answers, as the others see it.
#[derive(Default)]
struct Worker {
    /// When its job began, if it has one.
    busy_since: Mutex<Option<Instant>>,
    is_given_up: AtomicBool,
}

impl Worker {
    fn set_busy(&self, since: Option<Instant>) {
        *self.lock() = since;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.busy_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start(options: &Options, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            has_work: Condvar::new(),
            is_over: Condvar::new(),
            max_texts: options.max_queue,
            n_threads: options.threads,
            timeout: options.timeout,
            metrics,
            log: options.log.clone(),
        });
        // Dropped if a thread is refused, which ends those that were started.
        let queue = Queue { shared };
        let workers = (0..options.threads).map(|_| queue.shared.start_worker());
        let workers = workers.collect::<std::io::Result<Vec<_>>>()?;
        let shared = Arc::clone(&queue.shared);
        let thread = std::thread::Builder::new().name("elias-watch".into());
        thread.spawn(move || shared.watch(workers))?;
        Ok(queue)
    }

    /// Answers one short text on the caller's thread; None if it has to be queued.
    pub(crate) fn predict_here(
        &self,
        model: &Model,
        query: &Query,
        texts: &[String],
    ) -> Option<Answers> {
        let [text] = texts else { return None };
        let is_little =
            text.len() <= SHORT && query.rules == LabelRules::default() && !model.gains_by_batches;
        if !is_little {
            return None;
        }
        let _place = Place::take(&self.shared)?;
        self.shared.metrics.observe_batch(1);
        let answer = || labels_of(model, text, query);
        Some(match catch_unwind(AssertUnwindSafe(answer)) {
            Ok(answered) => self.shared.checked(answered).map(|answers| vec![answers]),
            Err(_) => {
                self.shared.log_panic();
                Err(ApiError::Internal)
            }
        })
    }

    /// Queues the texts of a request, in parts that several threads can answer.
    ///
    /// # Errors
    /// [`ApiError::QueueFull`]; then none of them is queued.
    pub(crate) fn predict(
        &self,
        model: &Arc<Model>,
        query: Query,
        texts: Vec<String>,
    ) -> Result<Vec<oneshot::Receiver<Answers>>, ApiError> {
        let texts: Arc<[String]> = texts.into();
        let starts = (0..texts.len()).step_by(MAX_BATCH);
        let (jobs, replies) = starts
            .map(|start| {
                let (reply, answers) = oneshot::channel();
                let job = Job::Predict(Prediction {
                    model: Arc::clone(model),
                    query: query.clone(),
                    texts: Arc::clone(&texts),
                    range: start..(start + MAX_BATCH).min(texts.len()),
                    reply,
                });
                (job, answers)
            })
            .unzip();
        self.push(jobs)?;
        Ok(replies)
    }

    /// Queues other work, which counts as one text.
    ///
    /// # Errors
    /// As [`Queue::predict`].
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, ApiError> {
        let (reply, result) = oneshot::channel();
        let job = Job::Other(Box::new(move || {
            if !reply.is_closed() {
                let _ = reply.send(work());
            }
        }));
        self.push(vec![job])?;
        Ok(result)
    }

    fn push(&self, jobs: Vec<Job>) -> Result<(), ApiError> {
        let n_texts: usize = jobs.iter().map(Job::n_texts).sum();
        let mut waiting = self.shared.lock();
        if waiting.is_closed {
            return Err(ApiError::ShuttingDown);
        }
        if self.shared.max_texts < waiting.n_texts + n_texts {
            return Err(ApiError::QueueFull);
        }
        waiting.n_texts += n_texts;
        self.shared.metrics.set_queue(waiting.n_texts);
        let n_woken = jobs.len().min(waiting.n_free());
        waiting.jobs.extend(jobs);
        drop(waiting);
        for _ in 0..n_woken {
            self.shared.has_work.notify_one();
        }
        Ok(())
    }
}

/// The place of an idle thread, as long as a thread of connections answers instead.
struct Place<'a>(&'a Shared);

impl<'a> Place<'a> {
    /// A place, if nothing waits and there is one.
    fn take(shared: &'a Shared) -> Option<Self> {
        let mut waiting = shared.lock();
        let is_free = waiting.jobs.is_empty() && !waiting.is_closed && waiting.n_free() > 0;
        is_free.then(|| {
            waiting.n_answered_outside += 1;
            Place(shared)
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.n_answered_outside -= 1;
        // What was queued meanwhile may have woken nobody.
        let must_wake = !waiting.jobs.is_empty();
        drop(waiting);
        if must_wake {
            self.0.has_work.notify_one();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.has_work.notify_all();
        self.shared.is_over.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_worker(self: &Arc<Self>) -> std::io::Result<Arc<Worker>> {
        let (shared, worker) = (Arc::clone(self), Arc::<Worker>::default());
        let of_thread = Arc::clone(&worker);
        let thread = std::thread::Builder::new().name("elias-answer".into());
        thread.spawn(move || shared.work(&of_thread))?;
        Ok(worker)
    }

    /// Gives up threads that are on one text for longer than any client waits, until the queue is closed.
    ///
    /// Such a thread cannot be ended from outside; it ends when it is done. There are at most twice as many as asked
    /// for, so that one kind of text cannot take every core.
    fn watch(self: Arc<Self>, mut workers: Vec<Arc<Worker>>) {
        let pause = self.timeout.min(Duration::from_secs(1));
        let mut waiting = self.lock();
        while !waiting.is_closed {
            let woken = self.is_over.wait_timeout(waiting, pause);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
            // Those that have ended are known to nobody else.
            workers.retain(|worker| 1 < Arc::strong_count(worker));
            for place in 0..workers.len() {
                let worker = &workers[place];
                let began = *worker.lock();
                let is_overdue = began.is_some_and(|began| self.timeout + pause < began.elapsed());
                let is_new = is_overdue && !worker.is_given_up.load(Ordering::Relaxed);
                if is_new
                    && workers.len() < 2 * self.n_threads
                    && let Ok(successor) = self.start_worker()
                {
                    worker.is_given_up.store(true, Ordering::Relaxed);
                    workers.push(successor);
                    self.metrics.count_overdue();
                    self.log.line(
                        "a text takes longer than the time of a request: another thread takes over",
                    );
                }
            }
            waiting = self.lock();
        }
    }

    /// Answers until the queue is closed and empty, or the thread is given up.
    fn work(&self, worker: &Worker) {
        while !worker.is_given_up.load(Ordering::Relaxed)
            && let Some(batch) = self.take()
        {
            let answered = catch_unwind(AssertUnwindSafe(|| self.answer(worker, batch)));
            worker.set_busy(None);
            if answered.is_err() {
                // Those who wait learn of it because their reply is dropped.
                self.log_panic();
            }
        }
    }

    /// Waits for jobs and takes a fair share of them: one, or predictions that one pass can answer.
    fn take(&self) -> Option<Vec<Job>> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting.n_idle_threads += 1;
            let woken = self.has_work.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
            waiting.n_idle_threads -= 1;
        }
        let share = waiting.n_texts.div_ceil(self.n_threads).min(MAX_BATCH);
        let mut batch: Vec<Job> = waiting.jobs.pop_front().into_iter().collect();
        let mut n_texts = batch.iter().map(Job::n_texts).sum::<usize>();
        while let (Some(Job::Predict(first)), Some(Job::Predict(next))) =
            (batch.first(), waiting.jobs.front())
        {
            let is_alike = Arc::ptr_eq(&first.model, &next.model) && first.query == next.query;
            if !is_alike || share < n_texts + next.range.len() {
                break;
            }
            n_texts += next.range.len();
            batch.extend(waiting.jobs.pop_front());
        }
        waiting.n_texts -= n_texts;
        self.metrics.set_queue(waiting.n_texts);
        drop(waiting);
        self.metrics.observe_batch(n_texts);
        Some(batch)
    }

    fn answer(&self, worker: &Worker, batch: Vec<Job>) {
        worker.set_busy(Some(Instant::now()));
        let mut predictions = Vec::with_capacity(batch.len());
        for job in batch {
            match job {
                Job::Predict(prediction) if prediction.reply.is_closed() => {}
                Job::Predict(prediction) => predictions.push(prediction),
                Job::Other(work) => work(),
            }
        }
        let Some(first) = predictions.first() else {
            return;
        };
        let (model, query) = (Arc::clone(&first.model), first.query.clone());
        if !model.gains_by_batches {
            for prediction in predictions {
                let texts = prediction.texts[prediction.range].iter();
                // Nobody waits for the rest of a job whose time is over.
                let wanted = texts.take_while(|_| !prediction.reply.is_closed());
                let answers = wanted.map(|text| {
                    worker.set_busy(Some(Instant::now()));
                    labels_of(&model, text, &query)
                });
                let answers = answers.collect();
                let _ = prediction.reply.send(self.checked(answers));
            }
            return;
        }
        let texts = predictions.iter();
        let texts = texts.flat_map(|one| &one.texts[one.range.clone()]);
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        let predicted = model.predictor.predict_batch(&texts, &query);
        let labels = predicted
            .map(|predictions| predictions.into_iter().map(Labels::new).collect::<Vec<_>>());
        match self.checked(labels) {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for prediction in predictions {
                    let own = answers.by_ref().take(prediction.range.len()).collect();
                    let _ = prediction.reply.send(Ok(own));
                }
            }
            Err(error) => {
                for prediction in predictions {
                    let _ = prediction.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn log_panic(&self) {
        self.log
            .line("a request made the service panic; this is a bug of elias");
    }

    fn checked<T>(&self, result: elias::Result<T>) -> Result<T, ApiError> {
        result.map_err(|error| {
            self.log.line(&format!("a model cannot answer: {error}"));
            ApiError::Internal
        })
    }
}
