//! Follows a training, cancels it after some seconds as Ctrl-C would, and resumes it.
//!
//! `cargo run --release --example watch_and_cancel -- [DATA] [MODEL] [SECONDS]`

#![allow(clippy::print_stdout)] // a program may print, the library may not

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use elias::{Config, Dataset, Error, Event, Trainer};

static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Prints the loss of each epoch, and stops the training once it is cancelled.
fn watch(event: &Event) -> ControlFlow<()> {
    if let Event::Epoch { epoch, loss, .. } = event {
        println!("epoch {epoch}: loss {loss:.4}");
    }
    if CANCELLED.swap(false, Ordering::Relaxed) {
        return ControlFlow::Break(());
    }
    ControlFlow::Continue(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default| arguments.get(at).map_or(default, String::as_str);
    let data = Dataset::read(argument(0, "data/debian-small"))?;
    let model = argument(1, "my-model");
    let seconds = argument(2, "5").parse()?;
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(seconds));
        CANCELLED.store(true, Ordering::Relaxed);
    });

    let trainer = Trainer::new(Config::default()).observer(&watch).resume();
    if let Err(Error::Stopped) = trainer.train_to(model, &data) {
        println!("cancelled; training goes on from its last step");
        trainer.train_to(model, &data)?;
    }
    Ok(())
}
