//! Training the members of an ensemble one after the other, each kept on disk once it is finished.

use super::rerank::{ranker_sees_points, train_ranker};
use super::split::LabelledPoints;
use crate::communicator::{Communicator, is_told};
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::Result;
use crate::events::{Event, Observer, emit};
use crate::model::Model;
use crate::predict::Member;
use crate::store::{FinishedMember, Follower, TrainingFolder};
use crate::train::{TrainState, Trained, TrainingData, ValidationPoints, agree, begin, train_from};

/// Where unfinished trainings are kept.
pub(super) enum Keeping<'f> {
    /// Nowhere, and what was trained is thrown away; epochs have at most so many steps.
    Nothing { max_steps: Option<usize> },
    /// Nowhere.
    Nowhere,
    /// In a folder of this process.
    Folder(&'f mut TrainingFolder),
    /// In a folder of process 0.
    Follower(&'f Follower),
}

/// Which trainings of members run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// Every one.
    All,
    /// One, which is kept in the folder for another process.
    Only(usize),
}

/// What the members of a training share.
pub(super) struct MemberTrainer<'a, 'f> {
    pub(super) plan: &'a Plan,
    pub(super) origin: &'a EncoderOrigin,
    pub(super) validation: Option<ValidationPoints<'a>>,
    pub(super) observer: &'a dyn Observer,
    pub(super) communicator: &'a dyn Communicator,
    pub(super) keeping: Keeping<'f>,
    /// What is trained.
    pub(super) runs: Runs,
    /// Members, counted twice if they are trained again on all points.
    pub(super) n_runs: usize,
    pub(super) history: Vec<Event>,
}

impl Runs {
    fn contain(self, run: usize) -> bool {
        match self {
            Runs::All => true,
            Runs::Only(only) => run == only,
        }
    }
}

impl MemberTrainer<'_, '_> {
    /// Trains every member on the same points; runs are counted from `first_run`. Processes other than 0 get none.
    pub(super) fn train_members(
        &mut self,
        points: &LabelledPoints<'_>,
        first_run: usize,
    ) -> Result<Vec<Member>> {
        let mut members = Vec::new();
        for member_idx in 0..self.plan.config().ensemble.members {
            let run = first_run + member_idx;
            if !self.runs.contain(run) {
                continue;
            }
            let plan = self.plan.of_member(member_idx);
            let kept = match &self.keeping {
                Keeping::Folder(folder) => folder.finished_member(run, &plan),
                _ => None,
            };
            let finished = if is_told(self.communicator, kept.is_some()) {
                kept
            } else {
                self.train_member(points, run, &plan)?
            };
            if let Some(finished) = finished {
                self.history.extend(finished.history);
                members.push(finished.member);
            }
        }
        Ok(members)
    }

    /// Emits an event and keeps it in the history.
    pub(super) fn record(&mut self, event: Event) -> Result<()> {
        self.history.push(event.clone());
        emit(self.observer, event)
    }

    fn train_member(
        &mut self,
        points: &LabelledPoints<'_>,
        run: usize,
        plan: &Plan,
    ) -> Result<Option<FinishedMember>> {
        let mut history = Vec::new();
        if self.n_runs > 1 {
            let event = Event::MemberStarted {
                member: run,
                n_members: self.n_runs,
            };
            history.push(event.clone());
            agree(self.communicator, emit(self.observer, event))?;
        }
        let trained = self.train_stages(points, plan, run)?;
        history.extend(trained.history);
        let precision = plan.config().train.label_precision;
        let member = Member {
            encoder: trained.encoder,
            model: Model {
                classifiers: trained.model.classifiers.into_inference(precision),
                ..trained.model
            },
            ranker: None,
            verdict: None,
            stage1: trained.stage1,
        };
        let mut finished = FinishedMember { member, history };
        let config = &plan.config().ranker;
        match &self.keeping {
            Keeping::Follower(follower) => {
                let gathered = follower.tell_member(&finished.member, self.communicator);
                if config.enabled && ranker_sees_points(&finished.member, plan.recipe()) {
                    finished = follower.read_member(&gathered, plan)?;
                }
            }
            Keeping::Folder(folder) if self.communicator.n_processes() > 1 => {
                finished = folder.gather_member(run, &finished, plan, self.communicator)?;
            }
            _ => {}
        }
        if config.enabled {
            let (member, observer) = (&finished.member, self.observer);
            finished.member.ranker =
                train_ranker(member, points, plan, observer, self.communicator)?;
        }
        if self.communicator.process() > 0 {
            return Ok(None);
        }
        // The last member is saved with the model, if there will be one.
        if let Keeping::Folder(folder) = &self.keeping
            && (run + 1 < self.n_runs || self.runs != Runs::All)
        {
            folder.keep_member(run, &finished)?;
        }
        Ok(Some(finished))
    }

    /// Trains from the last snapshot in the folder, and writes further ones there.
    pub(super) fn train_stages(
        &mut self,
        points: &LabelledPoints<'_>,
        plan: &Plan,
        run: usize,
    ) -> Result<Trained> {
        let (observer, communicator) = (self.observer, self.communicator);
        let data = TrainingData {
            points: points.points.points(),
            n_texts: points.n_texts,
            labels: &points.labels,
            validation: self.validation,
            origin: self.origin,
            communicator,
            max_steps: match self.keeping {
                Keeping::Nothing { max_steps } => max_steps,
                _ => None,
            },
        };
        let restored = match &mut self.keeping {
            Keeping::Nothing { .. } | Keeping::Nowhere => None,
            Keeping::Folder(folder) => folder.restore(plan, data.origin, run, communicator)?,
            Keeping::Follower(follower) => follower.restore(plan, data.origin, communicator)?,
        };
        let state = match restored {
            Some(state) => state,
            None => {
                if matches!(&self.keeping, Keeping::Folder(folder) if folder.is_damaged) {
                    emit(observer, Event::CheckpointsDamaged)?;
                }
                begin(data, plan, observer)?
            }
        };
        let keeping = &mut self.keeping;
        let mut keep = |state: &mut TrainState, boundary| match keeping {
            Keeping::Nothing { .. } | Keeping::Nowhere => Ok(()),
            Keeping::Folder(folder) => match folder.keep(state, boundary, communicator)? {
                Some(duration) => {
                    let seconds = duration.as_secs_f64();
                    agree(communicator, emit(observer, Event::Checkpoint { seconds }))
                }
                None => Ok(()),
            },
            Keeping::Follower(follower) => {
                if follower.keep(state, communicator) {
                    agree(communicator, Ok(()))?;
                }
                Ok(())
            }
        };
        train_from(state, data, plan, observer, &mut keep)
    }
}
