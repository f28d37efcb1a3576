//! Writes the seeds of every target to `corpus/TARGET`, from which `cargo fuzz run TARGET` starts.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    for target in elias_fuzz::TARGETS {
        let folder = Path::new("corpus").join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
