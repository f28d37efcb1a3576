//! `elias completions`: prints a completion script for a shell.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a completion script for a shell
///
/// For bash: elias completions bash > ~/.local/share/bash-completion/completions/elias.
/// For zsh, in a directory of $fpath: elias completions zsh > ~/.zfunc/_elias.
/// For fish: elias completions fish > ~/.config/fish/completions/elias.fish.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "elias", &mut script);
        io::stdout().write_all(&script)?;
        Ok(())
    }
}
