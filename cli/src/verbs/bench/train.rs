//! `elias bench train`: speed of training steps compared with a plain matrix product.
//!
//! The matrix product is measured between training steps, on the same threads, so that other load on the machine slows
//! both. A step is timed from the end of the previous one to its own end; the first steps of a stage are not counted,
//! and the median of the others is reported.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use elias::config::Plan;
use elias::data::Part;
use elias::internals::{Counted, Sgemm, clusters_per_process, median, train_stages};
use elias::{Communicator, Config, Event, Observer, Phase, Trainer};

use super::{Figures, Group, read, write_groups};
use crate::memory::peak_rss;
use crate::processes::Process;
use crate::settings::Settings;
use crate::ui::console::{Console, Misuse};

/// First steps of a stage, which are not counted.
const N_WARM_UP: usize = 5;
/// Steps between two measurements of the matrix product.
const SGEMM_EVERY: usize = 10;

/// Measure training steps, compared with a plain matrix product
///
/// Trains one epoch of stage 1 and two of stage 2, unless --set changes stage1.epochs or stage2.epochs.
/// gflops counts 6·B·(K_used + C)·d per step, where K_used is the number of labels scored per point. Under mpirun each
/// process is a group: K_used is then its share, and C too where clusters are shared, and what it sends to other processes is
/// counted.
#[derive(Args)]
pub(super) struct BenchTrain {
    /// Training data [default: the bundled set]
    data: Option<PathBuf>,
    /// End every epoch of both stages after this many steps
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

impl BenchTrain {
    pub(super) fn run(&self, process: &Process, console: &Console) -> anyhow::Result<()> {
        if let Some(steps) = self.steps
            && steps <= N_WARM_UP
        {
            let least = N_WARM_UP + 1;
            let problem = format!(
                "--steps {steps}: the first {N_WARM_UP} steps of a stage are not counted, give at least {least}"
            );
            return Err(Misuse(problem).into());
        }
        let mut base = Config::default();
        (base.stage1.epochs, base.stage2.epochs) = (Some(1), Some(2));
        let config = self.settings.over(base)?;
        let data = read(self.data.as_deref(), Part::Train, console)?;
        let counted = process.communicator().map(Counted::new);
        let watch = Watch::new(counted.as_ref());
        let mut trainer = Trainer::new(config).observer(&watch);
        if let Some(communicator) = &counted {
            trainer = trainer.communicator(communicator);
        }
        let prepared = trainer.prepare(&data)?;
        let plan = prepared.plan().clone();
        train_stages(prepared, self.steps)?;
        let stages = watch
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let n_processes = process
            .communicator()
            .map_or(1, |communicator| communicator.n_processes());
        let measured = stages.stages.iter();
        let measured = measured.filter(|stage| !stage.step_ms.is_empty());
        let groups = measured.map(|stage| Group {
            name: stage.name.to_string(),
            figures: stage.figures(&plan, n_processes),
        });
        let groups: Vec<Group> = groups.collect();
        let Some(communicator) = process.communicator() else {
            return write_groups(&groups, self.json);
        };
        let groups = of_all_processes(&groups, communicator);
        if process.is_first() {
            write_groups(&groups, self.json)?;
        }
        Ok(())
    }
}

/// The same figures of every process.
fn of_all_processes(groups: &[Group], communicator: &dyn Communicator) -> Vec<Group> {
    let values = groups.iter().flat_map(|group| &group.figures);
    let own: Vec<u8> = values.flat_map(|(_, value)| value.to_le_bytes()).collect();
    let mut all = Vec::new();
    for (process, bytes) in communicator.all_gather(&own).iter().enumerate() {
        let values = bytes.as_chunks().0.iter();
        let mut values = values.map(|bytes| f64::from_le_bytes(*bytes));
        all.extend(groups.iter().map(|group| {
            let names = group.figures.iter().map(|(name, _)| *name);
            Group {
                name: format!("{} process {process}", group.name),
                figures: names.zip(values.by_ref()).collect(),
            }
        }));
    }
    all
}

/// An observer that times steps.
struct Watch<'a> {
    communicator: Option<&'a Counted<'a>>,
    state: Mutex<State>,
}

