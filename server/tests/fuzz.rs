//! Hostile bytes for the service: seeded mutations of valid requests, in process; see `docs/fuzzing.md`.

#[path = "../../fuzz/src/http.rs"]
mod http;
#[path = "../../fuzz/src/mutation.rs"]
mod mutation;

use crate::tiny;

fn target() -> http::Target {
    http::Target::new(&tiny::model("a", 1))
}

#[test]
fn no_query_breaks_the_service() {
    let target = target();
    let run = |bytes: &[u8]| target.query(bytes);
    mutation::run("query", &http::query_seeds(), &http::PIECES, 10_000, run);
}

#[test]
fn no_bytes_of_a_connection_break_the_service() {
    let target = target();
    let run = |bytes: &[u8]| target.connection(bytes);
    let seeds = http::connection_seeds();
    mutation::run("connection", &seeds, &http::PIECES, 5_000, run);
}
