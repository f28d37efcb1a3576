//! The loop of steps that both stages share.

use super::head::{Head, HeadLoss};
use super::state::{Boundary, EpochSums, Keep, Position, TrainState};
use super::step::{StepBuffers, StepJob};
use super::validation::Validator;
use super::{TrainingData, ValidationPoints, chosen, recount};
use crate::config::{EdgeStart, Plan, Positives, StagePlan};
use crate::encoder::StepSeed;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, Phase, emit};
use crate::ids::ClusterId;
use crate::index::ShortlistOptions;
use crate::matrix::CsrMatrix;
use crate::model::{Model, Numbering};
use crate::optim::Schedule;
use crate::random::Random;

/// Epochs between validations.
const VALIDATE_EVERY: usize = 2;
/// Epochs between two visits of a label text: it costs as much as any text, and there may be as many.
const LABEL_TEXT_EVERY: usize = 3;

/// A stage and its inputs.
pub(super) struct Stage<'a> {
    pub(super) data: TrainingData<'a>,
    pub(super) plan: &'a Plan,
    /// Y in the model's numbering.
    pub(super) labels: &'a CsrMatrix,
    /// The same with a negative value for labels that were rejected.
    pub(super) targets: &'a CsrMatrix,
    /// Points to train on.
    pub(super) rows: &'a [u32],
    pub(super) observer: &'a dyn Observer,
}

/// The labels and points of a stage, in a model's numbering.
pub(super) struct Numbered {
    labels: CsrMatrix,
    targets: Option<CsrMatrix>,
    rows: Vec<u32>,
}

impl Numbered {
    pub(super) fn new(data: TrainingData<'_>, numbering: &Numbering) -> Self {
        Numbered {
            labels: numbering.renumber(data.labels),
            targets: data.targets.map(|targets| numbering.renumber(targets)),
            rows: labelled_rows(data.labels),
        }
    }

    pub(super) fn stage<'a>(
        &'a self,
        data: TrainingData<'a>,
        plan: &'a Plan,
        observer: &'a dyn Observer,
    ) -> Stage<'a> {
        Stage {
            data,
            plan,
            labels: &self.labels,
            targets: self.targets.as_ref().unwrap_or(&self.labels),
            rows: &self.rows,
            observer,
        }
    }
}

/// Points with at least one label: the others carry no signal.
fn labelled_rows(labels: &CsrMatrix) -> Vec<u32> {
    (0..labels.n_rows() as u32)
        .filter(|&row| !labels.row(row as usize).0.is_empty())
        .collect()
}

/// Points that an epoch visits of these numbers of texts and label texts.
pub(crate) fn points_per_epoch(n_texts: usize, n_label_texts: usize) -> usize {
    n_texts + n_label_texts.div_ceil(LABEL_TEXT_EVERY)
}

/// The label texts that an epoch visits, always equally many.
fn label_texts_of(epoch: usize, label_texts: &[u32]) -> impl Iterator<Item = u32> {
    let n_visited = points_per_epoch(0, label_texts.len());
    let next = label_texts.iter().copied().cycle().skip(epoch * n_visited);
    next.take(n_visited)
}

