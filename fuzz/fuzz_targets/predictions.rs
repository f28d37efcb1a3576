//! Anyone's predictions.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::data::predictions(bytes));
