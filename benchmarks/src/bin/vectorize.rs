//! Turns the texts of a data set into tf-idf rows, prints how long that took, and writes them for NumPy.
//!
//! `cargo run --release -p elias-benchmarks --bin vectorize -- DATA OUT_DIR [REPEATS]`
//! prints the seconds of each repeat, without reading and writing; `benchmarks/features/compare.py` calls it.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use elias::{Dataset, TfIdf};
use elias_benchmarks::{write, write_matrix};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: vectorize DATA OUT_DIR [REPEATS]";
    let input = PathBuf::from(arguments.next().ok_or(usage)?);
    let out = PathBuf::from(arguments.next().ok_or(usage)?);
    let repeats: usize = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let data = Dataset::read(&input)?;
    let texts = data.texts().ok_or("the data has no texts")?;

    let mut last = None;
    for _ in 0..repeats {
        drop(last.take());
        let start = Instant::now();
        last = Some(TfIdf::fit_transform(texts)?);
        println!("{:.4}", start.elapsed().as_secs_f64());
    }
    let (fitted, rows) = last.ok_or("REPEATS must be at least 1")?;
    std::fs::create_dir_all(&out)?;
    write_matrix(&out, "rows", &rows)?;
    let words = fitted.words().iter().map(|word| format!("{word}\n"));
    write(&out, "vocabulary.txt", words)
}
