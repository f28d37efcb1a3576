//! Processes that are threads of one process, for tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::communicator::Communicator;

/// One thread of several, with a channel from and to each.
pub(crate) struct ThreadProcess {
    process: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Mutex<Vec<Receiver<Vec<u8>>>>,
}

impl Communicator for ThreadProcess {
    fn process(&self) -> usize {
        self.process
    }

    fn n_processes(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.all_to_all(&vec![bytes; self.n_processes()])
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        for (to, part) in self.to.iter().zip(parts) {
            to.send(part.to_vec()).expect("the other process is there");
        }
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        from.iter()
            .map(|from| from.recv().expect("the other process is there"))
            .collect()
    }
}

/// Does the work on each of these processes at once, on a pool of two threads each; what each returns.
pub(crate) fn run<T: Send>(
    n_processes: usize,
    work: impl Fn(&dyn Communicator) -> T + Sync,
) -> Vec<T> {
    let mut to: Vec<Vec<Sender<Vec<u8>>>> = (0..n_processes).map(|_| Vec::new()).collect();
    let mut all = Vec::new();
    for process in 0..n_processes {
        let mut from = Vec::new();
        for to in &mut to {
            let (sender, receiver) = channel();
            to.push(sender);
            from.push(receiver);
        }
        all.push((process, from));
    }
    let processes = all
        .into_iter()
        .zip(to)
        .map(|((process, from), to)| ThreadProcess {
            process,
            to,
            from: Mutex::new(from),
        });
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = processes
            .map(|process| scope.spawn(move || crate::on_threads(2, || work(&process))))
            .collect();
        let join = threads.into_iter().map(|thread| thread.join());
        join.map(|joined| joined.expect("no process panics"))
            .collect()
    })
}
