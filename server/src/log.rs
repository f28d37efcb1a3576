//! Log lines, which never hold up an answer.
//!
//! A thread of its own hands them on, because whoever reads them may be slow or have stopped reading: a terminal that
//! was paused, a full pipe, a full disk. What it cannot keep up with is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that may wait.
const MAX_WAITING: usize = 1024;

/// A receiver of log lines. They hold no texts of users, no keys and nothing from a query.
#[derive(Clone)]
pub struct Log(Option<Arc<Sender>>);

struct Sender {
    entries: SyncSender<Entry>,
    n_dropped: Arc<AtomicU64>,
}

enum Entry {
    Line(String),
    /// Answered when everything before it was handed on.
    Flush(SyncSender<()>),
}

impl Log {
    /// Lines go nowhere.
    pub fn none() -> Self {
        Log(None)
    }

    /// Calls a function for every line, on a thread of its own, which may wait as long as it likes.
    pub fn new(write: impl Fn(&str) + Send + 'static) -> Self {
        let (entries, waiting) = sync_channel(MAX_WAITING);
        let n_dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&n_dropped);
        let thread = std::thread::Builder::new().name("elias-log".into());
        // Without a thread all lines are dropped, and counted.
        let _ = thread.spawn(move || hand_on(&waiting, &count, &write));
        Log(Some(Arc::new(Sender { entries, n_dropped })))
    }

    pub(crate) fn line(&self, line: &str) {
        if let Some(sender) = &self.0
            && sender.entries.try_send(Entry::Line(line.into())).is_err()
        {
            sender.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that were dropped so far.
    pub(crate) fn n_dropped(&self) -> u64 {
        let sender = self.0.as_ref();
        sender.map_or(0, |sender| sender.n_dropped.load(Ordering::Relaxed))
    }

    /// Waits until every line so far was handed on, or the time is over.
    pub fn flush(&self, time: Duration) {
        let (done, is_done) = sync_channel(1);
        if let Some(sender) = &self.0
            && sender.entries.try_send(Entry::Flush(done)).is_ok()
        {
            let _ = is_done.recv_timeout(time);
        }
    }
}

fn hand_on(waiting: &Receiver<Entry>, n_dropped: &AtomicU64, write: &impl Fn(&str)) {
    let mut n_told = 0;
    for entry in waiting {
        match entry {
            Entry::Line(line) => write(&line),
            Entry::Flush(done) => {
                let _ = done.send(());
            }
        }
        let n_dropped = n_dropped.load(Ordering::Relaxed);
        if n_told < n_dropped {
            let n_new = n_dropped - n_told;
            write(&format!(
                "{n_new} lines of the log were dropped: it is read too slowly"
            ));
            n_told = n_dropped;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_log_that_nobody_reads_holds_nobody_up_and_what_is_dropped_is_counted() {
        let (release, released) = channel::<()>();
        let (written, lines) = channel();
        let log = Log::new(move |line| {
            // As a full pipe does.
            let _ = released.recv();
            let _ = written.send(line.to_owned());
        });
        let n_lines = MAX_WAITING + 500;
        for number in 0..n_lines {
            log.line(&format!("line {number}"));
        }
        let n_dropped = log.n_dropped();
        assert!((499..=500).contains(&n_dropped), "{n_dropped}");
        log.flush(Duration::ZERO);
        drop(release);
        log.flush(Duration::from_secs(60));
        drop(log);
        let lines: Vec<String> = lines.iter().collect();
        assert_eq!(lines[0], "line 0");
        assert!(
            lines[1].contains("lines of the log were dropped"),
            "{}",
            lines[1]
        );
        assert_eq!(lines.len() as u64, n_lines as u64 - n_dropped + 1);
    }
}
