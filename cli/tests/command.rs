//! Running the binary and looking at what it says.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary with these arguments, away from the caller's terminal and colours.
pub(crate) fn elias<T: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = T>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_elias"));
    command
        .args(arguments)
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::null());
    command
}

/// The outcome of a run.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn run<T: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = T>) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = elias(arguments).output().unwrap();
    Ran {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// Writes a file and gives its path as an argument.
pub(crate) fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_string()
}
