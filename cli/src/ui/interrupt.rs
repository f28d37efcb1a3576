//! Ctrl-C: the first one asks a training to stop, the second ends the process; any other command ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use anyhow::Context;

use crate::ui::console::Console;

/// The customary exit code after Ctrl-C.
pub(crate) const EXIT_CODE: u8 = 130;

/// The code of a process that ends because of a signal.
static CODE: AtomicU8 = AtomicU8::new(EXIT_CODE);

/// On Ctrl-C, removes files that are not complete and ends the process; for commands that do not [`Interrupt::listen`].
pub(crate) fn end_cleanly() -> anyhow::Result<()> {
    let on_signal = || {
        elias::data::Sink::remove_unfinished();
        std::process::exit(CODE.load(Ordering::Relaxed).into());
    };
    ctrlc::set_handler(on_signal).context("cannot listen for Ctrl-C")
}

/// Makes the next signal end the process, with this code; may be called from a signal handler.
pub(crate) fn fail_with(code: u8) {
    CODE.store(code, Ordering::Relaxed);
}

/// The command was interrupted, with a message for the user.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Whether the user pressed Ctrl-C.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening; can be called once per process.
    pub(crate) fn listen(console: &Console) -> anyhow::Result<Self> {
        let is_pressed = Arc::new(AtomicBool::new(false));
        let (flag, console) = (Arc::clone(&is_pressed), *console);
        let on_signal = move || {
            let code = CODE.load(Ordering::Relaxed);
            if flag.swap(true, Ordering::Relaxed) || code != EXIT_CODE {
                std::process::exit(code.into());
            }
            console.info("\nstopping after this step; press Ctrl-C again to stop at once");
        };
        ctrlc::set_handler(on_signal).context("cannot listen for Ctrl-C")?;
        Ok(Interrupt(is_pressed))
    }

    /// Does not listen, so that any signal ends the process at once.
    #[cfg(feature = "serve")]
    pub(crate) fn none() -> Self {
        Interrupt(Arc::default())
    }

    pub(crate) fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The result of a training; if the user stopped it, [`Interrupted`] with this message.
pub(crate) fn unless_stopped<T>(
    result: elias::Result<T>,
    message: impl Into<String>,
) -> anyhow::Result<T> {
    match result {
        Err(elias::Error::Stopped) => Err(Interrupted(message.into()).into()),
        result => Ok(result?),
    }
}
