//! Data sets of several files.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::data::files(bytes));
