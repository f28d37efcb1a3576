//! Settings of a manifest.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::settings::change(bytes));
