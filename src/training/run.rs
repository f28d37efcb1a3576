//! One training, from the features of the texts to a predictor.
//!
//! A [`Run`] owns it. Where it is kept and how it is resumed is the matter of its [`Store`](crate::store::Store).

use std::sync::Arc;

use super::by_text::{self, RankedPoints};
use super::final_fit::{FittedCalibration, HeldOutAnswers};
use super::members::MemberRun;
use super::prepare::Features;
use super::rerank::{RankerFit, find_neighbours, find_rejected};
use super::split::{Fold, LabelPoints, LabelledPoints, Pass, TrainingSplit, count_labels};
use std::borrow::Cow;

use crate::candidates::{Knowledge, LabelsByText, Member};
use crate::communicator::{Communicator, SingleProcess};
use crate::config::{FinalScoreKind, Plan, Refit};
use crate::data::{DataSummary, Dataset, SeenTexts};
use crate::encoder::EncoderOrigin;
use crate::error::Result;
use crate::events::{Event, Observer, Phase, Steps, emit};
use crate::features::Featurizer;
use crate::ids::LabelId;
use crate::neighbours::{Forms, Names, Neighbours};
use crate::predict::{EnsembleCalibration, Predictor, PredictorParts, Retired, TrainingRecord};
use crate::store::{MemberStore, TrainingFolder};

/// A training: its data, its plan, the points that train and those that are held out, and where it is kept.
pub(super) struct Run<'a, S> {
    pub(super) data: &'a Dataset,
    pub(super) summary: DataSummary,
    pub(super) plan: Plan,
    pub(super) featurizer: Featurizer,
    pub(super) origin: EncoderOrigin,
    pub(super) split: TrainingSplit<'a>,
    pub(super) names: Option<Names>,
    /// The forms of the labels of the data, and of those known by their texts alone.
    pub(super) forms: Option<[Forms; 2]>,
    pub(super) validation: Option<LabelledPoints<'a>>,
    /// Pairs of a validation point and a label that do not count.
    pub(super) validation_filter: &'a [(usize, LabelId)],
    pub(super) observer: &'a dyn Observer,
    pub(super) communicator: &'a dyn Communicator,
    pub(super) store: &'a mut S,
    /// Events that the model keeps.
    pub(super) history: Vec<Event>,
    /// The most steps of an epoch, for measurements.
    pub(super) max_steps: Option<usize>,
}

/// The members of the last fold, the answers of all, and what is known without the points of each.
#[derive(Default)]
struct Folds {
    members: Vec<Member>,
    answers: HeldOutAnswers,
    knowledge: Vec<FoldKnowledge>,
}

/// The training points of a fold by their words, and the number of them for each label.
struct FoldKnowledge {
    neighbours: Option<Neighbours>,
    frequencies: Vec<u32>,
}

impl FoldKnowledge {
    fn with<'k>(&'k self, names: Option<&'k Names>) -> Knowledge<'k> {
        Knowledge {
            neighbours: self.neighbours.as_ref(),
            names,
            frequencies: &self.frequencies,
        }
    }
}

/// Final scores, and those of labels that are known by their texts alone.
struct FinalScores {
    fitted: FittedCalibration,
    by_text: Option<LabelsByText>,
}

impl<'a, S: MemberStore> Run<'a, S> {
    /// Trains a predictor.
    pub(super) fn train(mut self) -> Result<Predictor> {
        let Folds {
            members,
            answers,
            knowledge,
        } = self.folds()?;
        let scores = self.final_scores(answers, &knowledge)?;
        let members = self.refit(members)?;
        self.predictor(members, scores)
    }

    /// The members of every fold, trained without the points that are held out of it and asked for their answers to them.
    fn folds(&mut self) -> Result<Folds> {
        if let Some(decision) = self.split.decision.clone() {
            self.record(decision)?;
        }
        let mut folds = Folds::default();
        for number in 0..self.split.folds.len() {
            folds.members.clear();
            folds.members = self.members(Pass::Fold(number))?;
            let Fold { train, held_out } = &self.split.folds[number];
            let known = FoldKnowledge {
                neighbours: find_neighbours(train, &self.plan, self.observer)?,
                frequencies: train.label_counts(),
            };
            let knowledge = known.with(self.names.as_ref());
            let (members, plan) = (&folds.members, &self.plan);
            folds
                .answers
                .add(members, held_out, knowledge, plan, self.observer)?;
            folds.knowledge.push(known);
        }
        Ok(folds)
    }

