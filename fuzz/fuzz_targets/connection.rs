//! Everything that a client sends over a connection.

#![no_main]

#[path = "../src/http.rs"]
mod http;

use std::path::Path;

thread_local! {
    static TARGET: http::Target = {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        http::Target::new(&root.join("tests/fixtures/model-v1/model"))
    };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.with(|target| target.connection(bytes)));
