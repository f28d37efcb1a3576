//! The program `elias`; the library beside it has everything.

use std::process::ExitCode;

fn main() -> ExitCode {
    elias_cli::main()
}