    /// Every member, trained on the points of a pass.
    fn members(&mut self, pass: Pass) -> Result<Vec<Member>> {
        let runs = self.member_runs().into_iter();
        runs.filter(|run| run.pass == pass)
            .map(|run| self.member(run))
            .collect()
    }

    /// One member, trained unless that was done before the training was interrupted. The last is saved with the model.
    fn member(&mut self, run: MemberRun) -> Result<Member> {
        let plan = self.plan.of_member(run.member);
        let finished = match self.store.finished_member(run.number, &plan) {
            Some(finished) => finished,
            None => {
                let finished = self.train_member(run, &plan)?;
                if !run.is_last() {
                    self.store.keep_member(run.number, &finished)?;
                }
                finished
            }
        };
        self.history.extend(finished.history);
        Ok(finished.member)
    }

    /// The final scores of the members and the probabilities of their mean, if there is anything to fit them on.
    fn final_scores(
        &mut self,
        answers: HeldOutAnswers,
        knowledge: &[FoldKnowledge],
    ) -> Result<Option<FinalScores>> {
        if self.split.folds.is_empty() {
            return Ok(None);
        }
        let n_points = answers.n_found();
        if n_points == 0 {
            let n_needed = 1;
            self.record(Event::CalibrationSkipped { n_points, n_needed })?;
            return Ok(None);
        }
        let fitted = answers.fit(self.plan.recipe().final_score)?;
        let mut by_text = None;
        if let (Some(names), Some([forms, more])) = (&self.names, self.forms.take()) {
            let mut best = &fitted.best[..];
            let of_folds = self.split.folds.iter().zip(knowledge);
            let ranked = of_folds.map(|(fold, knowledge)| {
                let (own, later) = best.split_at(fold.held_out.points().len());
                best = later;
                RankedPoints {
                    held_out: &fold.held_out,
                    best: own,
                    knowledge: knowledge.with(Some(names)),
                    names,
                }
            });
            let ranked: Vec<RankedPoints<'_>> = ranked.collect();
            if let Some(trees) = by_text::fit(&ranked, &forms, more.n_labels())? {
                by_text = Some(LabelsByText {
                    unused: by_text::measure_unused(&ranked, [&forms, &more], &trees)?,
                    trees,
                    forms: more,
                });
            }
        }
        self.record(fitted.event.clone())?;
        Ok(Some(FinalScores { fitted, by_text }))
    }

    /// The members trained on all points, as far as that is asked for.
    fn refit(&mut self, members: Vec<Member>) -> Result<Vec<Member>> {
        match self.split.refit {
            Refit::Nothing => Ok(members),
            Refit::Everything => {
                drop(members);
                self.members(Pass::All)
            }
            Refit::Auto | Refit::Ranker => self.rank_again(members),
        }
    }

    /// The members with rankers trained on all points, by the first process alone.
    fn rank_again(&self, mut members: Vec<Member>) -> Result<Vec<Member>> {
        for (number, member) in members.iter_mut().enumerate() {
            if member.ranker.take().is_some() {
                let plan = self.plan.of_member(number);
                let fit = RankerFit {
                    member,
                    points: &self.split.all,
                    plan: &plan,
                    observer: self.observer,
                    communicator: &SingleProcess,
                };
                member.ranker = fit.train()?;
            }
        }
        Ok(members)
    }

