//! Writes the seeds of every fuzz target to `fuzz/corpus/TARGET`, from which `cargo fuzz run TARGET` starts.
//!
//! `cargo run --release --manifest-path fuzz/Cargo.toml --bin seeds`

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    for target in elias_fuzz::TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let folder = corpus.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
