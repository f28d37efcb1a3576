//! Connections: how many there may be, how long they may be silent, and how they end.
//!
//! A connection that is silent, sends the head of a request slowly or does not take its answer is closed after the
//! idle timeout. Where there are too many, the one that has been idle for longest makes room. When the service stops,
//! requests that have begun are answered; connections without one are closed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::guarded_body::GuardedBody;
use crate::router::router;
use crate::run::follow_manifests;
use crate::service::Service;
use crate::stalling::WriteTimeout;

/// Room for the head of a request, and for what is read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// When the service stops: for how long a connection without a request may go on, in case one is on its way.
const GRACE: Duration = Duration::from_secs(1);
/// How long to wait if the system refuses a connection.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Answers connections until `stop` is true and everything that had begun is answered; loads models with new
/// manifests meanwhile.
pub async fn serve(listener: TcpListener, service: Service, mut stop: watch::Receiver<bool>) {
    let router = router(&service);
    let following = tokio::spawn(follow_manifests(service.clone()));
    let open = Arc::new(Open::default());
    let max_connections = room_for(service.options().max_connections);
    let mut tasks = JoinSet::new();
    let mut is_refusal_logged = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|&stop| stop) => break,
        };
        while tasks.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                // If all of them are busy, this one is refused.
                if open.len() < max_connections || open.close_idlest() {
                    let entry = open.enter(&service);
                    tasks.spawn(answer(stream, router.clone(), entry, stop.clone()));
                }
            }
            Err(error) => {
                if !is_refusal_logged {
                    let line = format!("the system refuses a connection: {error}");
                    service.options().log.line(&line);
                    is_refusal_logged = true;
                }
                open.close_idlest();
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
        }
    }
    service.drain();
    following.abort();
    // Connections that the system has already accepted may carry requests.
    while let Ok(Ok((stream, _))) = timeout(Duration::ZERO, listener.accept()).await {
        let entry = open.enter(&service);
        tasks.spawn(answer(stream, router.clone(), entry, stop.clone()));
    }
    drop(listener);
    let all = async { while tasks.join_next().await.is_some() {} };
    let limit = service.options().timeout + 2 * GRACE;
    if timeout(limit, all).await.is_err() {
        let line = "some connections did not end in time and were closed";
        service.options().log.line(line);
    }
}

async fn answer(stream: TcpStream, router: Router, entry: Entry, mut stop: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let idle_timeout = entry.service.options().idle_timeout;
    let state = Arc::clone(&entry.state);
    let on_request = service_fn(|request: Request<Incoming>| {
        let (router, active) = (router.clone(), Active::begin(&state));
        async move {
            let answered = router.oneshot(request.map(Body::new)).await;
            let response = answered.unwrap_or_else(|never: Infallible| match never {});
            Ok::<_, Infallible>(response.map(|body| GuardedBody::new(body, active)))
        }
    });
    let stream = TokioIo::new(WriteTimeout::new(stream, idle_timeout));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle_timeout)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(stream, on_request)
    );
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            // A request may have come in between.
            () = entry.state.evict.notified() => if entry.state.is_idle() { return },
            _ = stop.wait_for(|&stop| stop) => break,
        }
    }
    connection.as_mut().graceful_shutdown();
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = tokio::time::sleep(GRACE) => if entry.state.is_idle() { return },
        }
    }
}

/// A connection as others see it.
struct State {
    /// Requests that are being answered.
    n_active: AtomicUsize,
    /// Milliseconds from the first connection to the end of the last request.
    idle_since: AtomicU64,
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

/// A request that is being answered, until its answer is handed over.
pub(crate) struct Active(Arc<State>);

impl Active {
    fn begin(state: &Arc<State>) -> Self {
        state.n_active.fetch_add(1, Ordering::Relaxed);
        Active(Arc::clone(state))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.touch();
        self.0.n_active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All open connections.
struct Open {
    states: Mutex<HashMap<u64, Arc<State>>>,
    n_opened: AtomicU64,
    epoch: Instant,
}

impl Default for Open {
    fn default() -> Self {
        Open {
            states: Mutex::default(),
            n_opened: AtomicU64::new(0),
            epoch: Instant::now(),
        }
    }
}

impl Open {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<State>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn len(&self) -> usize {
        self.lock().len()
    }

    fn enter(self: &Arc<Self>, service: &Service) -> Entry {
        let state = Arc::new(State {
            n_active: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            evict: Notify::new(),
            epoch: self.epoch,
        });
        state.touch();
        let id = self.n_opened.fetch_add(1, Ordering::Relaxed);
        let mut states = self.lock();
        states.insert(id, Arc::clone(&state));
        service.metrics().set_connections(states.len());
        drop(states);
        Entry {
            id,
            state,
            open: Arc::clone(self),
            service: service.clone(),
        }
    }

    /// Closes the connection that has been idle for longest; false if none is idle.
    fn close_idlest(&self) -> bool {
        let mut states = self.lock();
        let idle = states.iter().filter(|(_, state)| state.is_idle());
        let idlest =
            idle.min_by_key(|(id, state)| (state.idle_since.load(Ordering::Relaxed), **id));
        let evicted = idlest.map(|(&id, _)| id).and_then(|id| states.remove(&id));
        if let Some(state) = &evicted {
            state.evict.notify_one();
        }
        evicted.is_some()
    }
}

/// A connection's place among the open ones, which it leaves when it ends.
struct Entry {
    id: u64,
    state: Arc<State>,
    open: Arc<Open>,
    service: Service,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut states = self.open.lock();
        states.remove(&self.id);
        self.service.metrics().set_connections(states.len());
    }
}

/// Makes room for this many connections where the system allows it; otherwise, how many it allows.
fn room_for(max_connections: usize) -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        /// Files besides connections.
        const RESERVE: u64 = 64;
        let wanted = max_connections as u64 + RESERVE;
        let limit = getrlimit(Resource::Nofile);
        let mut allowed = limit.current.unwrap_or(u64::MAX);
        if allowed < wanted {
            let raised = wanted.min(limit.maximum.unwrap_or(u64::MAX));
            let current = Some(raised);
            if setrlimit(Resource::Nofile, Rlimit { current, ..limit }).is_ok() {
                allowed = raised;
            }
        }
        let allowed = allowed.saturating_sub(RESERVE).max(1);
        usize::try_from(allowed).map_or(max_connections, |allowed| allowed.min(max_connections))
    }
    #[cfg(not(unix))]
    max_connections
}
