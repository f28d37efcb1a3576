//! Progress of a training on stderr: one bar per phase on a terminal, lines elsewhere.
//!
//! Epochs and validations are printed as lines in both cases, above the bar.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use elias::internals::{CheckpointTimes, PhaseTime, TrainingTimes, size};
use elias::{Config, Event, Observer, Phase, PreparedTraining};
use indicatif::ProgressBar;

use crate::expected_time::ExpectedTime;
use crate::memory;
use crate::plan::format_duration;
use crate::ui::console::Console;
use crate::ui::count::count;
use crate::ui::interrupt::Interrupt;
use crate::ui::progress::{LINE_INTERVAL, bar_colour, styled_bar};
use crate::ui::time_left::{PhaseProgress, PhaseWeights, TimeLeft};

/// Shows the progress of a training, and stops it on Ctrl-C.
pub(crate) struct TrainingProgress {
    console: Console,
    interrupt: Interrupt,
    /// Members of the ensemble.
    n_ensemble: usize,
    is_already_trained: AtomicBool,
    state: Mutex<State>,
}

struct State {
    phase: Option<Phase>,
    phase_started: Instant,
    last_line: Instant,
    n_steps: usize,
    /// Steps of the phase that were done before it was started or resumed.
    n_skipped: Option<usize>,
    n_points: usize,
    /// Which of several trainings is running, and why: `2/2 on all points, `.
    run: String,
    /// Epochs of each stage, once there is a plan.
    n_epochs: Vec<usize>,
    time_left: TimeLeft,
    bar: Option<ProgressBar>,
    times: Vec<PhaseTime>,
    checkpoints: CheckpointTimes,
}

impl TrainingProgress {
    pub(crate) fn new(console: &Console, config: &Config, interrupt: Interrupt) -> Self {
        let now = Instant::now();
        TrainingProgress {
            console: *console,
            interrupt,
            n_ensemble: config.ensemble.members,
            is_already_trained: AtomicBool::new(false),
            state: Mutex::new(State {
                phase: None,
                phase_started: now,
                last_line: now,
                n_steps: 0,
                n_skipped: None,
                n_points: 0,
                run: String::new(),
                n_epochs: Vec::new(),
                time_left: TimeLeft::new(PhaseWeights::default()),
                bar: None,
                times: Vec::new(),
                checkpoints: CheckpointTimes::default(),
            }),
        }
    }

    /// Takes note of how long the phases of a training are.
    pub(crate) fn expect(&self, prepared: &PreparedTraining<'_>) {
        let plan = prepared.plan();
        let state = &mut *self.lock();
        state.n_epochs = plan.stages().iter().map(|stage| stage.epochs).collect();
        state.time_left = TimeLeft::new(ExpectedTime::weights(plan, &prepared.workload()));
    }

    /// Ends the last phase and removes its bar.
    pub(crate) fn finish(&self) {
        self.end_phase(&mut self.lock());
    }

    /// Whether the training to resume had finished.
    pub(crate) fn is_already_trained(&self) -> bool {
        self.is_already_trained.load(Ordering::Relaxed)
    }

    /// Time and memory of the phases that have ended.
    pub(crate) fn times(&self, resumed: bool) -> TrainingTimes {
        let state = self.lock();
        TrainingTimes {
            resumed,
            phases: state.times.clone(),
            checkpoints: state.checkpoints.clone(),
        }
    }

