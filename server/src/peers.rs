//! The open connections as others see them: which are idle, what they hold, and which of them has to go.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::service::Service;
use crate::stalling::Progress;

/// A client that took nothing for so long may have to make room for the answers of others.
const STALLED: Duration = Duration::from_secs(1);

/// Requests that a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Everything,
    /// How the service is: for the few connections beyond the limit.
    HealthOnly,
}

/// A connection.
struct State {
    access: Access,
    /// Requests that are being answered.
    n_active: AtomicUsize,
    /// Milliseconds from the first connection to the end of the last request.
    idle_since: AtomicU64,
    /// Bytes of answers that its client has not taken; changed under the lock of the table.
    n_held: AtomicUsize,
    progress: Arc<Progress>,
    /// Whether it has to end although a request is being answered.
    is_cut: AtomicBool,
    evict: Notify,
    epoch: Instant,
}

impl State {
    fn is_idle(&self) -> bool {
        self.n_active.load(Ordering::Relaxed) == 0
    }

    fn touch(&self) {
        let elapsed = self.epoch.elapsed().as_millis() as u64;
        self.idle_since.store(elapsed, Ordering::Relaxed);
    }
}

/// All open connections.
pub(crate) struct Open {
    table: Mutex<Table>,
    max_held: usize,
    n_opened: AtomicU64,
    epoch: Instant,
}

#[derive(Default)]
struct Table {
    states: HashMap<u64, Arc<State>>,
    /// Bytes of all answers that were not taken.
    n_held: usize,
}

impl Open {
    /// None yet; answers that were not taken have at most `max_held` bytes.
    pub(crate) fn new(max_held: usize) -> Arc<Self> {
        Arc::new(Open {
            table: Mutex::default(),
            max_held,
            n_opened: AtomicU64::new(0),
            epoch: Instant::now(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().states.len()
    }

    pub(crate) fn enter(self: &Arc<Self>, service: &Service, access: Access) -> Entry {
        let state = Arc::new(State {
            access,
            n_active: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            n_held: AtomicUsize::new(0),
            progress: Progress::new(),
            is_cut: AtomicBool::new(false),
            evict: Notify::new(),
            epoch: self.epoch,
        });
        state.touch();
        let id = self.n_opened.fetch_add(1, Ordering::Relaxed);
        let mut table = self.lock();
        table.states.insert(id, Arc::clone(&state));
        service.metrics().set_connections(table.states.len());
        drop(table);
        Entry {
            id,
            service: service.clone(),
            peer: Peer {
                state,
                open: Arc::clone(self),
            },
        }
    }

    /// Closes the connection that has been idle for longest; false if none is idle.
    pub(crate) fn close_idlest(&self) -> bool {
        let mut table = self.lock();
        let idle = table.states.iter().filter(|(_, state)| state.is_idle());
        let idlest =
            idle.min_by_key(|(id, state)| (state.idle_since.load(Ordering::Relaxed), **id));
        let idlest = idlest.map(|(&id, _)| id);
        let evicted = idlest.and_then(|id| table.states.remove(&id));
        if let Some(state) = &evicted {
            state.evict.notify_one();
        }
        evicted.is_some()
    }
}

impl Table {
    /// Closes the connection whose client has taken nothing of its answer for longest; false if all go on.
    fn close_slowest(&mut self) -> bool {
        let holding = self.states.iter();
        let holding = holding.filter(|(_, state)| 0 < state.n_held.load(Ordering::Relaxed));
        let slowest = holding
            .map(|(&id, state)| (state.progress.age(), id))
            .max()
            .filter(|(age, _)| STALLED <= *age);
        let Some(state) = slowest.and_then(|(_, id)| self.states.remove(&id)) else {
            return false;
        };
        self.n_held -= state.n_held.swap(0, Ordering::Relaxed);
        state.is_cut.store(true, Ordering::Relaxed);
        state.evict.notify_one();
        true
    }
}

/// A connection, as its requests know it.
#[derive(Clone)]
pub(crate) struct Peer {
    state: Arc<State>,
    open: Arc<Open>,
}

impl Peer {
    pub(crate) fn access(&self) -> Access {
        self.state.access
    }

    /// A request begins.
    pub(crate) fn begin(&self) -> Active {
        self.state.n_active.fetch_add(1, Ordering::Relaxed);
        Active(Arc::clone(&self.state))
    }

    /// Counts an answer until the result is dropped; none if it does not fit.
    pub(crate) fn hold(&self, n_bytes: usize) -> Option<Share> {
        let mut table = self.open.lock();
        while 0 < table.n_held && self.open.max_held < table.n_held.saturating_add(n_bytes) {
            if !table.close_slowest() {
                return None;
            }
        }
        // The time in which nothing was asked for is no delay of the client's.
        if self.state.n_held.fetch_add(n_bytes, Ordering::Relaxed) == 0 {
            self.state.progress.touch();
        }
        table.n_held += n_bytes;
        Some(Share {
            peer: self.clone(),
            n_bytes,
        })
    }
}

/// A part of the memory for answers.
pub(crate) struct Share {
    peer: Peer,
    n_bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut table = self.peer.open.lock();
        let held = &self.peer.state.n_held;
        // Nothing of it is left if the connection was cut.
        let n_bytes = held.load(Ordering::Relaxed).min(self.n_bytes);
        held.fetch_sub(n_bytes, Ordering::Relaxed);
        table.n_held -= n_bytes;
    }
}

/// A request that is being answered, until its answer is handed over.
pub(crate) struct Active(Arc<State>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.touch();
        self.0.n_active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection's place among the open ones, which it leaves when it ends.
pub(crate) struct Entry {
    id: u64,
    service: Service,
    pub(crate) peer: Peer,
}

impl Entry {
    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.peer.state.progress)
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        self.service.options().idle_timeout
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.peer.state.is_idle()
    }

    /// Waits until the connection has to make room for another.
    pub(crate) async fn evicted(&self) {
        let state = &self.peer.state;
        loop {
            state.evict.notified().await;
            // A request may have come in between.
            if state.is_idle() || state.is_cut.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.peer.open.lock();
        table.states.remove(&self.id);
        self.service.metrics().set_connections(table.states.len());
    }
}
