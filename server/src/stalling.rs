//! A stream whose peer must take what is written to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Bytes that a peer must take within the timeout, or all that there are.
const LEAST_BYTES: usize = 64 << 10;

/// When a peer last took a fair share of what was written to it.
pub(crate) struct Progress {
    start: Instant,
    /// Milliseconds since the start.
    at: AtomicU64,
}

impl Progress {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Progress {
            start: Instant::now(),
            at: AtomicU64::new(0),
        })
    }

    pub(crate) fn touch(&self) {
        let elapsed = self.start.elapsed().as_millis() as u64;
        self.at.store(elapsed, Ordering::Relaxed);
    }

    /// For how long there was none.
    pub(crate) fn age(&self) -> Duration {
        let at = Duration::from_millis(self.at.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(at)
    }
}

/// A stream that fails if its peer takes too little for a while.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    progress: Arc<Progress>,
    /// Bytes that were taken since the last progress.
    n_taken: usize,
    /// Runs from the first write that waits to the next progress.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration, progress: Arc<Progress>) -> Self {
        WriteTimeout {
            stream,
            timeout,
            progress,
            n_taken: 0,
            stalled: None,
        }
    }

    /// The outcome of a write, or an error if too little was taken for too long.
    fn unless_stalled(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(n_bytes)) = &written {
            self.n_taken += n_bytes;
            if LEAST_BYTES <= self.n_taken {
                self.go_on();
            }
        }
        if written.is_ready() {
            return written;
        }
        let deadline = Instant::now() + self.timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn go_on(&mut self) {
        (self.n_taken, self.stalled) = (0, None);
        self.progress.touch();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_stalled(written, context)
    }

    /// Called when everything was written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = &flushed {
            self.go_on();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.unless_stalled(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
