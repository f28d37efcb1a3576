//! `elias man`: the manual page of the command, or a page for every verb.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::outputs;

/// Print the manual page
///
/// To read it: elias man | man -l -. With --out, a page for every verb is written to the directory.
#[derive(Args)]
pub(crate) struct Manual {
    /// Directory to write elias.1 and a page for every verb to
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace pages that exist
    #[arg(long, requires = "out")]
    overwrite: bool,
}

impl Manual {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut command = crate::Cli::command();
        command.build();
        let Some(directory) = &self.out else {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            io::stdout().write_all(&page)?;
            return Ok(());
        };
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verbs = verbs.filter(|verb| verb.get_name() != "help").cloned();
        let pages: Vec<clap::Command> = verbs.collect();
        fs::create_dir_all(directory)
            .with_context(|| format!("while making {}", directory.display()))?;
        for command in std::iter::once(command).chain(pages) {
            // Verbs are named as their pages are: elias-train.
            let man = Man::new(command);
            let path = directory.join(man.get_filename());
            outputs::check(&path, self.overwrite, &[])?;
            let mut page = Vec::new();
            man.render(&mut page)?;
            fs::write(&path, page).with_context(|| format!("while writing {}", path.display()))?;
        }
        Ok(())
    }
}
