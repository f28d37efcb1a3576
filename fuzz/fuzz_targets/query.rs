//! Addresses and their queries.

#![no_main]

#[path = "../src/http.rs"]
mod http;

#[path = "../../server/tests/tiny.rs"]
mod tiny;

thread_local! {
    static TARGET: http::Target = http::Target::new(&tiny::model("a", 1));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.with(|target| target.query(bytes)));