    /// Why one of several trainings runs: members are trained twice where everything is trained again on all points.
    fn purpose(&self, run: usize, n_runs: usize) -> Purpose {
        if n_runs == self.n_ensemble {
            Purpose::Member
        } else if run < n_runs - self.n_ensemble {
            Purpose::Calibration
        } else {
            Purpose::Model
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, event: &Event) {
        let state = &mut *self.lock();
        match *event {
            Event::PhaseStarted { phase, n_steps } => self.start_phase(state, phase, n_steps),
            Event::Step {
                phase,
                step,
                n_points,
                loss,
            } => {
                state.n_points += n_points;
                let n_first = if has_loss(phase) { 1 } else { n_points };
                state.n_skipped.get_or_insert(step.saturating_sub(n_first));
                self.show_step(state, phase, step, loss);
            }
            Event::Epoch {
                phase,
                epoch,
                loss,
                labels_scored,
                ..
            } => {
                state.last_line = Instant::now();
                let n_epochs = state.n_epochs.get(usize::from(phase == Phase::Stage2));
                let n_epochs = n_epochs.copied().unwrap_or(epoch);
                let line = format!(
                    "{} epoch {epoch}/{n_epochs}: loss {loss:.3}, {labels_scored:.0} labels per point, {}",
                    phase.name(),
                    self.rate(state)
                );
                self.info(state, &line);
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
                self.info(state, &line);
            }
            Event::AlreadyTrained => self.is_already_trained.store(true, Ordering::Relaxed),
            Event::CheckpointsDamaged => {
                let line = "the checkpoints are damaged: this training starts at the beginning";
                self.info(state, line);
            }
            Event::Checkpoint { seconds } => {
                state.checkpoints.count += 1;
                state.checkpoints.seconds += seconds;
                self.console
                    .detail(format_args!("checkpoint written in {seconds:.2} s"));
            }
            Event::MemberStarted { member, n_members } => {
                state.time_left.start_run(member, n_members);
                let purpose = self.purpose(member, n_members);
                state.run = format!("{}/{n_members} {}, ", member + 1, purpose.name());
                let line = format!("training {} of {n_members}: ", member + 1);
                self.info(state, &(line + purpose.explanation()));
            }
            _ => {
                if let Some(line) = milestone(event) {
                    self.info(state, &line);
                }
            }
        }
    }

    fn start_phase(&self, state: &mut State, phase: Phase, n_steps: usize) {
        self.end_phase(state);
        state.phase = Some(phase);
        state.phase_started = Instant::now();
        state.last_line = Instant::now();
        (state.n_steps, state.n_points, state.n_skipped) = (n_steps, 0, None);
        state.time_left.start_phase(phase, n_steps);
        if self.console.is_terminal() && !self.console.is_quiet() {
            state.bar = Some(self.bar(&state.run, phase, n_steps));
        }
    }

    /// Shows how far a phase is, at once in a bar and now and then in a line.
    fn show_step(&self, state: &mut State, phase: Phase, step: usize, loss: f64) {
        let left = state.time_left.seconds(&PhaseProgress {
            phase,
            seconds: state.phase_started.elapsed().as_secs_f64(),
            n_done: step - state.n_skipped.unwrap_or(0),
            n_left: state.n_steps.saturating_sub(step),
        });
        let left = format_duration(left);
        let loss = has_loss(phase).then(|| format!("loss {loss:.3}"));
        if let Some(bar) = &state.bar {
            // A narrow terminal would show a part of the rate as if it were all of it.
            let details = loss.unwrap_or_else(|| self.rate(state));
            bar.set_message(format!("{left} left, {details}"));
            bar.set_position(step as u64);
        } else if state.last_line.elapsed() >= LINE_INTERVAL {
            state.last_line = Instant::now();
            let loss = loss.map_or(String::new(), |loss| format!("{loss}, "));
            let rate = self.rate(state);
            self.console.info(format_args!(
                "{}{}: {} {step} of {}, about {left} left, {loss}{rate}",
                state.run,
                phase.name(),
                step_noun(phase),
                state.n_steps,
            ));
        }
    }

    fn end_phase(&self, state: &mut State) {
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(phase) = state.phase.take() {
            let seconds = state.phase_started.elapsed().as_secs_f64();
            let peak_bytes = memory::peak_rss();
            memory::return_small_blocks();
            state.times.push(PhaseTime {
                phase: phase.name().to_owned(),
                seconds,
                peak_bytes,
            });
            let peak = peak_bytes.map_or(String::new(), |bytes| {
                format!(", peak memory so far {}", size(bytes as usize))
            });
            self.console
                .detail(format_args!("{} took {seconds:.2} s{peak}", phase.name()));
        }
    }

    /// Prints a line above the bar.
    fn info(&self, state: &State, line: &str) {
        match &state.bar {
            Some(bar) => bar.suspend(|| self.console.info(line)),
            None => self.console.info(line),
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

    fn bar(&self, run: &str, phase: Phase, n_steps: usize) -> ProgressBar {
        let colour = bar_colour(&self.console);
        let template = match n_steps {
            0 => "{prefix} {spinner} {elapsed}".to_string(),
            // The message is cut off where the line would wrap.
            _ => format!(
                "{{prefix}} [{{bar:12{colour}}}] {{pos}}/{{len}} {}s, {{wide_msg}}",
                step_noun(phase)
            ),
        };
        let bar = styled_bar(&template, Some(n_steps as u64));
        bar.set_prefix(format!("{run}{}", phase.name()));
        if n_steps == 0 {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        bar
    }
}

impl Observer for TrainingProgress {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        self.show(event);
        if self.interrupt.is_pressed() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The result of the adjacency or the calibration, in a line; nothing for other events.
pub(crate) fn milestone(event: &Event) -> Option<String> {
    match *event {
        Event::AdjacencyReady {
            n_edges,
            n_repaired,
        } => Some(format!(
            "adjacency: {}, {} kept reachable by repair",
            count(n_edges, "edge"),
            count(n_repaired, "label")
        )),
        Event::CalibrationReady {
            n_points,
            precision_at_1,
        } => Some(format!(
            "calibrated on {}: P@1 {precision_at_1:.2}",
            count(n_points, "held-out point")
        )),
        Event::CalibrationSkipped { n_points, n_needed } => Some(format!(
            "warning: no probabilities: {} can be held out, at least {n_needed} are needed",
            count(n_points, "point")
        )),
        Event::CrossFitting { n_points, n_folds } => Some(format!(
            "small data: {n_folds} folds of {} are held out in turn to calibrate scores",
            count(n_points, "point")
        )),
        Event::NearDuplicatesRelaxed {
            n_before,
            n_points,
            cosine,
        } => {
            let aside = match cosine {
                Some(cosine) => format!("near duplicates are set aside from a cosine of {cosine}"),
                None => "near duplicates are not set aside".to_owned(),
            };
            Some(format!(
                "{aside}, so that {} can be held out instead of {n_before}: figures on them may be too good",
                count(n_points, "point")
            ))
        }
        Event::Updated {
            n_points,
            n_corrections,
            n_new_labels,
        } => Some(format!(
            "updated with {}, {} and {}",
            count(n_points, "point"),
            count(n_corrections, "correction"),
            count(n_new_labels, "new label"),
        )),
        _ => None,
    }
}

/// The purpose of one of several trainings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Member,
    Calibration,
    Model,
}

impl Purpose {
    /// In a few words, for a line of progress.
    fn name(self) -> &'static str {
        match self {
            Purpose::Member => "of the ensemble",
            Purpose::Calibration => "to calibrate",
            Purpose::Model => "on all points",
        }
    }

    fn explanation(self) -> &'static str {
        match self {
            Purpose::Member => "a member of the ensemble",
            Purpose::Calibration => "on part of the points, to calibrate scores on the rest",
            Purpose::Model => "again, on all points; the calibration is kept",
        }
    }
}

/// The noun for a step of the phase.
fn step_noun(phase: Phase) -> &'static str {
    match phase {
        Phase::Embeddings | Phase::Adjacency | Phase::Candidates | Phase::Calibration => "point",
        Phase::Ranker => "label",
        _ => "step",
    }
}

/// Whether the steps of a phase are batches with a loss.
fn has_loss(phase: Phase) -> bool {
    matches!(phase, Phase::WarmUp | Phase::Stage1 | Phase::Stage2)
}
