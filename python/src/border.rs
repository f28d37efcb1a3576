//! Crossing from Python into the library: without the interpreter's lock, on a pool of this process, without panics.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Failure, value_error};

/// Threads per core beyond which more of them only cost time.
const MAX_THREADS_PER_CORE: usize = 8;

/// The pools of one process, by their number of threads.
///
/// The threads of a pool do not survive a fork, so a child that used its parent's pool would wait forever. The lock is
/// taken only while the interpreter's lock is held, which a fork from Python holds as well: it is never taken in a
/// child at birth.
struct Pools {
    process: u32,
    of_size: Vec<(usize, Arc<ThreadPool>)>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools {
    process: 0,
    of_size: Vec::new(),
});

/// The pool of this process with that many threads; by default `RAYON_NUM_THREADS`, or one per core.
pub(crate) fn pool(_py: Python<'_>, n_threads: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let n_threads = match n_threads {
        // The builder then looks at the environment.
        None => 0,
        Some(0) => return Err(value_error("threads is 0, expected at least 1")),
        Some(n_threads) => n_threads.min(MAX_THREADS_PER_CORE * n_cores),
    };
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if pools.process != process {
        // The threads of the parent's pools are not here, so nothing may wait for them.
        std::mem::forget(std::mem::take(&mut pools.of_size));
        pools.process = process;
    }
    let known = pools.of_size.iter().find(|(size, _)| *size == n_threads);
    if let Some((_, pool)) = known {
        return Ok(Arc::clone(pool));
    }
    let built = ThreadPoolBuilder::new().num_threads(n_threads).build();
    let pool = built.map_err(|error| Failure::other(format!("cannot start threads: {error}")))?;
    let pool = Arc::new(pool);
    pools.of_size.push((n_threads, Arc::clone(&pool)));
    Ok(pool)
}

/// Runs work of the library on a pool, without the interpreter's lock.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    n_threads: Option<usize>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let pool = pool(py, n_threads)?;
    Ok(py.detach(|| caught(|| pool.install(work)))?)
}

/// Runs work that uses no pool on this thread, without the interpreter's lock.
pub(crate) fn run_here<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    Ok(py.detach(|| caught(work))?)
}

/// The result of some work; a panic is a failure like any other.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What the work may have left half done is behind locks that ignore poison, or is dropped.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let reason = reason(&*panic);
        Err(Failure::other(format!(
            "internal error, please report it: {reason}"
        )))
    })
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given")
}
