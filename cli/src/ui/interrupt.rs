//! Ctrl-C: the first one asks the work to end, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::ui::console::Console;

/// What a shell reports for a command that Ctrl-C ended.
pub(crate) const EXIT_CODE: u8 = 130;

/// Work that ended because it was asked to.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Whether the user asked to stop.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on; once a process.
    pub(crate) fn listen(console: &Console) -> anyhow::Result<Self> {
        let is_asked = Arc::new(AtomicBool::new(false));
        let (flag, console) = (Arc::clone(&is_asked), *console);
        let on_signal = move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(EXIT_CODE.into());
            }
            console.say("\nstopping after this step; Ctrl-C again leaves at once");
        };
        ctrlc::set_handler(on_signal).context("cannot listen for Ctrl-C")?;
        Ok(Interrupt(is_asked))
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
