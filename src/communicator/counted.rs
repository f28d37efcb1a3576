//! A rank that counts what it tells.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Ranks;

/// A rank that counts its calls and the bytes that it sends to others.
pub struct Counted<'a> {
    ranks: &'a dyn Ranks,
    n_calls: AtomicU64,
    n_bytes: AtomicU64,
}

impl<'a> Counted<'a> {
    /// Counts from now on.
    pub fn new(ranks: &'a dyn Ranks) -> Self {
        Counted {
            ranks,
            n_calls: AtomicU64::new(0),
            n_bytes: AtomicU64::new(0),
        }
    }

    /// Calls so far, each of which all ranks make together.
    pub fn n_calls(&self) -> u64 {
        self.n_calls.load(Ordering::Relaxed)
    }

    /// Bytes so far that this rank sent to others; what goes to all counts once for each of them.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes.load(Ordering::Relaxed)
    }

    fn count(&self, n_bytes: usize) {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

impl Ranks for Counted<'_> {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn n_ranks(&self) -> usize {
        self.ranks.n_ranks()
    }

    fn all_gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.count(bytes.len() * (self.n_ranks() - 1));
        self.ranks.all_gather(bytes)
    }

    fn all_to_all(&self, parts: &[&[u8]]) -> Vec<Vec<u8>> {
        let others = parts.iter().enumerate();
        let others = others.filter(|(to, _)| *to != self.rank());
        self.count(others.map(|(_, part)| part.len()).sum());
        self.ranks.all_to_all(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::threads;

    #[test]
    fn what_stays_on_a_rank_is_not_counted() {
        let counts = threads::run(3, |ranks| {
            let counted = Counted::new(ranks);
            counted.all_gather(b"four");
            let parts: [&[u8]; 3] = [b"a", b"bb", b"ccc"];
            counted.all_to_all(&parts);
            (counted.n_calls(), counted.n_bytes())
        });
        assert_eq!(counts, [(2, 8 + 5), (2, 8 + 4), (2, 8 + 3)]);
    }
}
