//! Data sets that come through a pipe.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::data::pipes(bytes));
