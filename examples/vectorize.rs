//! Turns the texts of a JSON Lines file into tf-idf rows, says how long that took, and writes them for NumPy.
//!
//! `cargo run --release --example vectorize -- train.jsonl.gz OUT_DIR [words | sklearn-words] [REPEATS]`
//! prints the seconds of each repeat, without reading and writing; `benchmarks/features/compare.py` calls it.

mod jsonl;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use elias::config::{FeaturesConfig, TokenPattern};
use elias::features::Vectorizer;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: vectorize FILE OUT_DIR [words | sklearn-words] [REPEATS]";
    let input = PathBuf::from(arguments.next().ok_or(usage)?);
    let out = PathBuf::from(arguments.next().ok_or(usage)?);
    let tokens = match arguments.next().as_deref() {
        None | Some("words") => TokenPattern::Words,
        Some("sklearn-words") => TokenPattern::SklearnWords,
        Some(_) => return Err(usage.into()),
    };
    let repeats: usize = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let config = FeaturesConfig {
        tokens,
        ..FeaturesConfig::default()
    };
    let (texts, _) = jsonl::read(&input)?;

    let mut stdout = std::io::stdout().lock();
    let mut last = None;
    for _ in 0..repeats {
        drop(last.take());
        let start = Instant::now();
        last = Some(Vectorizer::fit_transform(&texts, &config)?);
        writeln!(stdout, "{:.4}", start.elapsed().as_secs_f64())?;
    }
    let (vectorizer, rows) = last.ok_or("REPEATS must be at least 1")?;
    std::fs::create_dir_all(&out)?;
    jsonl::write_matrix(&out, "rows", &rows)?;
    let words = vectorizer.vocabulary().iter();
    jsonl::write(
        &out,
        "vocabulary.txt",
        words.map(|word| format!("{word}\n")),
    )
}
