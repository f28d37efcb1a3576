//! Ranks that are threads of one process, for tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::communicator::Ranks;

/// One thread of several, with a channel from and to each.
pub(crate) struct ThreadRank {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Mutex<Vec<Receiver<Vec<u8>>>>,
}

impl Ranks for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.to.len()
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.all_to_all(&vec![bytes; self.n_ranks()])
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        for (to, part) in self.to.iter().zip(parts) {
            to.send(part.to_vec()).expect("the other rank is there");
        }
        let from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        from.iter()
            .map(|from| from.recv().expect("the other rank is there"))
            .collect()
    }
}

/// Does the work on each of these ranks at once, on a pool of two threads each; what each returns.
pub(crate) fn run<T: Send>(n_ranks: usize, work: impl Fn(&dyn Ranks) -> T + Sync) -> Vec<T> {
    let mut to: Vec<Vec<Sender<Vec<u8>>>> = (0..n_ranks).map(|_| Vec::new()).collect();
    let mut all = Vec::new();
    for rank in 0..n_ranks {
        let mut from = Vec::new();
        for to in &mut to {
            let (sender, receiver) = channel();
            to.push(sender);
            from.push(receiver);
        }
        all.push((rank, from));
    }
    let ranks = all
        .into_iter()
        .zip(to)
        .map(|((rank, from), to)| ThreadRank {
            rank,
            to,
            from: Mutex::new(from),
        });
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = ranks
            .map(|rank| scope.spawn(move || crate::on_threads(2, || work(&rank))))
            .collect();
        let join = threads.into_iter().map(|thread| thread.join());
        join.map(|joined| joined.expect("no rank panics")).collect()
    })
}
