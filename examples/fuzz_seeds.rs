//! Writes the seeds of every fuzz target to `fuzz/corpus/TARGET`, from which `cargo fuzz run TARGET` starts.
//!
//! `cargo run --release --example fuzz_seeds`

use std::fs;
use std::path::Path;

#[path = "../fuzz/src/lib.rs"]
#[allow(dead_code)] // the targets themselves are run elsewhere
mod targets;

fn main() -> std::io::Result<()> {
    for target in targets::TARGETS {
        let folder = Path::new("fuzz/corpus").join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
