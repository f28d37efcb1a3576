//! Hostile bytes for every reader: seeded mutations of valid inputs, the same with every run.
//!
//! The targets are shared with the coverage-guided search of `fuzz/`; see `docs/fuzzing.md`.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use crate::random::Random;

/// Pieces that readers have rules for.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b":",
    b",",
    b"::",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"-1",
    b"0",
    b"1e39",
    b"NaN",
    b"4294967295",
    b"18446744073709551616",
    b"__label__",
    b"null",
];

/// Changes an input in one to four places.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(4) {
        // The first byte chooses what to read, and is left alone mostly.
        let place = |bytes: &[u8], random: &mut Random| match bytes.len() {
            0 | 1 => 0,
            n_bytes => 1 + random.below(n_bytes - 1),
        };
        let at = place(&bytes, random);
        match random.below(8) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = random.u64() as u8,
            3 => {
                let end = (at + 1 + random.below(16)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            4 => {
                let end = (at + 1 + random.below(64)).min(bytes.len());
                let copy = bytes[at.min(end)..end].to_vec();
                let to = place(&bytes, random);
                bytes.splice(to..to, copy);
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = place(other, random).min(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            6 => {
                let word = random.u64().to_le_bytes();
                let end = (at + [1, 2, 4, 8][random.below(4)]).min(bytes.len());
                let n_bytes = end.saturating_sub(at);
                bytes[at..at + n_bytes].copy_from_slice(&word[..n_bytes]);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

#[track_caller]
fn check(name: &str, n_rounds: u64) {
    let target = targets::TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("it is one of the targets");
    let seeds = (target.seeds)();
    for seed in &seeds {
        (target.run)(seed);
    }
    // A longer run of the same kind is a number away.
    let wanted = std::env::var("ELIAS_FUZZ_INPUTS").ok();
    let n_rounds = wanted.map_or(n_rounds, |wanted| wanted.parse().unwrap());
    for round in 0..n_rounds {
        if round > 0 && round.is_multiple_of(100_000) {
            let line = format!("{name}: {round} inputs\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        }
        let bytes = mutated(&seeds, &mut Random::new(3, name, round));
        let run = std::panic::AssertUnwindSafe(|| (target.run)(&bytes));
        if std::panic::catch_unwind(run).is_err() {
            let shown = String::from_utf8_lossy(&bytes).escape_debug().to_string();
            panic!("target {name}, round {round}: {shown:.2000}");
        }
    }
}

#[test]
fn no_single_file_of_data_breaks_its_reader() {
    check("lines", 20_000);
}

#[test]
fn no_files_of_data_break_their_reader() {
    check("files", 4_000);
}

#[test]
fn no_matrix_breaks_its_reader() {
    check("npz", 10_000);
}

#[test]
fn no_predictions_break_their_reader() {
    check("predictions", 10_000);
}

#[test]
fn no_text_to_predict_for_and_no_filter_breaks_its_reader() {
    check("inputs", 10_000);
}

#[test]
fn no_list_of_labels_breaks_its_reader() {
    check("labels", 5_000);
}

#[test]
fn data_through_a_pipe_is_read_as_from_memory() {
    check("pipes", 3_000);
}

#[test]
fn no_forged_model_breaks_the_loader() {
    check("model", 1_500);
}

#[test]
fn no_settings_of_a_manifest_break_the_loader_or_make_a_text_cost_more() {
    check("settings", 1_500);
}

#[test]
fn no_forged_snapshot_breaks_a_training_that_is_resumed() {
    check("training", 200);
}
