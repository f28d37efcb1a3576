//! Training, with Ctrl-C and progress.
//!
//! The training has a thread of its own. The thread of Python that called waits for its events, hands them to the
//! callback and looks for signals, which the interpreter handles on its main thread only. On Ctrl-C, or if the callback
//! fails, the training is asked to stop after its step; with a directory, it can be resumed then.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use elias::data;
use elias::{Config, Error, Event, Predictor, Trainer, tools};
use elias_cli::shared;
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::border::{caught, pool};
use crate::dataset::Dataset;
use crate::errors::Failure;
use crate::events::to_dict;
use crate::model::Core;
use crate::settings::Settings;

/// Time between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where and how a training runs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Run {
    out: Option<PathBuf>,
    resume: bool,
    overwrite: bool,
    /// Seconds.
    checkpoint_every: Option<f64>,
    /// Bytes.
    memory_limit: Option<usize>,
    threads: Option<usize>,
    /// The one training of a member that is wanted, which leaves no model but is kept for one.
    only_run: Option<usize>,
    /// Where such trainings are.
    runs_from: Vec<PathBuf>,
}

/// Trains a model on a data set.
#[pyfunction]
#[pyo3(signature = (data, settings, run, validation=None, on_event=None))]
pub(crate) fn train(
    py: Python<'_>,
    data: &Dataset,
    settings: Settings,
    run: Run,
    validation: Option<&Dataset>,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Option<Core>> {
    let config = settings.config()?;
    check(&config, &run)?;
    let pool = pool(py, run.threads)?;
    let training = Training {
        config,
        data: &data.data,
        validation: validation.map(|validation| &validation.data),
        run: &run,
        pool: &pool,
    };
    let predictor = py.detach(|| watch(&training, on_event.as_ref()))?;
    Ok(predictor.map(|predictor| Core::new(predictor, run.out.as_deref())))
}

/// Reports settings that no data could use, and a directory that is taken, before anything is computed.
fn check(config: &Config, run: &Run) -> Result<(), Failure> {
    config.validate()?;
    let Some(out) = &run.out else {
        if run.resume || run.overwrite {
            return Err(Failure::value("resume and overwrite need out"));
        }
        return Ok(());
    };
    tools::check_not_in_use(out)?;
    let parent = out.parent().filter(|parent| *parent != Path::new(""));
    if let Some(Err(error)) = parent.map(std::fs::metadata) {
        return Err(data::missing(out, error).into());
    }
    if !run.overwrite && !run.resume && is_taken(out) {
        let problem = if tools::is_unfinished(out) {
            "contains an unfinished training: resume=True continues it, overwrite=True discards it"
        } else {
            "already exists: overwrite=True replaces it"
        };
        return Err(Failure::value(format!("{} {problem}", out.display())));
    }
    Ok(())
}

fn is_taken(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

/// A training that is ready to run.
struct Training<'a> {
    config: Config,
    data: &'a elias::Dataset,
    validation: Option<&'a elias::Dataset>,
    run: &'a Run,
    pool: &'a ThreadPool,
}

impl Training<'_> {
    /// Trains, sending the events and stopping when asked to.
    fn run(
        &self,
        events: &Sender<Event>,
        must_stop: &AtomicBool,
    ) -> Result<Option<Predictor>, Failure> {
        let events = std::sync::Mutex::new(events.clone());
        let observer = |event: &Event| {
            if let Ok(events) = events.lock() {
                // Nobody listens after the end.
                let _ = events.send(event.clone());
            }
            if must_stop.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let mut trainer = Trainer::new(self.config.clone()).observer(&observer);
        if let Some(validation) = self.validation {
            trainer = trainer.validation(validation);
        }
        if self.run.resume {
            trainer = trainer.resume();
        }
        if self.run.overwrite {
            trainer = trainer.overwrite();
        }
        if let Some(seconds) = self.run.checkpoint_every {
            let interval = Duration::try_from_secs_f64(seconds)
                .map_err(|_| Failure::value("checkpoint_every: expected seconds"))?;
            trainer = trainer.checkpoint_every(interval);
        }
        trainer = trainer.take_runs_from(self.run.runs_from.clone());
        let prepared = trainer.prepare(self.data)?;
        let estimate = prepared.peak_memory(self.pool.current_num_threads());
        shared::check_memory(&estimate, self.run.memory_limit)?;
        let trained = match (&self.run.out, self.run.only_run) {
            (Some(out), Some(run)) => prepared.train_run(out, run).map(|()| None),
            (Some(out), None) => prepared.train_to(out).map(Some),
            (None, _) => prepared.train().map(Some),
        };
        match trained {
            Err(Error::Stopped) => Err(Failure::other("stopped on request")),
            trained => Ok(trained?),
        }
    }
}

/// Runs a training on a thread of its own and watches it from this one.
fn watch(training: &Training<'_>, on_event: Option<&Py<PyAny>>) -> PyResult<Option<Predictor>> {
    let must_stop = AtomicBool::new(false);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let must_stop = &must_stop;
        let work = move || {
            // Dropped at the end, which ends the watch.
            let sender = sender;
            caught(|| training.pool.install(|| training.run(&sender, must_stop)))
        };
        let builder = std::thread::Builder::new().name("elias-train".into());
        let thread = builder
            .spawn_scoped(scope, work)
            .map_err(|error| Failure::other(format!("cannot start a thread: {error}")))?;
        let raised = follow(&receiver, on_event, must_stop);
        let trained = thread
            .join()
            .unwrap_or_else(|_| Err(Failure::other("the training's thread ended")));
        match raised {
            // A training that was complete before it could stop is lost without a directory, kept with one.
            Some(raised) => Err(raised),
            None => Ok(trained?),
        }
    })
}

/// Hands events to the callback until the training ends; returns what a signal or the callback raised.
fn follow(
    events: &Receiver<Event>,
    on_event: Option<&Py<PyAny>>,
    must_stop: &AtomicBool,
) -> Option<PyErr> {
    let mut raised = None;
    let mut looked = Instant::now();
    loop {
        let event = match events.recv_timeout(LOOK_EVERY) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return raised,
        };
        let must_look = event.is_none() || LOOK_EVERY <= looked.elapsed();
        let on_event = event.as_ref().zip(on_event);
        if raised.is_some() || (!must_look && on_event.is_none()) {
            continue;
        }
        let outcome = Python::attach(|py| {
            if let Some((event, callback)) = on_event {
                callback.call1(py, (to_dict(py, event)?,))?;
            }
            py.check_signals()
        });
        looked = Instant::now();
        if let Err(error) = outcome {
            must_stop.store(true, Ordering::Relaxed);
            raised = Some(error);
        }
    }
}
