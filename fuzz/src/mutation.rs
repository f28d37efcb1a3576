//! Seeded changes of valid inputs, for targets that run without a search by coverage.

#![allow(unreachable_pub)] // a library here, a module there

use std::io::{Write, stderr};

/// Numbers that depend on a seed alone (splitmix64).
pub struct Numbers(u64);

impl Numbers {
    /// The numbers of a round.
    pub fn new(round: u64) -> Self {
        Numbers(round.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// A seed, changed in up to five places.
pub fn mutated(seeds: &[Vec<u8>], pieces: &[&[u8]], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..numbers.below(6) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + 1 + numbers.below(24)).min(bytes.len());
        match numbers.below(8) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            2 if at < bytes.len() => bytes[at] = numbers.next() as u8,
            3 => drop(bytes.drain(at.min(end)..end)),
            4 => {
                let copy = bytes[at.min(end)..end].repeat(1 + numbers.below(4));
                let to = numbers.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 => {
                let other = &seeds[numbers.below(seeds.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len() + 1)..]);
            }
            _ => {
                let piece = pieces[numbers.below(pieces.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

/// How many inputs a run has: `ELIAS_FUZZ_INPUTS`, or a few.
pub fn n_inputs(few: u64) -> u64 {
    let wanted = std::env::var("ELIAS_FUZZ_INPUTS").ok();
    wanted.map_or(few, |wanted| wanted.parse().expect("a number of inputs"))
}

/// Runs a target on seeds and on what becomes of them; a long run counts aloud.
pub fn run(name: &str, seeds: &[Vec<u8>], pieces: &[&[u8]], few: u64, target: impl Fn(&[u8])) {
    let n_inputs = n_inputs(few);
    let first: u64 =
        std::env::var("ELIAS_FUZZ_FIRST").map_or(0, |first| first.parse().expect("a round"));
    for seed in seeds {
        target(seed);
    }
    for round in first..first + n_inputs {
        if few < n_inputs && round % 100_000 == 0 {
            let _ = writeln!(stderr(), "{name}: {} inputs", round - first);
        }
        let bytes = mutated(seeds, pieces, &mut Numbers::new(round));
        let run = std::panic::AssertUnwindSafe(|| target(&bytes));
        if std::panic::catch_unwind(run).is_err() {
            let shown = String::from_utf8_lossy(&bytes).escape_debug().to_string();
            panic!("target {name}, round {round}: {shown:.3000}");
        }
    }
    if few < n_inputs {
        let _ = writeln!(stderr(), "{name}: {n_inputs} inputs, 0 findings");
    }
}
