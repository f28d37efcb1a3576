//! Writes the seeds of every fuzz target to `fuzz/corpus/TARGET`, from which `cargo fuzz run TARGET` starts.
//!
//! `cargo run --release --manifest-path fuzz/Cargo.toml --example seeds`

use std::fs;
use std::path::Path;

#[path = "../src/http.rs"]
mod http;

fn main() -> std::io::Result<()> {
    for target in elias_fuzz::TARGETS {
        write(target.name, &(target.seeds)())?;
    }
    write("query", &http::query_seeds())?;
    write("connection", &http::connection_seeds())
}

fn write(target: &str, seeds: &[Vec<u8>]) -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folder = corpus.join(target);
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
