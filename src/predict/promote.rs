//! Labels that get classifiers, because texts have them now.
//!
//! Labels with classifiers come first, so those that are known by their texts alone get other numbers.

use std::sync::Arc;

use super::{Predictor, Retired};
use crate::candidates::Member;
use crate::config::{DataCounts, Decided, IndexMode};
use crate::data::{Dataset, DescribedLabels, LabelSet, SeenTexts, Texts};
use crate::error::Result;
use crate::events::Event;
use crate::ids::LabelId;

impl Predictor {
    /// Gets to know the labels of the points of a data set: new ones by their names, if the model knows labels by these.
    /// Those that were removed or merged come back.
    pub(crate) fn meet_labels(&mut self, data: &Dataset) -> Result<()> {
        let mut is_used = vec![false; data.n_labels()];
        let used = data.labels().indices().iter();
        used.for_each(|&label| is_used[label as usize] = true);
        let mut new = LabelSet::default();
        for (name, _) in data
            .label_set()
            .names()
            .iter()
            .zip(is_used)
            .filter(|of| of.1)
        {
            match self.parts.label_set.find(name) {
                Some(label) => self.parts.retired.restore(label),
                None => {
                    new.intern(name);
                }
            }
        }
        if self.parts.by_text.is_some() {
            let texts: Texts = new.names().iter().collect();
            return self.add_labels(&DescribedLabels::new(new, texts)?);
        }
        for name in new.names().iter() {
            Arc::make_mut(&mut self.parts.label_set).intern(name);
        }
        self.parts
            .label_counts
            .resize(self.parts.label_set.len(), 0);
        Ok(())
    }

    /// Takes the members out; they must be put back before it is used.
    pub(crate) fn take_members(&mut self) -> Vec<Member> {
        Arc::unwrap_or_clone(std::mem::take(&mut self.parts.members))
    }

    /// Puts members in that know all labels with classifiers.
    ///
    /// # Errors
    /// [`Error::InvalidModel`](crate::Error::InvalidModel) if they do not fit the other parts.
    pub(crate) fn set_members(&mut self, members: Vec<Member>) -> Result<()> {
        self.parts.members = members.into();
        self.scratch = Arc::default();
        self.learned.clear();
        self.parts.check()
    }

    /// Counts points among those that it was trained on; the event says how.
    pub(crate) fn note_points(&mut self, data: &Dataset, event: Event) {
        let record = &mut self.parts.record;
        record.history.push(event);
        record.data = record.data.with(data);
        if let Some((seen, texts)) = self.parts.seen.as_mut().zip(data.texts()) {
            *seen = seen.with(&SeenTexts::of(texts)).into();
        }
    }

    /// Puts the labels that have texts, but no classifiers, after those that have classifiers; returns how many there are.
    /// The members must get classifiers for them.
    pub(crate) fn promote(&mut self) -> Result<usize> {
        let (n_trained, n_all) = (self.n_trained_labels(), self.labels().len());
        let has_texts = |label: &usize| self.parts.label_counts[*label] > 0;
        let (promoted, others): (Vec<usize>, Vec<usize>) = (n_trained..n_all).partition(has_texts);
        let order: Vec<usize> = (0..n_trained)
            .chain(promoted.iter().copied())
            .chain(others.iter().copied())
            .collect();
        let mut place = vec![LabelId(0); n_all];
        for (new, &old) in order.iter().enumerate() {
            place[old] = LabelId(new as u32);
        }
        let moved = |label: LabelId| place[label.idx()];
        let parts = &mut self.parts;
        let label_set = &parts.label_set;
        let names = order
            .iter()
            .map(|&label| label_set.name(LabelId(label as u32)));
        let label_set: LabelSet = names.collect();
        if let Some(names) = parts.names.take() {
            let rows = match &parts.by_text {
                Some(by_text) => by_text
                    .forms
                    .joined(promoted.iter().map(|at| at - n_trained)),
                None => {
                    let promoted = promoted
                        .iter()
                        .map(|&at| parts.label_set.name(LabelId(at as u32)));
                    parts
                        .featurizer
                        .words_of_texts(&promoted.collect())?
                        .features
                }
            };
            parts.names = Some(names.with(&rows).into());
        }
        if let Some(by_text) = &mut parts.by_text {
            let forms = by_text.forms.select(others.iter().map(|at| at - n_trained));
            Arc::make_mut(by_text).forms = forms;
        }
        parts.label_set = label_set.into();
        parts.label_counts = order
            .iter()
            .map(|&label| parts.label_counts[label])
            .collect();
        let retired = parts.retired.iter();
        let retired = retired.map(|(label, into)| (moved(label), into.map(moved)));
        parts.retired = Retired::new(retired.collect::<Vec<_>>().into_iter(), n_all)?;
        for index in [&mut parts.neighbours, &mut parts.rejected] {
            if let Some(neighbours) = index.take() {
                let number = |label| Some(moved(LabelId(label)).0);
                *index = Some(neighbours.renumbered(n_all, number)?);
            }
        }
        let n_labels = n_trained + promoted.len();
        if let Some(calibration) = &mut parts.calibration {
            let counts = &parts.label_counts[n_trained..n_labels];
            calibration.frequencies.extend_from_slice(counts);
        }
        parts.record.data.n_labels = n_labels;
        let counts = DataCounts {
            n_labels,
            ..parts.plan.counts()
        };
        let decided = parts.plan.decided();
        let is_ova = parts.plan.config().index.mode == IndexMode::Ova;
        let decided = Decided {
            shortlist_size: if is_ova {
                n_labels
            } else {
                decided.shortlist_size
            },
            ..decided
        };
        parts.plan = parts.plan.config().clone().restore(counts, decided)?;
        Ok(promoted.len())
    }
}
