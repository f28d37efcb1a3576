//! How often an unfinished training is written to the disk.

use std::time::{Duration, Instant};

use crate::train::{Array, Boundary, TrainState};

/// Assumed bytes per second of the first snapshot; later ones use the measured rate.
const EXPECTED_SPEED: f64 = 200e6;

/// When snapshots are taken: at the ends of phases and so many seconds apart, as far as the share of time allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SnapshotPace {
    /// The least time from one to the next within a phase.
    pub(crate) interval: Duration,
    /// The share of the training time that all of them together may take.
    pub(crate) max_share: f64,
}

impl Default for SnapshotPace {
    fn default() -> Self {
        SnapshotPace {
            interval: Duration::from_secs(60),
            max_share: 0.02,
        }
    }
}

/// Decides when a snapshot is due, from the time that snapshots took so far.
#[derive(Debug)]
pub(super) struct SnapshotClock {
    pace: SnapshotPace,
    begun: Instant,
    last: Instant,
    spent: Duration,
    last_cost: Option<Duration>,
}

impl SnapshotClock {
    /// Starts the clock of a training.
    pub(super) fn start(pace: SnapshotPace) -> Self {
        let now = Instant::now();
        SnapshotClock {
            pace,
            begun: now,
            last: now,
            spent: Duration::ZERO,
            last_cost: None,
        }
    }

    /// Whether a snapshot is to be written at this boundary.
    pub(super) fn is_due(&self, state: &mut TrainState, boundary: Boundary) -> bool {
        match boundary {
            Boundary::Stop => return true,
            Boundary::Step if self.last.elapsed() < self.pace.interval => return false,
            Boundary::Step | Boundary::PhaseEnd => {}
        }
        let expected = self.last_cost.unwrap_or_else(|| {
            let n_bytes: usize = state.arrays().iter().map(|one| n_bytes(&one.array)).sum();
            Duration::from_secs_f64(n_bytes as f64 / EXPECTED_SPEED)
        });
        let allowed = self.begun.elapsed().as_secs_f64() * self.pace.max_share;
        (self.spent + expected).as_secs_f64() <= allowed
    }

    /// Counts the snapshot that was begun at an instant and is written now; returns the time it took.
    pub(super) fn count(&mut self, begun: Instant) -> Duration {
        let cost = begun.elapsed();
        self.spent += cost;
        self.last_cost = Some(cost);
        self.last = Instant::now();
        cost
    }
}

fn n_bytes(array: &Array<'_>) -> usize {
    match array {
        Array::Floats(values) => 4 * values.len(),
        Array::Counts(values) => 4 * values.len(),
        Array::Flags(values) => values.len(),
    }
}
