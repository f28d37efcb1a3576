//! SciPy matrices: archives, and arrays in an archive that is sound.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| elias_fuzz::data::npz(bytes));
