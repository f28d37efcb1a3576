//! Forged snapshots of a training.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::training::load(bytes));