impl Stage<'_> {
    /// Runs the rest of a stage, from the state's position.
    pub(super) fn run(
        &mut self,
        config: &StagePlan,
        state: &mut TrainState,
        keep: &mut Keep<'_>,
    ) -> Result<()> {
        let phase = state.position.phase;
        let batch_size = config.batch_size;
        let n_visited = self.n_visited();
        let max_steps = self.data.max_steps.unwrap_or(usize::MAX);
        let n_batches = n_visited.div_ceil(batch_size).min(max_steps);
        let n_steps = n_batches * config.epochs;
        emit(self.observer, Event::PhaseStarted { phase, n_steps })?;
        let schedule = Schedule::new(n_steps);
        let (n_labels, n_clusters) = (self.plan.counts().n_labels, self.plan.n_clusters());
        let mut head = Head::new(n_labels, n_clusters, self.data.communicator);
        let mut buffers = StepBuffers::default();
        let mut order = Vec::with_capacity(n_visited);
        let mut emitted = Ok(());
        while state.position.step < n_steps {
            let epoch = state.position.step / n_batches;
            self.shuffle(phase, epoch, &mut order);
            if state.position.step.is_multiple_of(n_batches) {
                if self.recounts(phase, epoch, config) {
                    let mut recounted = recount(self, state);
                    self.boundary(&mut recounted, state, keep)?;
                }
                state.parents = self.parents(&state.model);
                state.position.sums = EpochSums::default();
            }
            let done = state.position.step % n_batches;
            for rows in order.chunks(batch_size).take(n_batches).skip(done) {
                let event = self.next_step(rows, config, &schedule, state, &mut head, &mut buffers);
                emitted = emit(self.observer, event?);
                if self.is_averaged(state, n_batches, config) {
                    state.gather_clusters(self.data.communicator);
                    state.add_to_average();
                }
                if !state.position.step.is_multiple_of(n_batches) {
                    self.boundary(&mut emitted, state, keep)?;
                }
            }
            state.gather_clusters(self.data.communicator);
            // A stop takes effect after the events of the epoch, so that no resumed training lacks them.
            emitted = emitted.and(self.end_epoch(epoch, config, state));
            self.boundary(&mut emitted, state, keep)?;
        }
        state.end_with_chosen(self.data.communicator);
        keep(state, Boundary::PhaseEnd)
    }

    fn is_averaged(&self, state: &TrainState, n_batches: usize, config: &StagePlan) -> bool {
        let recipe = self.plan.recipe();
        let averages = state.position.phase == Phase::Stage2 && 0.0 < recipe.average_every;
        averages && chosen::is_averaged(recipe, state.position.step, n_batches, config.epochs)
    }

    /// Whether A starts again before this epoch. Not before the last, so that its weights have two epochs to learn in; other
    /// choices were not measured.
    fn recounts(&self, phase: Phase, epoch: usize, config: &StagePlan) -> bool {
        let start = self.plan.recipe().edge_start;
        phase == Phase::Stage2
            && start == EdgeStart::Recounts
            && epoch > 0
            && epoch + 1 < config.epochs
    }

    /// Offers the state to be kept, then stops if that was asked for.
    fn boundary(
        &self,
        emitted: &mut Result<()>,
        state: &mut TrainState,
        keep: &mut Keep<'_>,
    ) -> Result<()> {
        let emitted = std::mem::replace(emitted, Ok(()));
        match &emitted {
            Ok(()) => keep(state, Boundary::Step)?,
            Err(Error::Stopped) => keep(state, Boundary::Stop)?,
            Err(_) => {}
        }
        emitted
    }

    /// The strongest cluster of every label.
    pub(super) fn parents(&self, model: &Model) -> Vec<Option<ClusterId>> {
        let parents = model.adjacency.parents();
        let own = parents[self.data.own_labels()].to_vec();
        self.data.communicator.gather(own)
    }

    /// Points to train on that are texts, and those that are label texts.
    fn kinds(&self) -> (&[u32], &[u32]) {
        let n_texts = self.data.n_texts as u32;
        let first = self.rows.partition_point(|&row| row < n_texts);
        self.rows.split_at(first)
    }

    /// Points of an epoch.
    fn n_visited(&self) -> usize {
        let (texts, label_texts) = self.kinds();
        points_per_epoch(texts.len(), label_texts.len())
    }

    /// The order of the points in an epoch.
    fn shuffle(&self, phase: Phase, epoch: usize, order: &mut Vec<u32>) {
        let (texts, label_texts) = self.kinds();
        order.clear();
        order.extend_from_slice(texts);
        order.extend(label_texts_of(epoch, label_texts));
        let seed = self.plan.config().train.seed;
        Random::new(seed, phase.name(), epoch as u64).shuffle(order);
    }

    fn next_step(
        &self,
        rows: &[u32],
        config: &StagePlan,
        schedule: &Schedule,
        state: &mut TrainState,
        head: &mut Head,
        buffers: &mut StepBuffers,
    ) -> Result<Event> {
        let Position { phase, step, .. } = state.position;
        let seed = StepSeed {
            seed: self.plan.config().train.seed,
            step: (step as u64) << 1 | u64::from(phase == Phase::Stage2),
        };
        let job = StepJob {
            rows,
            rates: schedule.rates(step, &config.rates, self.plan.recipe()),
            lambda: config.lambda,
            seed,
            n_done: step + 1,
            n_steps: schedule.n_steps(),
        };
        let loss = self.step(&job, state, head, buffers);
        let step = step + 1;
        state.position.step = step;
        if !loss.is_finite() {
            return Err(diverged(step, format!("the loss is {loss}")));
        }
        state.position.sums.add(&buffers.loss, loss);
        Ok(Event::Step {
            phase,
            step,
            n_points: rows.len(),
            loss: state.position.sums.recent,
        })
    }

    /// Emits the events of a finished epoch, and validates if that is due.
    fn end_epoch(&self, epoch: usize, config: &StagePlan, state: &mut TrainState) -> Result<()> {
        let Position {
            phase, step, sums, ..
        } = state.position;
        let mean = sums.mean();
        let first = *state.position.first_loss.get_or_insert(mean);
        if 3.0 * first < mean {
            let what = format!("the loss rose from {first:.3} to {mean:.3}");
            return Err(diverged(step, what));
        }
        state.parents.clear();
        let event = sums.event(phase, epoch + 1);
        state.history.push(event.clone());
        let mut emitted = emit(self.observer, event);
        let n_done = epoch + 1;
        state.swap_average();
        let is_due = n_done == config.epochs || n_done.is_multiple_of(VALIDATE_EVERY);
        if let Some(validation) = self.data.validation.filter(|_| is_due) {
            let event = self.validator(state).validate(phase, n_done, validation);
            state.history.push(event.clone());
            emitted = emitted.and(emit(self.observer, event));
        }
        if let Some(held_out) = self.held_out(phase, n_done, config) {
            let ndcg = self.validator(state).metrics(held_out).ndcg(5);
            state.keep_if_best(ndcg.expect("a default cut-off"));
        }
        state.swap_average();
        emitted
    }

    /// The points by which the best epoch is chosen, if that is due.
    fn held_out(
        &self,
        phase: Phase,
        n_done: usize,
        config: &StagePlan,
    ) -> Option<ValidationPoints<'_>> {
        let chooses = self.plan.recipe().best_epoch && phase != Phase::WarmUp;
        let is_due = chooses && chosen::is_looked_at(n_done, config.epochs);
        self.data.held_out.filter(|_| is_due)
    }

    fn validator<'s>(&'s self, state: &'s TrainState) -> Validator<'s> {
        Validator {
            options: self.shortlist_options(0.0),
            communicator: self.data.communicator,
            model: &state.model,
            encoder: state.encoder.as_encoder(),
        }
    }

    pub(super) fn shortlist_options(&self, score_floor: f32) -> ShortlistOptions {
        ShortlistOptions {
            beam_size: self.plan.beam_size(),
            shortlist_size: self.plan.shortlist_size(),
            score_floor,
            keeps_positives: self.plan.recipe().positives == Positives::All,
        }
    }
}

