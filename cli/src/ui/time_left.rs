//! How long all trainings of a command will still take.
//!
//! A training takes as long as the one before it, in proportion to its steps; the first one as long as its phases so far
//! promise, by the shares of the time that each is expected to take.

use std::time::Instant;

use elias::Phase;

/// The clock of a command that trains once or several times.
pub(crate) struct TimeLeft {
    weights: PhaseWeights,
    /// Whether this training has come to its calibration.
    is_calibrating: bool,
    n_runs: usize,
    run: usize,
    /// When this training started; its first epoch, once that has begun.
    run_started: Instant,
    has_begun: bool,
    /// Steps of stage 1 in this training.
    n_steps: usize,
    previous: Option<PreviousRun>,
}

/// Expected seconds of the phases of a training, in any unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PhaseWeights {
    pub(crate) stages: [f64; 2],
    pub(crate) ranker: f64,
    pub(crate) final_score: f64,
    /// The ranker once more, on all points.
    pub(crate) ranker_again: f64,
}

/// Weights of what comes before a phase, of the phase, and of what comes after it.
struct Around {
    before: f64,
    own: f64,
    after: f64,
}

impl PhaseWeights {
    fn around(&self, phase: Phase, is_calibrating: bool) -> Around {
        let [stage1, stage2] = self.stages;
        let weights = [
            stage1,
            stage2,
            self.ranker,
            self.final_score,
            self.ranker_again,
        ];
        let (place, has_own) = match (phase, is_calibrating) {
            (Phase::Features | Phase::Embeddings | Phase::HoldOut | Phase::Clustering, _) => {
                (0, false)
            }
            (Phase::WarmUp | Phase::Stage1, _) => (0, true),
            (Phase::Adjacency, _) => (1, false),
            (Phase::Stage2, _) => (1, true),
            (Phase::Candidates, false) => (2, false),
            (Phase::Ranker, false) => (2, true),
            (Phase::Neighbours, false) => (3, false),
            (Phase::Calibration, _) => (3, true),
            (Phase::Candidates, true) => (4, false),
            (Phase::Ranker, true) => (4, true),
            (Phase::Neighbours, true) | (Phase::Saving, _) => (5, false),
        };
        let after = place + usize::from(has_own);
        Around {
            before: weights[..place].iter().sum(),
            own: weights[place..after].iter().sum(),
            after: weights[after..].iter().sum(),
        }
    }
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
    pub(crate) fn new(weights: PhaseWeights) -> Self {
        TimeLeft {
            weights,
            is_calibrating: false,
            n_runs: 1,
            run: 0,
            run_started: Instant::now(),
            has_begun: false,
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
        (self.is_calibrating, self.has_begun) = (false, false);
        self.run_started = Instant::now();
    }

    /// A phase starts.
    pub(crate) fn start_phase(&mut self, phase: Phase, n_steps: usize) {
        // Features and clusters do not tell how long the stages take.
        if matches!(phase, Phase::WarmUp | Phase::Stage1) && !self.has_begun {
            (self.has_begun, self.run_started) = (true, Instant::now());
        }
        match phase {
            Phase::Stage1 => self.n_steps = n_steps,
            Phase::Calibration => self.is_calibrating = true,
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
            None => {
                let Around { before, own, after } =
                    self.weights.around(progress.phase, self.is_calibrating);
                let n_steps = (progress.n_done + progress.n_left).max(1);
                let done = before + own * progress.n_done as f64 / n_steps as f64;
                let per_weight = if done > 0.0 { elapsed / done } else { 0.0 };
                in_phase + per_weight * after
            }
        };
        let n_later = self.n_runs - self.run - 1;
        in_run + n_later as f64 * (elapsed + in_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected_time::ExpectedTime;
    use elias::Workload;
    use elias::config::{Config, DataCounts, Refit};

    #[test]
    fn later_phases_take_their_share_of_the_time() {
        let mut time = TimeLeft::new(PhaseWeights {
            stages: [10.0, 60.0],
            ranker: 5.0,
            final_score: 15.0,
            ranker_again: 10.0,
        });
        let check = |time: &TimeLeft, phase, elapsed, seconds, expected: f64| {
            let progress = PhaseProgress {
                phase,
                seconds,
                n_done: 50,
                n_left: 50,
            };
            let left = time.seconds_after(elapsed, &progress);
            assert!((left - expected).abs() < 1e-9, "{phase:?}: {left}");
        };
        // A weight of 1 takes 2 s here, before a tenth of the work is done.
        check(&time, Phase::Stage1, 10.0, 10.0, 10.0 + 180.0);
        check(&time, Phase::Stage2, 80.0, 60.0, 60.0 + 60.0);
        check(&time, Phase::Ranker, 145.0, 5.0, 5.0 + 50.0);
        time.start_phase(Phase::Calibration, 100);
        check(&time, Phase::Calibration, 165.0, 15.0, 15.0 + 20.0);
        check(&time, Phase::Ranker, 190.0, 10.0, 10.0);
    }

    /// Seconds of trainings of 1 + 2 epochs, seed 42 (`benchmarks/notebook/speed.md`).
    #[test]
    fn after_a_tenth_of_two_trainings_the_time_left_was_right_within_a_fifth() {
        struct Training {
            counts: [usize; 2],
            visits: usize,
            per_point: [f64; 3],
            /// Features and clusters, then stage 1.
            before: f64,
            stage1: f64,
            took: f64,
        }
        let trainings = [
            Training {
                counts: [32_122, 10_146],
                visits: 33_900,
                per_point: [10.5, 18.2, 2.24],
                before: 0.4,
                stage1: 3.0,
                took: 17.6,
            },
            Training {
                counts: [29_605, 10_583],
                visits: 31_500,
                per_point: [99.8, 214.2, 2.53],
                before: 2.3,
                stage1: 3.9,
                took: 32.2,
            },
        ];
        for training in trainings {
            let counts = DataCounts {
                n_points: training.counts[0],
                n_labels: training.counts[1],
                n_features: 60_000,
                n_pairs: 0,
                n_parts: 0,
                embedding_dim: 0,
            };
            let epochs = ["stage1.epochs=1", "stage2.epochs=2"];
            let config = epochs.iter().fold(Config::default(), |config, one| {
                config.with_value(one).unwrap()
            });
            let work = Workload {
                points_per_epoch: training.visits,
                refit: Refit::Ranker,
                n_passes: 1,
                words_per_point: training.per_point[0],
                terms_per_point: training.per_point[1],
                labels_per_point: training.per_point[2],
                ..Workload::default()
            };
            let weights = ExpectedTime::weights(&config.resolve(counts).unwrap(), &work);
            let elapsed = training.took / 10.0 - training.before;
            let n_done = (1000.0 * elapsed / training.stage1) as usize;
            let progress = PhaseProgress {
                phase: Phase::Stage1,
                seconds: elapsed,
                n_done,
                n_left: 1000 - n_done,
            };
            let left = TimeLeft::new(weights).seconds_after(elapsed, &progress);
            let implied = (training.took / 10.0 + left) / training.took;
            assert!((0.8..1.2).contains(&implied), "{implied}");
        }
    }

    #[test]
    fn later_trainings_and_stages_count() {
        let mut time = TimeLeft::new(PhaseWeights {
            stages: [10.0, 20.0],
            ..PhaseWeights::default()
        });
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
