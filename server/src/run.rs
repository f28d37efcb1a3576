//! The whole life of the service: bind, load, answer, follow signals and new manifests, stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};

use crate::connections::serve;
use crate::options::Options;
use crate::service::{ServeError, Service};

/// Exit code after a second signal.
const EXIT_CODE: i32 = 130;

/// How long the last log lines may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or Ctrl-C, then answers what has begun and returns; a second signal ends the process at once.
///
/// SIGHUP loads the models again. `on_start` is called with the address once requests are answered.
///
/// # Errors
/// [`ServeError`] if the service cannot start.
pub fn run(options: Options, on_start: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    options.check().map_err(ServeError::Options)?;
    // Threads of connections answer short texts themselves where those that answer are free; one more reads meanwhile.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1 + options.threads)
        .enable_all()
        .build()?;
    let (stop, stopping) = watch::channel(false);
    let service = runtime.block_on(async {
        let bind = options.bind.clone();
        let bound = TcpListener::bind(&bind).await;
        let listener = bound.map_err(|source| ServeError::Bind { bind, source })?;
        let address = listener.local_addr()?;
        let loaded = tokio::task::spawn_blocking(|| Service::load(options)).await;
        let service = loaded.map_err(std::io::Error::other)??;
        follow_signals(stop, service.clone())?;
        if !address.ip().is_loopback() && service.keys().is_open() {
            let line = format!(
                "warning: {address} can be reached from other machines and no API key is set: \
                 anybody who reaches it can use it"
            );
            service.options().log.line(&line);
        }
        // In the order in which they happened.
        service.options().log.flush(LAST_WORDS);
        on_start(address);
        serve(listener, service.clone(), stopping).await;
        Ok::<_, ServeError>(service)
    })?;
    let log = &service.options().log;
    log.line("stopped");
    log.flush(LAST_WORDS);
    // A model that is being loaded is of no use any more.
    runtime.shutdown_background();
    Ok(())
}

/// Looks for new manifests for as long as the runtime lives.
pub(crate) async fn follow_manifests(service: Service) {
    loop {
        tokio::time::sleep(service.options().poll_interval).await;
        refresh(&service, false).await;
    }
}

async fn refresh(service: &Service, is_forced: bool) {
    let service = service.clone();
    let refreshed = tokio::task::spawn_blocking(move || service.refresh(is_forced));
    // A panic while loading changes nothing, and was printed.
    let _ = refreshed.await;
}

#[cfg(unix)]
fn follow_signals(stop: watch::Sender<bool>, service: Service) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let loading = service.clone();
    let is_wanted = merged(move || {
        let service = loading.clone();
        async move { refresh(&service, true).await }
    });
    tokio::spawn(async move {
        let log = service.options().log.clone();
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {
                    is_wanted.notify_one();
                    continue;
                }
            }
            if stop.send_replace(true) {
                std::process::exit(EXIT_CODE);
            }
            log.line("stopping: answering what has begun; another signal stops at once");
        }
    });
    Ok(())
}

/// Does some work whenever it is asked for; what is asked for meanwhile is done once.
#[cfg(unix)]
fn merged<F>(work: impl Fn() -> F + Send + 'static) -> Arc<Notify>
where
    F: Future<Output = ()> + Send,
{
    let is_wanted = Arc::new(Notify::new());
    let asked = Arc::clone(&is_wanted);
    tokio::spawn(async move {
        loop {
            asked.notified().await;
            work().await;
        }
    });
    is_wanted
}

#[cfg(not(unix))]
fn follow_signals(stop: watch::Sender<bool>, service: Service) -> std::io::Result<()> {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if stop.send_replace(true) {
                std::process::exit(EXIT_CODE);
            }
            let line = "stopping: answering what has begun; another Ctrl-C stops at once";
            service.options().log.line(line);
        }
    });
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn what_is_asked_for_many_times_meanwhile_is_done_once_more() {
        let begun = Arc::new(AtomicUsize::new(0));
        let may_end = Arc::new(Semaphore::new(0));
        let of_work = (Arc::clone(&begun), Arc::clone(&may_end));
        let is_wanted = merged(move || {
            let (begun, may_end) = of_work.clone();
            async move {
                begun.fetch_add(1, Ordering::Relaxed);
                may_end.acquire().await.unwrap().forget();
            }
        });
        let settle = async || {
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            begun.load(Ordering::Relaxed)
        };
        is_wanted.notify_one();
        assert_eq!(settle().await, 1);
        for _ in 0..100 {
            is_wanted.notify_one();
            assert_eq!(settle().await, 1);
        }
        may_end.add_permits(100);
        assert_eq!(settle().await, 2);
    }
}
