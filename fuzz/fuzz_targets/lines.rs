//! Data sets of one file, in each format and in none.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::data::lines(bytes));
