//! Processes over MPI. Every call is made by the main thread; rayon's threads only compute.

use std::time::Duration;

use anyhow::Context;
use mpi::datatype::{Partition, PartitionMut};
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use mpi::{Count, Threading};

/// Most bytes that one call of MPI moves to or from a process; its counts are of 32 bits.
const MOST_BYTES: usize = 1 << 30;
/// Time for mpirun to read the output of a process, before that process ends all. MPICH's drops what it has not read.
const TO_BE_HEARD: Duration = Duration::from_secs(1);

/// The life of MPI in this process; it ends for all together when it is dropped.
pub(super) struct Joined {
    process: MpiProcess,
    _universe: Universe,
}

impl Joined {
    /// Starts MPI.
    pub(super) fn join() -> anyhow::Result<Self> {
        let started = mpi::initialize_with_threading(Threading::Funneled);
        let (universe, threading) = started.context("MPI was started before")?;
        anyhow::ensure!(
            threading >= Threading::Funneled,
            "this MPI does not allow threads: use one that has MPI_THREAD_FUNNELED"
        );
        end_all_on_panic();
        let world = universe.world();
        let (process, n_processes) = (world.rank() as usize, world.size() as usize);
        Ok(Joined {
            process: MpiProcess {
                process,
                n_processes,
            },
            _universe: universe,
        })
    }

    pub(super) fn communicator(&self) -> &dyn elias::Communicator {
        &self.process
    }

    /// Ends all processes.
    pub(super) fn abort(self, code: u8) -> ! {
        end_all(code)
    }
}

fn end_all(code: u8) -> ! {
    std::thread::sleep(TO_BE_HEARD);
    SimpleCommunicator::world().abort(code.into())
}

/// A process that panics would be waited for by the others.
fn end_all_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        end_all(101);
    }));
}

struct MpiProcess {
    process: usize,
    n_processes: usize,
}

impl elias::Communicator for MpiProcess {
    fn process(&self) -> usize {
        self.process
    }

    fn n_processes(&self) -> usize {
        self.n_processes
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let world = SimpleCommunicator::world();
        let mut lengths = vec![0u64; self.n_processes];
        world.all_gather_into(&(bytes.len() as u64), &mut lengths[..]);
        let mut messages = empty(&lengths);
        for piece in self.pieces(&lengths) {
            let counts: Vec<usize> = lengths.iter().map(|&n| piece.of(n)).collect();
            let mut received = buffer(counts.iter().sum());
            let own = &bytes[piece.within(bytes.len())];
            let own = if own.is_empty() { NOTHING } else { own };
            let places = Places::new(&counts);
            let mut into =
                PartitionMut::new(&mut received[..], &places.counts[..], &places.starts[..]);
            world.all_gather_varcount_into(own, &mut into);
            append(&mut messages, &received, &counts);
        }
        messages
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let world = SimpleCommunicator::world();
        let own: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
        // All lengths, so that all processes know how many pieces there will be.
        let mut all = vec![0u64; self.n_processes * self.n_processes];
        world.all_gather_into(&own[..], &mut all[..]);
        let to_here: Vec<u64> = all
            .chunks(self.n_processes)
            .map(|to| to[self.process])
            .collect();
        let mut messages = empty(&to_here);
        for piece in self.pieces(&all) {
            let sent: Vec<&[u8]> = parts.iter().map(|p| &p[piece.within(p.len())]).collect();
            let n_sent: Vec<usize> = sent.iter().map(|part| part.len()).collect();
            let n_received: Vec<usize> = to_here.iter().map(|&n| piece.of(n)).collect();
            let mut together = buffer(0);
            sent.iter()
                .for_each(|part| together.extend_from_slice(part));
            let mut received = buffer(n_received.iter().sum());
            let (from, to) = (Places::new(&n_sent), Places::new(&n_received));
            let from = Partition::new(&together[..], &from.counts[..], &from.starts[..]);
            let mut into = PartitionMut::new(&mut received[..], &to.counts[..], &to.starts[..]);
            world.all_to_all_varcount_into(&from, &mut into);
            append(&mut messages, &received, &n_received);
        }
        messages
    }
}

impl MpiProcess {
    /// The pieces in which messages of these lengths go.
    fn pieces(&self, lengths: &[u64]) -> impl Iterator<Item = Piece> + use<> {
        let size = MOST_BYTES / self.n_processes;
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        (0..longest)
            .step_by(size)
            .map(move |start| Piece { start, size })
    }
}

/// The same part of all messages.
struct Piece {
    start: usize,
    size: usize,
}

impl Piece {
    fn within(&self, length: usize) -> std::ops::Range<usize> {
        self.start.min(length)..(self.start + self.size).min(length)
    }

    fn of(&self, length: u64) -> usize {
        self.within(length as usize).len()
    }
}

/// Lengths of messages and where they start, as MPI wants them.
struct Places {
    counts: Vec<Count>,
    starts: Vec<Count>,
}

impl Places {
    fn new(lengths: &[usize]) -> Self {
        let mut end = 0;
        let starts = lengths.iter().map(|&n| {
            end += n;
            (end - n) as Count
        });
        Places {
            starts: starts.collect(),
            counts: lengths.iter().map(|&n| n as Count).collect(),
        }
    }
}

/// Nothing, but at an address: that of an empty list may be 1, which Open MPI takes for MPI_IN_PLACE.
const NOTHING: &[u8] = [0].split_at(0).0;

/// This many zeros, at an address even if there are none.
fn buffer(length: usize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(length + 1);
    buffer.resize(length, 0);
    buffer
}

fn empty(lengths: &[u64]) -> Vec<Vec<u8>> {
    let empty = lengths.iter().map(|&n| Vec::with_capacity(n as usize));
    empty.collect()
}

fn append(messages: &mut [Vec<u8>], received: &[u8], counts: &[usize]) {
    let mut rest = received;
    for (messages, &n) in messages.iter_mut().zip(counts) {
        let (piece, later) = rest.split_at(n);
        messages.extend_from_slice(piece);
        rest = later;
    }
}
