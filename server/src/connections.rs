//! Connections: how many there may be, how long they may be silent, and how they end.
//!
//! A connection that is silent, sends the head of a request slowly or does not take its answer is closed after the
//! idle timeout. Where there are too many, the one that has been idle for longest makes room; where all are busy, a few
//! more may ask how the service is. When the service stops, requests that have begun are answered; connections without
//! one are closed.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::guarded_body::GuardedBody;
use crate::peers::{Access, Entry, Open};
use crate::router::router;
use crate::run::follow_manifests;
use crate::service::Service;
use crate::stalling::WriteTimeout;

/// Room for the head of a request, and for what is read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// When the service stops: for how long a connection without a request may go on, in case one is on its way.
const GRACE: Duration = Duration::from_secs(1);
/// Connections beyond the limit, which can ask how the service is.
const N_RESERVED: usize = 8;
/// How long to wait if the system refuses a connection.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Answers connections until `stop` is true and everything that had begun is answered; loads models with new
/// manifests meanwhile.
pub async fn serve(listener: TcpListener, service: Service, mut stop: watch::Receiver<bool>) {
    let router = router(&service);
    let following = tokio::spawn(follow_manifests(service.clone()));
    let open = Open::new(service.options().max_answer_bytes);
    let max_connections = room_for(&service);
    if let Ok(address) = listener.local_addr() {
        service.set_bound(address.ip());
    }
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
                let access = if open.len() < max_connections || open.close_idlest() {
                    Access::Everything
                } else if open.len() < max_connections + N_RESERVED {
                    Access::HealthOnly
                } else {
                    // All of them are busy.
                    continue;
                };
                let entry = open.enter(&service, access);
                tasks.spawn(answer(stream, router.clone(), entry, stop.clone()));
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
        let entry = open.enter(&service, Access::Everything);
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
    let idle_timeout = entry.idle_timeout();
    let on_request = service_fn(|mut request: Request<Incoming>| {
        let (router, active) = (router.clone(), entry.peer.begin());
        request.extensions_mut().insert(entry.peer.clone());
        async move {
            let answered = router.oneshot(request.map(Body::new)).await;
            let response = answered.unwrap_or_else(|never: Infallible| match never {});
            Ok::<_, Infallible>(response.map(|body| GuardedBody::new(body, active)))
        }
    });
    let stream = TokioIo::new(WriteTimeout::new(stream, idle_timeout, entry.progress()));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle_timeout)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(stream, on_request)
    );
    tokio::select! {
        _ = connection.as_mut() => return,
        () = entry.evicted() => return,
        _ = stop.wait_for(|&stop| stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = entry.evicted() => return,
            () = tokio::time::sleep(GRACE) => if entry.is_idle() { return },
        }
    }
}

/// Makes room for this many connections where the system allows it; otherwise, how many it allows.
fn room_for(service: &Service) -> usize {
    let max_connections = service.options().max_connections;
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        /// Files besides connections.
        const OTHER_FILES: u64 = 32;
        let others = OTHER_FILES + N_RESERVED as u64;
        let wanted = max_connections as u64 + others;
        let limit = getrlimit(Resource::Nofile);
        let mut allowed = limit.current.unwrap_or(u64::MAX);
        if allowed < wanted {
            let raised = wanted.min(limit.maximum.unwrap_or(u64::MAX));
            let current = Some(raised);
            if setrlimit(Resource::Nofile, Rlimit { current, ..limit }).is_ok() {
                allowed = raised;
            }
        }
        let n_connections = allowed.saturating_sub(others).max(1) as usize;
        if n_connections < max_connections {
            service.options().log.line(&format!(
                "warning: the system allows {allowed} open files, so there is room for {n_connections} connections, \
                 not for {max_connections}: raise the limit (ulimit -n)"
            ));
        }
        n_connections.min(max_connections)
    }
    #[cfg(not(unix))]
    max_connections
}