    fn predictor(self, mut members: Vec<Member>, scores: Option<FinalScores>) -> Result<Predictor> {
        let recipe = self.plan.recipe();
        let reads_names = scores.is_some() && recipe.final_score == FinalScoreKind::Boosted;
        let neighbours = find_neighbours(&self.split.all, &self.plan, self.observer)?;
        let rejected = find_rejected(&self.split.all, self.data.rejected());
        let (scorer, by_text) = match scores {
            Some(FinalScores { fitted, by_text }) => (Some(fitted), by_text),
            None => (None, None),
        };
        let mut label_set = self.data.label_set().clone();
        let mut label_counts = count_labels(self.data.labels(), self.data.n_points());
        for (point, &weight) in self.data.weights().unwrap_or_default().iter().enumerate() {
            let labels = self.data.labels().row(point).0.iter();
            let without_weight = labels.filter(|_| weight == 0.0);
            without_weight.for_each(|&label| label_counts[label as usize] -= 1);
        }
        let frequencies = match self.split.refit {
            Refit::Nothing => self.split.folds[0].train.label_counts(),
            _ => label_counts.clone(),
        };
        if by_text.is_some() {
            let more = self.data.more_labels().labels().names();
            more.iter().for_each(|name| {
                label_set.intern(name);
            });
            label_counts.resize(label_set.len(), 0);
        }
        let calibration = scorer.map(|fitted| {
            for (member, scorer) in members.iter_mut().zip(fitted.final_scorers) {
                member.final_scorer = scorer;
            }
            EnsembleCalibration {
                frequencies,
                probabilities: fitted.probabilities,
            }
        });
        Predictor::new(PredictorParts {
            featurizer: self.featurizer.into(),
            label_set: label_set.into(),
            label_counts,
            by_text: by_text.map(Arc::new),
            retired: Retired::default(),
            rejected,
            members: members.into(),
            calibration,
            neighbours,
            names: self.names.filter(|_| reads_names).map(Arc::new),
            seen: self.data.texts().map(|texts| SeenTexts::of(texts).into()),
            plan: self.plan,
            record: TrainingRecord {
                data: self.summary,
                history: self.history,
            },
        })
    }

    /// Emits an event and keeps it in the history.
    fn record(&mut self, event: Event) -> Result<()> {
        self.history.push(event.clone());
        emit(self.observer, event)
    }
}

impl<'a, S> Run<'a, S> {
    /// Divides the points into those that train and those that are held out; nothing is trained yet.
    pub(super) fn split(features: Features<'a>, store: &'a mut S) -> Result<Self> {
        let observer = &features.communicator.observer(features.observer);
        Steps::start(Phase::HoldOut, 0, observer)?;
        let data = features.data;
        let labels = Cow::Borrowed(data.labels());
        let all =
            LabelledPoints::to_learn(features.points, labels, data.weights(), data.rejected());
        let more = features.forms.as_ref().map(|[_, more]| more.n_labels());
        let mut split = TrainingSplit::choose(all, more.unwrap_or(0), &features.plan);
        let names = features.label_texts.map(|texts| {
            split.add(&LabelPoints::new(&texts));
            Names::new(texts.features)
        });
        Ok(Run {
            data: features.data,
            summary: features.summary,
            plan: features.plan,
            featurizer: features.featurizer,
            origin: features.origin,
            split,
            names,
            forms: features.forms,
            validation: features.validation,
            validation_filter: features.validation_filter,
            observer: features.observer,
            communicator: features.communicator,
            store,
            history: Vec::new(),
            max_steps: None,
        })
    }

    /// Every training of a member, in their order: all members once per pass.
    pub(super) fn member_runs(&self) -> Vec<MemberRun> {
        let n_members = self.plan.config().ensemble.members;
        let n_runs = n_members * self.split.passes().count();
        self.split
            .passes()
            .flat_map(|pass| (0..n_members).map(move |member| (pass, member)))
            .enumerate()
            .map(|(number, (pass, member))| MemberRun {
                number,
                n_runs,
                member,
                pass,
            })
            .collect()
    }
}

impl Run<'_, TrainingFolder<'_>> {
    /// Trains one member and keeps it for another process, unless it is kept already; a number beyond the last is none.
    pub(super) fn train_one(mut self, number: usize) -> Result<()> {
        let Some(&run) = self.member_runs().get(number) else {
            return Ok(());
        };
        let plan = self.plan.of_member(run.member);
        if self.store.finished_member(number, &plan).is_some() {
            return Ok(());
        }
        let finished = self.train_member(run, &plan)?;
        self.store.keep_member(number, &finished)
    }
}