struct State {
    sgemm: Sgemm,
    stages: [StageTimes; 2],
    last: Instant,
    /// Calls and bytes until then.
    told: (u64, u64),
}

#[derive(Default)]
struct StageTimes {
    name: &'static str,
    step_ms: Vec<f64>,
    points: Vec<f64>,
    sgemm: Vec<f64>,
    labels_scored: f64,
    peak: Option<u64>,
    /// Traffic to other processes, step by step.
    calls: Vec<f64>,
    bytes: Vec<f64>,
}

impl<'a> Watch<'a> {
    fn new(communicator: Option<&'a Counted<'a>>) -> Self {
        let stage = |name| StageTimes {
            name,
            ..StageTimes::default()
        };
        Watch {
            communicator,
            state: Mutex::new(State {
                sgemm: Sgemm::new(),
                stages: [stage("stage1"), stage("stage2")],
                last: Instant::now(),
                told: (0, 0),
            }),
        }
    }
}

impl Observer for Watch<'_> {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        let now = Instant::now();
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State {
            sgemm,
            stages,
            last,
            told,
        } = &mut *guard;
        let counts = self.communicator.map_or((0, 0), |communicator| {
            (communicator.n_calls(), communicator.n_bytes())
        });
        let stage_of = |phase: Phase| match phase {
            Phase::Stage1 => Some(0),
            Phase::Stage2 => Some(1),
            _ => None,
        };
        match *event {
            Event::PhaseStarted { phase, .. } => {
                if let Some(stage) = stage_of(phase) {
                    let rate = sgemm.measure();
                    stages[stage].sgemm.push(rate);
                }
            }
            Event::Step {
                phase,
                step,
                n_points,
                ..
            } => {
                let Some(stage) = stage_of(phase) else {
                    return ControlFlow::Continue(());
                };
                let stage = &mut stages[stage];
                if step > N_WARM_UP {
                    stage.step_ms.push(1e3 * (now - *last).as_secs_f64());
                    stage.points.push(n_points as f64);
                    stage.calls.push((counts.0 - told.0) as f64);
                    stage.bytes.push((counts.1 - told.1) as f64);
                }
                if step % SGEMM_EVERY == 0 {
                    stage.sgemm.push(sgemm.measure());
                }
                stage.peak = peak_rss();
            }
            Event::Epoch {
                phase,
                labels_scored,
                ..
            } => {
                if let Some(stage) = stage_of(phase) {
                    stages[stage].labels_scored = labels_scored;
                    stages[stage].sgemm.push(sgemm.measure());
                }
            }
            _ => {}
        }
        *told = counts;
        *last = Instant::now();
        ControlFlow::Continue(())
    }
}

impl StageTimes {
    fn figures(&self, plan: &Plan, n_processes: usize) -> Figures {
        let ms_per_step = median(&self.step_ms);
        let n_points = median(&self.points);
        let n_clusters = clusters_per_process(plan.n_clusters(), n_processes);
        let n_scored = self.labels_scored / n_processes as f64 + n_clusters;
        let n_flops = 6.0 * n_points * n_scored * plan.config().encoder.dim as f64;
        let gflops = n_flops / ms_per_step / 1e6;
        let sgemm_gflops = median(&self.sgemm);
        vec![
            ("points_per_s", 1e3 * n_points / ms_per_step),
            ("ms_per_step", ms_per_step),
            ("gflops", gflops),
            ("sgemm_gflops", sgemm_gflops),
            ("fraction_of_sgemm", gflops / sgemm_gflops),
            (
                "peak_rss_bytes",
                self.peak.map_or(f64::NAN, |bytes| bytes as f64),
            ),
            ("labels_scored_per_point", self.labels_scored),
            ("batch_size", n_points),
            ("n_steps", self.step_ms.len() as f64),
            ("n_threads", rayon::current_num_threads() as f64),
            ("calls_per_step", median(&self.calls)),
            ("bytes_sent_per_step", median(&self.bytes)),
        ]
    }
}
