//! Progress with rate and time to go: a bar on a terminal, a plain line now and then elsewhere.
//!
//! Nothing is shown when quiet, and nothing is written to a log for work that ends within one interval.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ui::console::Console;

/// How often a plain line is written where stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes of files.
    Bytes,
    /// Points, steps: plain numbers.
    Items,
}

/// The progress of one piece of work. It may be told of it from any thread.
pub(crate) struct Progress {
    what: String,
    unit: Unit,
    started: Instant,
    shown_as: ShownAs,
}

enum ShownAs {
    Bar(ProgressBar),
    Lines {
        console: Console,
        last: Mutex<Instant>,
    },
    Nothing,
}

impl Progress {
    /// Starts the clock. `what` says what is going on: "reading train.jsonl".
    pub(crate) fn start(console: &Console, what: &str, unit: Unit) -> Self {
        let started = Instant::now();
        let shown_as = if console.is_quiet() {
            ShownAs::Nothing
        } else if console.is_terminal() {
            ShownAs::Bar(bar(console, what, unit))
        } else {
            ShownAs::Lines {
                console: *console,
                last: Mutex::new(started),
            }
        };
        Progress {
            what: what.to_string(),
            unit,
            started,
            shown_as,
        }
    }

    /// This much of the total is done.
    pub(crate) fn set(&self, done: u64, total: u64) {
        match &self.shown_as {
            ShownAs::Bar(bar) => {
                if bar.length() != Some(total) {
                    bar.set_length(total);
                }
                bar.set_position(done);
            }
            ShownAs::Lines { console, last } => {
                // A thread that finds the lock taken leaves the line to the other.
                let Ok(mut last) = last.try_lock() else {
                    return;
                };
                if LINE_INTERVAL <= last.elapsed() {
                    *last = Instant::now();
                    let elapsed = self.started.elapsed();
                    console.say(line(&self.what, self.unit, done, total, elapsed));
                }
            }
            ShownAs::Nothing => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let ShownAs::Bar(bar) = &self.shown_as {
            bar.finish_and_clear();
        }
    }
}

fn bar(console: &Console, what: &str, unit: Unit) -> ProgressBar {
    let colour = if console.is_coloured() { ".cyan" } else { "" };
    let counts = match unit {
        Unit::Bytes => "{bytes}/{total_bytes} {bytes_per_sec}",
        Unit::Items => "{pos}/{len} {per_sec}",
    };
    let template = format!("{{msg}} [{{bar:20{colour}}}] {counts}, {{eta}} to go");
    let style = ProgressStyle::with_template(&template)
        .expect("the template is made of constants of the right form")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar.set_message(what.to_string());
    bar
}

fn line(what: &str, unit: Unit, done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let to_go = total.saturating_sub(done) as f64 / rate.max(1e-9);
    let counts = match unit {
        Unit::Bytes => format!(
            "{} of {}, {}/s",
            HumanBytes(done),
            HumanBytes(total),
            HumanBytes(rate as u64)
        ),
        Unit::Items => format!("{done} of {total}, {rate:.1}/s"),
    };
    format!("{what}: {counts}, {to_go:.0} s to go")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, done: u64, total: u64, seconds: u64, expected: &str) {
        let line = line("measuring", unit, done, total, Duration::from_secs(seconds));
        assert_eq!(line, expected);
    }

    #[test]
    fn a_plain_line_gives_rate_and_time_to_go() {
        check(
            Unit::Items,
            50,
            200,
            10,
            "measuring: 50 of 200, 5.0/s, 30 s to go",
        );
        check(
            Unit::Bytes,
            2 << 20,
            3 << 20,
            1,
            "measuring: 2.00 MiB of 3.00 MiB, 2.00 MiB/s, 0 s to go",
        );
    }
}
