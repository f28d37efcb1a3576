//! Forged models.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::model::load(bytes));