fn diverged(step: usize, what: String) -> Error {
    let remedy = "lower rates, or raise train.lambda".into();
    Error::Diverged { step, what, remedy }
}

impl EpochSums {
    fn add(&mut self, loss: &HeadLoss, mean: f64) {
        self.classification += loss.classification;
        self.shortlist += loss.shortlist;
        self.total += mean * loss.counts.n_points as f64;
        self.n_pairs += loss.counts.n_pairs;
        self.n_points += loss.counts.n_points;
        self.recent = if self.recent == 0.0 {
            mean
        } else {
            0.95 * self.recent + 0.05 * mean
        };
    }

    fn mean(&self) -> f64 {
        self.total / self.n_points.max(1) as f64
    }

    fn event(&self, phase: Phase, epoch: usize) -> Event {
        let n_points = self.n_points.max(1) as f64;
        Event::Epoch {
            phase,
            epoch,
            loss: self.mean(),
            classification_loss: self.classification / n_points,
            shortlist_loss: self.shortlist / n_points,
            labels_scored: self.n_pairs as f64 / n_points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_text_is_visited_once_in_three_epochs() {
        for n_texts in [0, 1, 3, 7, 100] {
            let texts: Vec<u32> = (50..50 + n_texts).collect();
            let epochs: Vec<Vec<u32>> = (0..6)
                .map(|at| label_texts_of(at, &texts).collect())
                .collect();
            let n_visited = epochs[0].len();
            assert!(epochs.iter().all(|epoch| epoch.len() == n_visited));
            assert!(n_visited <= n_texts.div_ceil(3) as usize);
            for three in [&epochs[..3], &epochs[3..]] {
                let mut seen = three.concat();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen, texts);
            }
        }
    }
}
