//! What a training tells, on stderr: a bar a phase on a terminal, plain lines elsewhere.
//!
//! Epochs and validations become lines either way; the bar stands below them.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use elias::{Config, Event, Observer, Phase};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::memory;
use crate::ui::console::Console;
use crate::ui::interrupt::Interrupt;
use crate::verbs::report::{Checkpoints, PhaseTime};

/// How often a plain line is written within an epoch where stderr is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Shows a training as it runs, and stops it when asked to.
pub(crate) struct TrainingProgress {
    console: Console,
    interrupt: Option<Interrupt>,
    epochs: Vec<usize>,
    state: Mutex<State>,
}

struct State {
    phase: Option<Phase>,
    phase_started: Instant,
    last_line: Instant,
    n_steps: usize,
    n_points: usize,
    bar: Option<ProgressBar>,
    history: Vec<Event>,
    times: Vec<PhaseTime>,
    checkpoints: Checkpoints,
}

impl TrainingProgress {
    pub(crate) fn new(console: &Console, config: &Config, interrupt: Option<Interrupt>) -> Self {
        let now = Instant::now();
        TrainingProgress {
            console: *console,
            interrupt,
            epochs: config.stages().iter().map(|stage| stage.epochs).collect(),
            state: Mutex::new(State {
                phase: None,
                phase_started: now,
                last_line: now,
                n_steps: 0,
                n_points: 0,
                bar: None,
                history: Vec::new(),
                times: Vec::new(),
                checkpoints: Checkpoints::default(),
            }),
        }
    }

    /// Takes the bar away and gives what was told, steps left out.
    pub(crate) fn finish(&self) -> Vec<Event> {
        let mut state = self.lock();
        self.end_phase(&mut state);
        std::mem::take(&mut state.history)
    }

    /// Seconds and memory of the phases that have ended.
    pub(crate) fn times(&self) -> Vec<PhaseTime> {
        self.lock().times.clone()
    }

    /// How many checkpoints were written, and the seconds that took.
    pub(crate) fn checkpoints(&self) -> Checkpoints {
        self.lock().checkpoints.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, event: &Event) {
        let state = &mut *self.lock();
        if !matches!(event, Event::Step { .. } | Event::Checkpoint { .. }) {
            state.history.push(event.clone());
        }
        match *event {
            Event::PhaseStarted { phase, n_steps } => {
                self.end_phase(state);
                state.phase = Some(phase);
                state.phase_started = Instant::now();
                state.last_line = Instant::now();
                (state.n_steps, state.n_points) = (n_steps, 0);
                if self.console.is_terminal() && !self.console.is_quiet() {
                    state.bar = Some(self.bar(phase, n_steps));
                }
            }
            Event::Step {
                phase,
                step,
                n_points,
                loss,
            } => {
                state.n_points += n_points;
                if let Some(bar) = &state.bar {
                    bar.set_message(with_loss(phase, loss, self.rate(state)));
                    bar.set_position(step as u64);
                } else if LINE_INTERVAL <= state.last_line.elapsed() {
                    state.last_line = Instant::now();
                    let line = step_line(phase, (step, state.n_steps), loss, self.rate(state));
                    let to_go = state.phase_started.elapsed().as_secs_f64()
                        * (state.n_steps.saturating_sub(step)) as f64
                        / step.max(1) as f64;
                    self.console.say(format_args!("{line}, {to_go:.0} s to go"));
                }
            }
            Event::Epoch {
                phase,
                epoch,
                loss,
                labels_scored,
                ..
            } => {
                state.last_line = Instant::now();
                let n_epochs = self.epochs[usize::from(phase == Phase::Stage2)];
                let line = format!(
                    "{} epoch {epoch}/{n_epochs}: loss {loss:.3}, {labels_scored:.0} labels a point, {}",
                    phase.name(),
                    self.rate(state)
                );
                self.say(state, &line);
            }
            Event::Validation {
                phase,
                epoch,
                precision_at_1,
                precision_at_5,
                recall_at_100,
            } => {
                let line = format!(
                    "{} epoch {epoch} validation: P@1 {precision_at_1:.2}, P@5 {precision_at_5:.2}, \
                     R@100 {recall_at_100:.2}",
                    phase.name()
                );
                self.say(state, &line);
            }
            Event::AdjacencyReady {
                n_edges,
                n_repaired,
            } => {
                let line = format!(
                    "adjacency: {n_edges} edges, {n_repaired} labels kept reachable by repair"
                );
                self.say(state, &line);
            }
            Event::Checkpoint { seconds } => {
                state.checkpoints.count += 1;
                state.checkpoints.seconds += seconds;
                self.console
                    .detail(format_args!("checkpoint written in {seconds:.2} s"));
            }
            Event::MemberStarted { member, n_members } => {
                self.say(state, &format!("training {} of {n_members}", member + 1));
            }
            Event::CalibrationReady {
                n_points,
                precision_at_1,
            } => {
                let line = format!(
                    "calibrated on {n_points} points held out: P@1 {precision_at_1:.2} on them"
                );
                self.say(state, &line);
            }
            Event::CalibrationSkipped { n_points, n_needed } => {
                let line = format!(
                    "not calibrated: {n_points} points can be held out, {n_needed} are needed"
                );
                self.say(state, &line);
            }
            _ => {}
        }
    }

