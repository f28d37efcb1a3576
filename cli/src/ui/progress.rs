//! Progress with rate and remaining time: a bar on a terminal, a line every few seconds elsewhere.
//!
//! Nothing is shown when quiet, and nothing is logged for work that ends within one interval.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ui::console::Console;

/// Time between two lines where stderr is not a terminal.
pub(super) const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The noun of the things counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes of files.
    Bytes,
    /// Points or steps.
    Items,
}

/// The progress of one task; updated from any thread.
pub(crate) struct Progress {
    what: String,
    unit: Unit,
    started: Instant,
    output: Output,
}

enum Output {
    Bar(ProgressBar),
    Lines {
        console: Console,
        last: Mutex<Instant>,
    },
    Nothing,
}

impl Progress {
    /// Starts the clock. `what` names the task: "reading".
    pub(crate) fn start(console: &Console, what: &str, unit: Unit) -> Self {
        let started = Instant::now();
        let output = if console.is_quiet() {
            Output::Nothing
        } else if console.is_terminal() {
            Output::Bar(bar(console, what, unit))
        } else {
            Output::Lines {
                console: *console,
                last: Mutex::new(started),
            }
        };
        Progress {
            what: what.to_string(),
            unit,
            started,
            output,
        }
    }

    /// Sets how much of the total is done.
    pub(crate) fn set(&self, done: u64, total: u64) {
        match &self.output {
            Output::Bar(bar) => {
                if bar.length() != Some(total) {
                    bar.set_length(total);
                }
                bar.set_position(done);
            }
            Output::Lines { console, last } => {
                // If the lock is taken, another thread is printing.
                let Ok(mut last) = last.try_lock() else {
                    return;
                };
                if last.elapsed() >= LINE_INTERVAL {
                    *last = Instant::now();
                    let elapsed = self.started.elapsed();
                    console.info(line(&self.what, self.unit, done, total, elapsed));
                }
            }
            Output::Nothing => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Output::Bar(bar) = &self.output {
            bar.finish_and_clear();
        }
    }
}

fn bar(console: &Console, what: &str, unit: Unit) -> ProgressBar {
    let colour = bar_colour(console);
    let counts = match unit {
        Unit::Bytes => "{bytes}/{total_bytes} {bytes_per_sec}",
        Unit::Items => "{pos}/{len} {per_sec}",
    };
    let template = format!("{{msg}} [{{bar:20{colour}}}] {counts}, {{eta}} left");
    let bar = styled_bar(&template, None);
    bar.set_message(what.to_string());
    bar
}

/// The colour of a bar, as a suffix in its template.
pub(super) fn bar_colour(console: &Console) -> &'static str {
    if console.is_coloured() { ".cyan" } else { "" }
}

/// A bar on stderr.
pub(super) fn styled_bar(template: &str, n_steps: Option<u64>) -> ProgressBar {
    let style = ProgressStyle::with_template(template)
        .expect("templates are constants and valid")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(n_steps, ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar
}

fn line(what: &str, unit: Unit, done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let left = total.saturating_sub(done) as f64 / rate.max(1e-9);
    let counts = match unit {
        Unit::Bytes => format!(
            "{} of {}, {}/s",
            HumanBytes(done),
            HumanBytes(total),
            HumanBytes(rate as u64)
        ),
        Unit::Items => format!("{done} of {total}, {rate:.1}/s"),
    };
    format!("{what}: {counts}, {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, done: u64, total: u64, seconds: u64, expected: &str) {
        let line = line("measuring", unit, done, total, Duration::from_secs(seconds));
        assert_eq!(line, expected);
    }

    #[test]
    fn a_line_has_rate_and_remaining_time() {
        check(
            Unit::Items,
            50,
            200,
            10,
            "measuring: 50 of 200, 5.0/s, 30 s left",
        );
        check(
            Unit::Bytes,
            2 << 20,
            3 << 20,
            1,
            "measuring: 2.00 MiB of 3.00 MiB, 2.00 MiB/s, 0 s left",
        );
    }
}
