//! Texts to predict for, and filter pairs.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::data::inputs(bytes));
