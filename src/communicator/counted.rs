//! A process that counts what it sends.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Communicator;

/// A process that counts its calls and the bytes that it sends to others.
pub struct Counted<'a> {
    communicator: &'a dyn Communicator,
    n_calls: AtomicU64,
    n_bytes: AtomicU64,
}

impl<'a> Counted<'a> {
    /// Counts from now on.
    pub fn new(communicator: &'a dyn Communicator) -> Self {
        Counted {
            communicator,
            n_calls: AtomicU64::new(0),
            n_bytes: AtomicU64::new(0),
        }
    }

    /// Calls so far, each of which all processes make together.
    pub fn n_calls(&self) -> u64 {
        self.n_calls.load(Ordering::Relaxed)
    }

    /// Bytes so far that this process sent to others; a message to all counts once for each of them.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes.load(Ordering::Relaxed)
    }

    fn count(&self, n_bytes: usize) {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

impl Communicator for Counted<'_> {
    fn process(&self) -> usize {
        self.communicator.process()
    }

    fn n_processes(&self) -> usize {
        self.communicator.n_processes()
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.count(bytes.len() * (self.n_processes() - 1));
        self.communicator.all_gather(bytes)
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let n_bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.count(n_bytes - parts[self.process()].len());
        self.communicator.all_to_all(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::threads;

    #[test]
    fn bytes_that_stay_on_a_process_are_not_counted() {
        let counts = threads::run(3, |communicator| {
            let counted = Counted::new(communicator);
            counted.all_gather(b"four");
            let parts: [&[u8]; 3] = [b"a", b"bb", b"ccc"];
            counted.all_to_all(&parts);
            (counted.n_calls(), counted.n_bytes())
        });
        assert_eq!(counts, [(2, 8 + 5), (2, 8 + 4), (2, 8 + 3)]);
    }
}
