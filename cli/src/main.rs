//! The `elias` command: parse, run, report.
//!
//! One file per verb. stdout carries data, stderr words and progress. Exit 0 done, 1 failed, 2 misused.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Extreme multi-label classification: text in, the right few of very many labels out.
#[derive(Parser)]
#[command(name = "elias", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome: anyhow::Result<()> = match cli.verb {};
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