    fn end_phase(&self, state: &mut State) {
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(phase) = state.phase.take() {
            let seconds = state.phase_started.elapsed().as_secs_f64();
            let peak_bytes = memory::peak_rss();
            state.times.push(PhaseTime {
                phase: phase.name().to_owned(),
                seconds,
                peak_bytes,
            });
            let peak = peak_bytes.map_or(String::new(), |bytes| {
                format!(", peak memory so far {}", memory::size(bytes as usize))
            });
            self.console
                .detail(format_args!("{} took {seconds:.2} s{peak}", phase.name()));
        }
    }

    fn say(&self, state: &State, line: &str) {
        match &state.bar {
            Some(bar) => bar.suspend(|| self.console.say(line)),
            None => self.console.say(line),
        }
    }

    fn rate(&self, state: &State) -> String {
        let seconds = state.phase_started.elapsed().as_secs_f64();
        let what = match state.phase {
            Some(Phase::Ranker) => "labels",
            _ => "points",
        };
        format!("{:.0} {what}/s", state.n_points as f64 / seconds.max(1e-9))
    }

    fn bar(&self, phase: Phase, n_steps: usize) -> ProgressBar {
        let colour = if self.console.is_coloured() {
            ".cyan"
        } else {
            ""
        };
        let template = match n_steps {
            0 => "{prefix} {spinner} {elapsed}".to_string(),
            _ => format!("{{prefix}} [{{bar:16{colour}}}] {{pos}}/{{len}} {{msg}}, {{eta}} to go"),
        };
        let style = ProgressStyle::with_template(&template)
            .expect("the template is made of constants of the right form")
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(n_steps as u64), ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_prefix(phase.name());
        if n_steps == 0 {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        bar
    }
}

impl Observer for TrainingProgress {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        self.show(event);
        match &self.interrupt {
            Some(interrupt) if interrupt.is_asked() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn step_line(phase: Phase, (step, n_steps): (usize, usize), loss: f64, rate: String) -> String {
    let what = match phase {
        Phase::Embeddings | Phase::Adjacency | Phase::Candidates | Phase::Calibration => "point",
        Phase::Ranker => "label",
        _ => "step",
    };
    let rest = with_loss(phase, loss, rate);
    format!("{}: {what} {step} of {n_steps}, {rest}", phase.name())
}

/// The rate, and the loss before it in phases that have one.
fn with_loss(phase: Phase, loss: f64, rate: String) -> String {
    match phase {
        Phase::WarmUp | Phase::Stage1 | Phase::Stage2 => format!("loss {loss:.3}, {rate}"),
        _ => rate,
    }
}
