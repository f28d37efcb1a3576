//! How long all trainings of a command will still take.
//!
//! A training takes as long as the one before it, in proportion to its steps; the first one as long as its epochs so
//! far promise.

use std::time::Instant;

use elias::Phase;

/// The clock of a command that trains once or several times.
pub(crate) struct TimeLeft {
    /// Epochs of each stage.
    n_epochs: Vec<usize>,
    n_runs: usize,
    run: usize,
    run_started: Instant,
    /// Steps of stage 1 in this training.
    n_steps: usize,
    previous: Option<PreviousRun>,
}

struct PreviousRun {
    seconds: f64,
    n_steps: usize,
}

/// How far a phase is.
pub(crate) struct PhaseProgress {
    pub(crate) phase: Phase,
    pub(crate) seconds: f64,
    /// Steps done in that time.
    pub(crate) n_done: usize,
    pub(crate) n_left: usize,
}

impl TimeLeft {
    pub(crate) fn new(n_epochs: Vec<usize>) -> Self {
        TimeLeft {
            n_epochs,
            n_runs: 1,
            run: 0,
            run_started: Instant::now(),
            n_steps: 0,
            previous: None,
        }
    }

    /// One of several trainings starts.
    pub(crate) fn start_run(&mut self, run: usize, n_runs: usize) {
        if self.run < run && self.n_steps > 0 {
            self.previous = Some(PreviousRun {
                seconds: self.run_started.elapsed().as_secs_f64(),
                n_steps: self.n_steps,
            });
        }
        (self.run, self.n_runs, self.n_steps) = (run, n_runs, 0);
        self.run_started = Instant::now();
    }

    /// A phase starts.
    pub(crate) fn start_phase(&mut self, phase: Phase, n_steps: usize) {
        match phase {
            // What comes before the first training is no part of it.
            Phase::Features => self.run_started = Instant::now(),
            Phase::Stage1 => self.n_steps = n_steps,
            _ => {}
        }
    }

    /// Seconds until the last training ends.
    pub(crate) fn seconds(&self, progress: &PhaseProgress) -> f64 {
        self.seconds_after(self.run_started.elapsed().as_secs_f64(), progress)
    }

    fn seconds_after(&self, elapsed: f64, progress: &PhaseProgress) -> f64 {
        let per_step = progress.seconds / progress.n_done.max(1) as f64;
        let in_phase = per_step * progress.n_left as f64;
        let in_run = match &self.previous {
            Some(previous) => {
                let scale = self.n_steps as f64 / previous.n_steps as f64;
                (scale * previous.seconds - elapsed).max(in_phase)
            }
            None if matches!(progress.phase, Phase::WarmUp | Phase::Stage1) => {
                let (first, later) = self.n_epochs.split_first().unwrap_or((&1, &[]));
                let n_later = later.iter().sum::<usize>() as f64 / (*first).max(1) as f64;
                let n_steps = (progress.n_done + progress.n_left) as f64;
                in_phase + per_step * n_steps * n_later
            }
            None => in_phase,
        };
        let n_later = self.n_runs - self.run - 1;
        in_run + n_later as f64 * (elapsed + in_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_trainings_and_stages_count() {
        let mut time = TimeLeft::new(vec![10, 20]);
        time.start_run(0, 2);
        time.start_phase(Phase::Stage1, 100);
        let mut progress = PhaseProgress {
            phase: Phase::Stage1,
            seconds: 5.0,
            n_done: 50,
            n_left: 50,
        };
        // 5 s of stage 1 and 20 s of stage 2 are left, then a training of 30 s.
        assert_eq!(time.seconds_after(5.0, &progress), 5.0 + 20.0 + 30.0);
        progress.phase = Phase::Ranker;
        assert_eq!(time.seconds_after(95.0, &progress), 5.0 + 100.0);

        // The second one has a tenth more steps.
        time.start_run(1, 2);
        time.start_phase(Phase::Stage1, 110);
        time.previous.as_mut().unwrap().seconds = 100.0;
        assert!((time.seconds_after(10.0, &progress) - 100.0).abs() < 1e-9);
        assert!((time.seconds_after(109.0, &progress) - 5.0).abs() < 1e-9);
    }
}
