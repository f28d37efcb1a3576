//! Training the members of an ensemble one after the other, each kept on disk once it is finished.

use super::rerank::train_ranker;
use super::split::LabelledPoints;
use crate::checkpoint::{FinishedMember, TrainingFolder};
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::Result;
use crate::events::{Event, Observer, emit};
use crate::model::Model;
use crate::predict::Member;
use crate::train::{TrainState, Trained, TrainingData, ValidationPoints, begin, train_from};

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
    pub(super) folder: Option<&'f mut TrainingFolder>,
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
    /// Trains every member on the same points; runs are counted from `first_run`.
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
            let kept = self.folder.as_ref();
            let kept = kept.and_then(|folder| folder.finished_member(run, &plan));
            let finished = match kept {
                Some(finished) => finished,
                None => self.train_member(points, run, &plan)?,
            };
            self.history.extend(finished.history);
            members.push(finished.member);
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
    ) -> Result<FinishedMember> {
        let data = TrainingData {
            points: points.points.points(),
            n_texts: points.n_texts,
            labels: &points.labels,
            validation: self.validation,
            origin: self.origin,
        };
        let mut history = Vec::new();
        if self.n_runs > 1 {
            let event = Event::MemberStarted {
                member: run,
                n_members: self.n_runs,
            };
            history.push(event.clone());
            emit(self.observer, event)?;
        }
        let trained = self.train_stages(data, plan, run)?;
        history.extend(trained.history);
        let precision = plan.config().train.label_precision;
        let mut member = Member {
            encoder: trained.encoder,
            model: Model {
                classifiers: trained.model.classifiers.into_inference(precision),
                ..trained.model
            },
            ranker: None,
            verdict: None,
            stage1: trained.stage1,
        };
        if plan.config().ranker.enabled {
            member.ranker = Some(train_ranker(&member, points, plan, self.observer)?);
        }
        let finished = FinishedMember { member, history };
        // The last member is saved with the model, if there will be one.
        if let Some(folder) = &self.folder
            && (run + 1 < self.n_runs || self.runs != Runs::All)
        {
            folder.keep_member(run, &finished)?;
        }
        Ok(finished)
    }

    /// Trains from the last snapshot in the folder, and writes further ones there.
    fn train_stages(&mut self, data: TrainingData<'_>, plan: &Plan, run: usize) -> Result<Trained> {
        let observer = self.observer;
        let Some(folder) = &mut self.folder else {
            let state = begin(data, plan, observer)?;
            return train_from(state, data, plan, observer, &mut |_, _| Ok(()));
        };
        let state = match folder.restore(plan, data.origin, run)? {
            Some(state) => state,
            None => {
                if folder.is_damaged {
                    emit(observer, Event::CheckpointsDamaged)?;
                }
                begin(data, plan, observer)?
            }
        };
        let mut keep = |state: &mut TrainState, boundary| {
            if let Some(duration) = folder.keep(state, boundary)? {
                let seconds = duration.as_secs_f64();
                emit(observer, Event::Checkpoint { seconds })?;
            }
            Ok(())
        };
        train_from(state, data, plan, observer, &mut keep)
    }
}
