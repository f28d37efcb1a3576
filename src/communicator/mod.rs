//! The processes of one training: which part of the work each of them does, and how they put the parts together.
//!
//! The code of the method calls the operations of a [`Communicator`] as if each process had everything: *own* gives the
//! part of this process ([`partition`](Ranges)), *gather*, *sum* and *max* make wholes of parts (`collectives`,
//! `best_of_all`), and an observer that asks to stop stops all (`agreement`). On one process the own part is the whole,
//! and the operations return what they were given.
//!
//! Labels are cut into [`N_RANGES`] ranges, whatever the number of processes. A process owns consecutive ranges: their
//! rows of W_L with the state of the optimiser, and the edges of A that lead to them. Every sum that crosses ranges is
//! taken range by range in their order, so that any number of processes gives the same bytes.
//!
//! A connection of processes has two calls to implement. Both are made by all processes in the same order, and return when
//! all have made them; there is no error to return: where a process is lost, the connection ends the others.

mod agreement;
mod best_of_all;
mod collectives;
mod counted;
mod message;
mod partition;
#[cfg(test)]
#[path = "tests/threads.rs"]
pub(crate) mod threads;

pub(crate) use best_of_all::BestOfAll;
pub use counted::Counted;
#[cfg(test)]
pub(crate) use partition::MIN_SHARED_CLUSTERS;
pub(crate) use partition::{N_RANGES, Ranges, shares_clusters};

/// The most processes: each owns a range of labels.
pub const MAX_PROCESSES: usize = N_RANGES;

/// One of the processes that train a model together.
pub trait Communicator: Sync {
    /// Its number, from 0. Process 0 writes the model.
    fn process(&self) -> usize;

    /// Their number, at most [`MAX_PROCESSES`].
    fn n_processes(&self) -> usize;

    /// Sends the same to every process; returns what each process sent, in their order.
    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>>;

    /// Sends each process its own part; returns what each process sent to this one.
    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>>;
}

/// The only process of a training.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SingleProcess;

impl Communicator for SingleProcess {
    fn process(&self) -> usize {
        0
    }

    fn n_processes(&self) -> usize {
        1
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        vec![bytes.to_vec()]
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        parts.iter().map(|part| part.to_vec()).collect()
    }
}

impl dyn Communicator + '_ {
    /// Whether this is the only process.
    fn is_alone(&self) -> bool {
        self.n_processes() == 1
    }

    /// Whether this is process 0, which writes the model.
    pub(crate) fn is_first(&self) -> bool {
        self.process() == 0
    }
}
