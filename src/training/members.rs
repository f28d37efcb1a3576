//! The training of one member: stage 1, adjacency, stage 2, ranker.

use super::rerank::{RankerFit, ranker_sees_points};
use super::run::Run;
use super::split::Pass;
use crate::candidates::{FinalScorer, Member};
use crate::config::{Plan, Precision};
use crate::error::Result;
use crate::events::{Event, emit};
use crate::model::Model;
use crate::store::{FinishedMember, Store, Whole};
use crate::train::{Boundary, TrainState, Trained, TrainingData, ValidationPoints};
use crate::train::{begin, train_from};

/// One training of a member: every member is trained once per pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberRun {
    /// Its number among all of them.
    pub(super) number: usize,
    /// How many there are.
    pub(super) n_runs: usize,
    /// The member.
    pub(super) member: usize,
    /// The points it is trained on.
    pub(super) pass: Pass,
}

impl MemberRun {
    pub(super) fn is_last(self) -> bool {
        self.number + 1 == self.n_runs
    }
}

impl<S: Store> Run<'_, S> {
    /// Trains a member; where several processes do, the first gets the whole of it, with the ranker.
    pub(super) fn train_member(&mut self, run: MemberRun, plan: &Plan) -> Result<FinishedMember> {
        let started = self.start(run)?;
        let trained = self.train_stages(run, plan)?;
        let history = started.into_iter().chain(trained.history).collect();
        let precision = plan.config().train.precision;
        let (mut encoder, mut stage1) = (trained.encoder, trained.stage1);
        encoder.narrow(precision);
        if let Some(whole) = &mut stage1.whole {
            whole.encoder.narrow(Precision::Full);
        }
        let member = Member {
            encoder,
            model: Model {
                classifiers: trained.model.classifiers.into_inference(precision),
                ..trained.model
            },
            ranker: None,
            final_scorer: FinalScorer::Product,
            stage1,
        };
        let config = &plan.config().ranker;
        let whole = if config.enabled && ranker_sees_points(&member, plan.recipe()) {
            Whole::Everywhere
        } else {
            Whole::OnFirst
        };
        let part = FinishedMember { member, history };
        let mut finished = self.store.join(run.number, part, plan, whole)?;
        if config.enabled {
            let fit = RankerFit {
                member: &finished.member,
                points: self.split.points(run.pass),
                plan,
                observer: self.observer,
                communicator: self.communicator,
            };
            finished.member.ranker = fit.train()?;
        }
        Ok(finished)
    }

    /// Emits that a training of a member starts, where there are several.
    fn start(&self, run: MemberRun) -> Result<Option<Event>> {
        if run.n_runs == 1 {
            return Ok(None);
        }
        let event = Event::MemberStarted {
            member: run.number,
            n_members: run.n_runs,
        };
        self.communicator
            .agree(emit(self.observer, event.clone()))?;
        Ok(Some(event))
    }

    /// Trains stage 1, the adjacency and stage 2, from where they were interrupted.
    pub(super) fn train_stages(&mut self, run: MemberRun, plan: &Plan) -> Result<Trained> {
        let points = self.split.points(run.pass);
        let data = TrainingData {
            points: points.points.points(),
            n_texts: points.n_texts,
            labels: &points.labels,
            targets: points.targets.as_ref(),
            point_weights: &points.weights,
            validation: self.validation.as_ref().map(|points| ValidationPoints {
                points: points.points.points(),
                labels: &points.labels,
                filter: self.validation_filter,
            }),
            held_out: match run.pass {
                Pass::Fold(fold) => Some(self.split.folds[fold].held_out.to_choose_by()),
                Pass::All => None,
            },
            origin: &self.origin,
            communicator: self.communicator,
            max_steps: self.max_steps,
        };
        let state = match self.store.resume(run.number, plan, &self.origin)? {
            Some(state) => state,
            None => begin(data, plan, self.observer)?,
        };
        let mut keep =
            |state: &mut TrainState, boundary: Boundary| self.store.keep(state, boundary);
        train_from(state, data, plan, self.observer, &mut keep)
    }
}
